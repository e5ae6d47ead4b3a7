"""Curves, trajectories, rankings and steps: what figures and tables are drawn from."""

import numpy as np
import pytest
from scipy import stats

from sharpen.analysis.curves import Curve, Point, glass_bands, lambda_curves
from sharpen.analysis.dynamics import dynamics
from sharpen.analysis.outcome import Outcome, outcome
from sharpen.analysis.ranking import rankings
from sharpen.analysis.steps import offset_steps, retune_steps
from sharpen.paper import published
from sharpen.studies import load_study
from tests.studies.fake import flat, records, traces


def found(name: str, **kwargs: object) -> tuple[Outcome, object]:
    study = load_study(name)
    frame = records(study, "paper", **kwargs)
    return outcome(study, "paper", frame, datasets=kwargs.get("datasets"), models=kwargs.get("models")), frame


def test_a_curve_has_every_lambda_once_and_zero_is_the_baseline():
    told, frame = found("lambda-curves", datasets=["cora"], models=["gcn"])
    (curve,) = lambda_curves(told)
    assert [p.lam for p in curve.points] == pytest.approx(np.arange(-20, 41) * 0.05)
    assert (curve.zero.difference, curve.zero.glass) == (0, 0)
    for point in curve.points:
        assert point.mean == pytest.approx(100 * frame.loc[np.isclose(frame["lam"], point.lam), "test"].mean())
    assert lambda_curves(found("labeled-term", datasets=["cora"])[0]) == []  # its baseline is λ = 0.25


def test_a_lambda_of_which_runs_are_missing_is_no_point():
    study = load_study("main")
    few = {"datasets": ["cora"], "models": ["gcn"]}
    frame = records(study, "paper", keep=lambda t: t.lam < 0.35 and (t.lam, t.seed) != (0.25, 0), **few)
    (curve,) = lambda_curves(outcome(study, "paper", frame, **few))
    assert [point.lam for point in curve.points] == pytest.approx([0, 0.05, 0.1, 0.15, 0.2, 0.3])
    lacking = frame[(frame["lam"] != 0) | (frame["seed"] != 0)]
    assert lambda_curves(outcome(study, "paper", lacking, **few)) == []


def test_bands_are_quantiles_over_datasets():
    told, frame = found("lambda-curves", datasets=["cora", "squirrel", "photo", "cs"], models=["sage"])
    (band,) = glass_bands(lambda_curves(told))
    at = band.lams.index(0.5)
    deltas = []
    for _, rows in frame.groupby("dataset"):
        plain, sharp = (100 * rows.loc[np.isclose(rows["lam"], lam), "test"] for lam in (0.0, 0.5))
        deltas.append((sharp.mean() - plain.mean()) / plain.std())
    assert (band.lower[at], band.median[at], band.upper[at]) == pytest.approx(np.percentile(deltas, [25, 50, 75]))
    assert set(band.datasets) == {"cora", "squirrel", "photo", "cs"}
    assert band.whole is None


def test_a_dataset_that_ends_early_ends_the_band():
    told, _ = found(
        "lambda-curves", datasets=["cora", "photo"], models=["gcn"], keep=lambda t: t.dataset == "cora" or t.lam < 1
    )
    (band,) = glass_bands(lambda_curves(told))
    assert max(band.lams) == pytest.approx(0.95)
    assert band.whole is None  # one dataset is no median


def test_lambdas_that_some_datasets_lack_are_told_over_those_that_have_all():
    whole = ["cora", "citeseer", "pubmed"]
    told, frame = found(
        "lambda-curves",
        datasets=[*whole, "photo", "cs"],
        models=["gcn"],
        # Photo has nothing below 0; CS has a few λ there, which do not make it whole, and a hole above.
        keep=lambda t: (
            t.dataset in whole
            or (t.dataset == "photo" and t.lam >= 0)
            or (t.dataset == "cs" and t.lam > -0.22 and not 0.48 < t.lam < 0.57)
        ),
    )
    (band,) = glass_bands(lambda_curves(told))
    assert len(band.datasets) == 5
    assert band.lams == pytest.approx([lam * 0.05 for lam in range(41) if lam not in (10, 11)])
    assert set(band.whole.datasets) == set(whole)
    assert band.whole.lams == pytest.approx(np.arange(-20, 41) * 0.05)
    for lam in (-0.5, 1.5):
        deltas = []
        for dataset in whole:
            rows = frame[frame["dataset"] == dataset]
            plain, sharp = (100 * rows.loc[np.isclose(rows["lam"], at), "test"] for at in (0.0, lam))
            deltas.append((sharp.mean() - plain.mean()) / plain.std())
        at = band.whole.index(lam)
        found_here = (band.whole.lower[at], band.whole.median[at], band.whole.upper[at])
        assert found_here == pytest.approx(np.percentile(deltas, [25, 50, 75]))
    assert (band.index(-0.5), band.index(0.5), band.index(0.123)) == (None, None, None)


def curve(dataset: str, *lams: float) -> Curve:
    return Curve(dataset, "gcn", "accuracy", tuple(Point(lam, 80, 1.0, 5, lam, None, lam) for lam in lams), 5)


def test_a_lambda_that_one_dataset_has_on_top_takes_nothing_away():
    usual = [curve(name, -0.5, 0.0, 0.5) for name in ("cora", "citeseer", "pubmed")]
    (band,) = glass_bands([*usual, curve("photo", 0.0, 0.5), curve("cs", -0.5, 0.0, 0.5, 3.0)])
    assert band.lams == (0.0, 0.5)
    assert band.whole.lams == (-0.5, 0.0, 0.5)
    assert band.whole.datasets == ("cora", "citeseer", "pubmed", "cs")


@pytest.mark.parametrize("whole", [2, 3])
def test_two_datasets_are_no_median(whole):
    names = ["cora", "citeseer", "pubmed", "photo"]
    (band,) = glass_bands([curve(n, *((-0.5,) if i < whole else ()), 0.0, 0.5) for i, n in enumerate(names)])
    assert (band.whole is not None) == (whole == 3)


def test_one_lambda_written_in_two_ways_is_one():
    (band,) = glass_bands([curve("cora", 0.0, 0.1 * 3), curve("photo", 0.0, 0.3)])
    assert band.lams == (0.0, 0.3)


def test_the_gap_is_paired_run_by_run():
    told, frame = found(
        "entropy-dynamics", datasets=["cora", "photo"], models=["gcn"], keep=lambda t: t.dataset == "cora"
    )
    traced = traces(frame, epochs=30)
    (cell,) = dynamics(told, traced)
    gaps = {
        lam: np.array(
            [
                np.mean(traced[id]["entropy_labeled"].astype(float) - traced[id]["entropy_unlabeled"])
                for id in frame[frame["lam"] == lam].sort_values("seed")["id"]
            ]
        )
        for lam in (0.0, 0.25)
    }
    assert cell.gap.n == 5
    assert cell.gap.difference == pytest.approx(np.mean(gaps[0.25] - gaps[0.0]))
    assert cell.gap.t_p == pytest.approx(stats.ttest_rel(gaps[0.25], gaps[0.0]).pvalue, rel=1e-4)
    assert (cell.epochs, cell.above) == (30, 1.0)
    assert (cell.baseline.name, cell.sharpened.name) == ("λ = 0", "λ = 0.25")
    (twice,) = dynamics(told, traced, "shannon")
    assert twice.gap.difference == pytest.approx(2 * cell.gap.difference, rel=1e-5)
    assert (cell.measure, twice.measure) == ("gini", "shannon")
    for id in traced:  # as runs of before it was traced
        traced[id] = {name: values for name, values in traced[id].items() if name.startswith("entropy")}
    assert dynamics(told, traced, "shannon") == []
    del traced[frame[frame["lam"] == 0]["id"].iloc[0]]  # a pair without traces of one side is left out
    assert dynamics(told, traced)[0].gap.n == 4


def test_ranks_are_those_of_scipy():
    told, _ = found("main", datasets=["cora", "squirrel"], models=["gcn", "mlp"])
    for ranking in rankings(load_study("comparison"), told):
        scored = [entry for entry in ranking.entries if entry.mean is not None]
        expected = stats.rankdata([-round(entry.mean, 2) for entry in scored], method="min")
        assert [entry.rank for entry in scored] == expected.tolist()
        names = {entry.method for entry in ranking.entries}
        assert {m for d, m, _ in published("comparison") if d == ranking.dataset} <= names
        assert sum(entry.ours for entry in ranking.entries) == 8
        for entry in ranking.entries:
            if entry.ours:
                assert entry.paper == published("comparison")[ranking.dataset, entry.method, "published"].mean
                assert (entry.reason is None) == (entry.mean is not None)


def test_steps_of_offsets_and_of_retuning():
    told, _ = found("offset", datasets=["cora"], models=["gcn"], effect=lambda t: -8 * abs(t.lam + t.lam_labeled))
    (steps,) = offset_steps(told).values()
    assert sorted(step.x for step in steps) == pytest.approx([-0.1, -0.05, 0, 0.05, 0.1])
    assert [step.x for step in steps if step.chosen] == [0]
    assert min(steps, key=lambda step: step.gain).x in (-0.1, 0.1)
    assert retune_steps(told) == {}
    told, _ = found("retune", datasets=["cora"], models=["gcn"], effect=flat)
    (steps,) = retune_steps(told).values()
    assert {(s.x, s.y) for s in steps} == {(x, y) for x in (0.25, 0.5, 1, 2, 4) for y in (-0.1, -0.05, 0, 0.05, 0.1)}
    assert sum(step.chosen for step in steps) == 1
    assert offset_steps(told) == {}
    assert offset_steps(found("meta-lambda", datasets=["cora"], models=["gcn"])[0]) == {}
