"""The report of a study of the number of labels, from made-up records whose answers fit in the head."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sharpen.analysis.outcome import outcome
from sharpen.analysis.rates import Rule, derive_rule, halves, judge, labels_per_class, merged, rate_curves
from sharpen.report.builder import Reader
from sharpen.report.figures import draw
from sharpen.report.page import study_page
from sharpen.report.text import report_csv, report_latex, report_markdown
from sharpen.store import Store
from sharpen.studies import load_study, plan
from sharpen.studies.protocol import Rate
from sharpen.trial import LAST, METRICS, Record

# What a variant gains at so many labels of each class: sharpening alone collapses where labels are few.
GAINS = {
    "plain": lambda labels: 0.0,
    "ts-0.25": lambda labels: -0.3 if labels <= 5 else 0.02,
    "balance-0.25": lambda labels: 0.1 if labels <= 10 else 0.005,
    "balance-0.5": lambda labels: 0.05 if labels <= 10 else 0.0,
    "no-labeled-term": lambda labels: -0.3 if labels <= 5 else 0.01,
    "true-prior": lambda labels: 0.12,
    "true-prior-strong": lambda labels: 0.13,
}
DATASETS, PROTOCOLS = ("cora", "citeseer", "digits", "squirrel"), ("few-3", "few-10", "few-50", "share-20")


@pytest.fixture(scope="module")
def small():
    study = replace(
        load_study("label-rates"),
        datasets=DATASETS,
        models=("gcn",),
        protocols=PROTOCOLS,
        runs=dict.fromkeys(DATASETS, 4),
    )
    return replace(study, name="small")


@pytest.fixture(scope="module")
def store(small, tmp_path_factory):
    store, rng = Store(tmp_path_factory.mktemp("store")), np.random.default_rng(0)
    for protocol in PROTOCOLS:
        for cell in plan(small, protocol):
            records = []
            for name, trials in cell.trials.items():
                number = int(protocol.split("-")[1])
                labels = labels_per_class(Rate(protocol.split("-")[0], number), cell.cell.dataset)
                for trial in trials:
                    level = 0.6 + 0.02 * trial.seed + GAINS[name](labels) + 0.002 * rng.standard_normal()
                    metrics = {each: 0.2 + 0.01 * trial.seed for each in (*METRICS, *LAST)}
                    metrics |= {"test_last": level, "val_last": level, "class_use_last": 0.1 if level < 0.5 else 0.97}
                    metrics |= {"ece": 0.3 if name == "no-labeled-term" else 0.2 + 0.001 * trial.seed}
                    records.append(Record(trial, level, level + 0.01, 3, "ok", 1.0, "cpu", "float32", metrics=metrics))
            store.add(records)
    return store


@pytest.fixture(scope="module")
def curves(small, store):
    frame = store.runs()
    return rate_curves(outcome(small, protocol, frame, score="test_last") for protocol in PROTOCOLS)


def test_a_curve_has_a_point_for_each_number_of_labels(curves):
    (own,) = [curve for curve in curves if (curve.dataset, curve.variant) == ("cora", "ts-0.25")]
    assert [point.rate.number for point in own.points] == [3, 10, 50]
    assert [point.gain for point in own.points] == pytest.approx([-30, 2, 2], abs=0.5)
    assert [point.collapsed for point in own.points] == [4, 0, 0]
    (unlike,) = [curve for curve in curves if (curve.dataset, curve.variant) == ("squirrel", "ts-0.25")]
    assert [point.rate.words for point in unlike.points] == ["20 % of the nodes"]


def test_the_rule_is_chosen_on_half_of_the_graphs_and_judged_on_the_other(small, curves):
    first, second = halves(small)
    assert set(first) | set(second) == set(DATASETS)
    assert not set(first) & set(second)
    own = [name for name in small.variants if not name.startswith(("plain", "true-prior"))]
    found = derive_rule(curves, first, own)
    assert found is not None
    assert found.rule == Rule("balance-0.25", "ts-0.25", 10)
    tested = judge(found.rule, curves, second)
    assert tested.losses == {}
    assert tested.few_gain == pytest.approx(10, abs=0.5)
    bad = judge(Rule("ts-0.25", "ts-0.25", 10), curves, second)
    assert ("citeseer", "gcn", "3 labels per class") in bad.losses


def test_the_report_says_what_is_gained_and_where_classes_are_emptied(small, store):
    report = Reader(store, {}).report(small, "all")
    text = "\n".join(report.findings)
    assert "ts-0.25 empties classes by the last epoch in" in text
    assert "Cora GCN at 3 labels per class (4 of 4 runs)" in text
    assert "balance-0.25 up to 10 labels per class, ts-0.25 beyond" in text
    assert "it loses nowhere" in text
    assert (
        "The rule in use, that of lam = auto: balance-0.25 up to 10 labels per class, ts-0.25 beyond. On all graphs: +"
        in text
    )
    assert "balance-0.25, last epoch" in text
    assert report.name == "small-all"
    markdown = report_markdown(report, None)
    assert "no-labeled-term - ts-0.25" in markdown or "no-labeled-term − ts-0.25" in markdown
    assert report_csv(report).count("\n") > 10
    assert "booktabs" in report_latex(report)


def test_a_row_has_the_plain_score_and_every_gain_over_it(small, store):
    report = Reader(store, {}).report(small, "all")
    (table,) = [table for table in report.tables if table.title.endswith("GCN, last epoch")]
    assert [column.key for column in table.columns[2:5]] == ["plain", "balance-0.25", "ts-0.25"]
    (row,) = [row for row in table.rows if row[:2] == ("Cora", "3 labels per class")]
    assert (row[2].numbers["mean"], row[2].numbers["n"]) == (pytest.approx(63, abs=0.5), 4)
    assert [row[k].numbers["difference"] for k in (3, 4)] == pytest.approx([10, -30], abs=0.5)
    assert "n =" not in row[3].text  # as many as the score has


def test_calibration_is_compared_too(small, store):
    report = Reader(store, {}).report(small, "all")
    (table,) = [table for table in report.tables if "calibration" in table.title]
    row = next(row for row in table.rows if row[0] == "no-labeled-term - ts-0.25")
    assert row[2].numbers["difference"] == pytest.approx(9.85, abs=0.01)  # ECE, × 100


def test_the_chart_is_painted_on_paper_and_on_the_page(small, store):
    report = Reader(store, {}).report(small, "all")
    charts = report.figures["label-rates"]
    cora = charts.views["GCN, last epoch"][0]
    assert cora["title"] == "Cora GCN"
    assert [line["name"] for line in cora["series"]][:2] == ["balance-0.25", "ts-0.25"]
    assert -40 <= cora["y"]["min"] < -30  # a collapse is in the picture
    assert draw(charts) is not None
    page = study_page([report], [], "")
    assert page.chapters[0]["views"][0]["name"] == "every number of labels"
    json.dumps(page.chapters, allow_nan=False)


def test_each_number_of_labels_has_a_report_of_its_own(small, store):
    reader = Reader(store, {})
    assert reader.protocols(small) == ["all", *PROTOCOLS]
    assert reader.report(small, "few-3").name == "small-few-3"


def test_protocols_are_merged_cell_by_cell(small, store):
    frame = store.runs()
    told = [outcome(small, protocol, frame) for protocol in PROTOCOLS]
    whole = merged(told)
    assert (whole.protocol, whole.finished, len(whole.cells)) == ("all", 280, 10)
    assert whole.costs[0].runs == 280
