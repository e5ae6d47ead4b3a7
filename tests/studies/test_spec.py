"""Studies as data: every file of the paper loads and says what the paper says; mistakes are named with their place."""

import csv
import itertools
import re
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharpen.analysis.outcome import outcome
from sharpen.analysis.ranking import rankings
from sharpen.errors import InputError
from sharpen.paper import setting
from sharpen.studies import Study, each_once, list_studies, load_study, own_studies, plan
from sharpen.studies.loading import KEYS, PAPER_STUDIES

MINE = """\
title: Mine
datasets: [digits]
models: [gcn]
variants:
  baseline: {lam: 0}
  ts-{lam}: {lam: [0.25, 0.5]}
baseline: baseline
choose:
  tuned: [baseline, ts-*]
compare:
  - tuned - baseline
"""


def published() -> list[dict[str, str]]:
    with files("sharpen.paper").joinpath("published.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def hyperparameters() -> dict[tuple[str, str], dict[str, str]]:
    with files("sharpen.paper").joinpath("hyperparameters.csv").open(encoding="utf-8") as lines:
        return {(row["dataset"], row["model"]): row for row in csv.DictReader(lines)}


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lams(study: Study) -> list[float]:
    return [float(str(variant.fields["lam"])) for variant in study.variants.values()]


def test_there_is_a_file_for_every_name_and_a_name_for_every_file():
    names = {path.name for path in files("sharpen.studies").joinpath("paper").iterdir() if path.name.endswith(".yaml")}
    assert names == {f"{name}.yaml" for name in PAPER_STUDIES}


def test_our_own_studies_are_found_by_name_and_have_a_file_each():
    names = {path.name for path in files("sharpen.studies").joinpath("own").iterdir() if path.name.endswith(".yaml")}
    assert names == {f"{study.name}.yaml" for study in own_studies()}
    for study in own_studies():
        assert load_study(study.name) == study
        assert study.about
        assert study.compare or study.protocols == ("published",)  # which is held against what was published


def test_a_number_of_labels_is_a_protocol(tmp_path):
    own = write(tmp_path, MINE + "protocols: [few-3, share-20]\n")
    assert load_study(own).protocols == ("few-3", "share-20")
    for bad in ("few-0", "few", "share-80", "fwe-3", "all"):
        with pytest.raises(InputError, match="there is no protocol"):
            load_study(write(tmp_path, MINE + f"protocols: [{bad}]\n"))


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_every_study_of_the_paper_loads_and_says_what_it_is(name):
    study = load_study(name)
    assert study.title
    assert study.about
    assert study.leaves_open
    assert study.protocols[:2] == (("paired",) if name == "main-five" else ("paper", "paired"))
    if study.reads is None:
        assert study.baseline in study.variants
        assert study.compare or study.protocols == ("published",)  # which is held against what was published
        fixed = {"ts-0.25"} if name == "main-five" else set()
        assert {contrast.against for contrast in study.compare} == {study.baseline} | fixed


def test_every_published_number_has_a_study_that_names_it():
    whole = [study for study in list_studies() if study.name not in ("main-five", "retune-nine")]
    studies = {study.published: study for study in whole if study.published}
    rows = published()
    assert {row["table"] for row in rows} == set(studies)
    for row in rows:
        study = studies[row["table"]]
        assert row["dataset"] in study.datasets
        if study.reads is None:
            assert row["model"] in study.models
            contrasts = [contrast.name for contrast in study.compare]
            assert row["variant"] in (*study.variants, *study.choose, *contrasts)


def test_the_grids_are_the_papers_to_the_last_bit():
    tenths = [i / 100 for i in range(0, 201, 5)]
    main, curves = load_study("main"), load_study("lambda-curves")
    assert lams(main) == tenths
    assert sorted(lams(curves)) == [-i / 100 for i in range(100, 0, -5)] + tenths
    assert main.choose["ts-tuned"] == tuple(main.variants)
    assert "ts-0.25" in main.variants
    assert len(curves.compare) == 60


@pytest.mark.parametrize(
    ("small", "whole", "protocol", "share"), [("main-five", "main", "paired", 5), ("retune-nine", "retune", "paper", 9)]
)
def test_a_study_cut_down_consists_of_runs_of_the_whole_one(small, whole, protocol, share):
    for dataset, model in itertools.product(("cora", "squirrel", "physics"), ("gcn", "gat")):
        (few,), (all_,) = (plan(load_study(name), protocol, [dataset], [model]) for name in (small, whole))
        ids = {trial.id for trials in few.trials.values() for trial in trials}
        assert ids < {trial.id for trials in all_.trials.values() for trial in trials}
        runs = len(few.trials[load_study(small).baseline])
        assert len(ids) == share * runs
        assert runs == {"cora": 20, "squirrel": 10, "physics": 10}[dataset] or protocol == "paper"


def test_the_runs_of_a_cell_are_one_number_or_one_by_dataset(tmp_path):
    mine = MINE.replace("[digits]", "[cora, digits]")
    assert load_study(write(tmp_path, mine + "runs: 4\n")).runs == {"cora": 4, "digits": 4}
    some = load_study(write(tmp_path, mine + "runs: {digits: 3}\n"))
    sizes = [len(cell.trials["baseline"]) for cell in plan(some, "paired")]
    assert sizes == [20, 3]
    with pytest.raises(InputError, match="cro"):
        load_study(write(tmp_path, mine + "runs: {cro: 3}\n"))
    with pytest.raises(InputError, match="whole number"):
        load_study(write(tmp_path, mine + "runs: {cora: 0}\n"))


def test_offsets_move_both_weights_around_the_papers_lambda():
    study, rows = load_study("offset"), hyperparameters()
    for dataset, model in itertools.product(study.datasets, study.models):
        star = float(rows[dataset, model]["lambda_star"])
        assert ((dataset, model) in study.skip) == (star == 0)
        for name, delta in (("offset-0.10", -0.10), ("offset+0.05", 0.05), ("ts-tuned", 0.0)):
            trial = study.variants[name].trial(dataset, model).resolve("s")
            assert trial.lam == pytest.approx(star + delta, abs=1e-12)
            assert trial.lam_labeled == pytest.approx(-star + delta, abs=1e-12)
    assert study.variants["offset+0.05"].trial("cora", "gcn").lam == 1.4  # and not 1.4000000000000001


def test_the_retuned_settings_of_the_paper_lie_on_the_grid_but_for_one():
    study, off = load_study("retune"), []
    for (dataset, model), row in hyperparameters().items():
        trials = [study.variants[name].trial(dataset, model) for name in study.choose["retuned"]]
        assert len(trials) == 25
        wanted = (float(row["retuned_lr"]), float(row["retuned_dropout"]))
        if not any((trial.lr, trial.dropout) == pytest.approx(wanted) for trial in trials):
            off.append((dataset, model))
    assert off == [("pubmed", "sage")]
    same = study.variants["lrx1-dropout+0"].trial("cora", "gcn").resolve("s")
    assert same.id == study.variants["ts-tuned"].trial("cora", "gcn").resolve("s").id


def test_the_ablations_change_one_thing():
    changed = {
        "labeled-term": ("no-labeled-term", {"lam_labeled": 0.0}),
        "entropy-order": ("shannon-0.25", {"q": 1.0}),
        "test-only": ("test-only-0.25", {"sharpen_val": False}),
        "meta-lambda": ("meta", {"lam": 0.0, "lam_max": 1.0, "lam_labeled": 0.0}),
    }
    for name, (variant, change) in changed.items():
        study = load_study(name)
        a = vars(study.variants[str(study.baseline)].trial("cora", "gcn").resolve("s"))
        b = vars(study.variants[variant].trial("cora", "gcn").resolve("s"))
        assert {key: b[key] for key in a if a[key] != b[key]} == change


def test_a_study_of_your_own(tmp_path):
    study = load_study(write(tmp_path, MINE))
    assert study.name == "mine"
    assert list(study.variants) == ["baseline", "ts-0.25", "ts-0.5"]
    assert study.choose == {"tuned": ("baseline", "ts-0.25", "ts-0.5")}
    assert [contrast.name for contrast in study.compare] == ["tuned - baseline"]
    assert load_study(str(tmp_path / "mine.yaml")) == study


def test_the_example_of_the_guide_is_a_study(tmp_path):
    guide = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"```yaml\n(title.*?)```", guide, flags=re.DOTALL)
    study = load_study(write(tmp_path, example))
    assert len(study.variants) == 12
    assert all(f"`{key}`" in guide for key in KEYS)


def test_what_all_variants_share_and_what_depends_on_the_cell(tmp_path):
    text = MINE.replace(
        "variants:", "trial: {epochs: 3, lr: 5e-4, dropout: {of: dropout, plus: 0.9}}\nruns: 2\nvariants:"
    )
    (cell,) = plan(load_study(write(tmp_path, text)), "paired")
    trials = [trial for trials in cell.trials.values() for trial in trials]
    assert len(trials) == 6
    assert {(trial.epochs, trial.lr, trial.dropout) for trial in trials} == {(3, 0.0005, 0.95)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("models:", "modles:", "line 3: there is no key 'modles'; did you mean 'models'?"),
        ("[gcn]", "[gnc]", "line 3: model is 'gnc'; did you mean 'gcn'?"),
        ("[digits]", "[didgits]", "line 2: there is no dataset 'didgits'; did you mean 'digits'?"),
        (
            "[digits]",
            "[people.csv]",
            "line 2: there is no dataset 'people.csv'; a study names the files of a graph of your own",
        ),
        ("[digits]", "[amazon_ratings]", "did you mean 'amazon-ratings'?"),
        ("{lam: 0}", "{lamb: 0}", "line 5: there is no field 'lamb'; did you mean 'lam'?"),
        ("{lam: 0}", "{seed: 0}", "line 5: there is no field 'seed'"),
        ("{lam: 0}", "{lam: much}", "line 5: lam is 'much'; give a number"),
        ("{lam: 0}", "{lam: true}", "line 5: lam is True; give a number"),
        ("{lam: 0}", "{lam: .nan}", "line 5: lam is nan; give a number"),
        ("{lam: 0}", "{residual: 1}", "line 5: residual is 1; give true or false"),
        ("{lam: 0}", "{norm: bach}", "variant 'baseline': norm is 'bach'; did you mean 'batch'?"),
        ("{lam: 0}", "{dropout: 1.5}", "variant 'baseline': dropout is 1.5"),
        ("{lam: 0}", "{hidden: 2.5}", "variant 'baseline': hidden is 2.5"),
        ("{lam: 0}", "{lam: {of: lambda_star}}", "the paper gives no lambda_star for digits gcn"),
        ("{lam: 0}", "{lam: {of: lambda_tsar}}", "did you mean 'lambda_star'?"),
        ("{lam: 0}", "{lam: {from: 0, to: 1}}", "a range has three keys, not from, to"),
        ("{lam: 0}", "{lam: {from: 0, to: 1, step: 0.3}}", "steps of 0.3 do not lead from 0 to 1"),
        ("{lam: 0}", "{lam: {from: 0, to: 1, step: 0}}", "steps of 0 do not lead"),
        ("{lam: 0}", "{lam: {from: 0, to: 1e9, step: 1.0e-9}}", "do not lead"),
        ("{lam: 0}", "0.25", "baseline is 0.25; give a mapping"),
        ("ts-{lam}", "ts", "two variants are called 'ts'; write {lam} into its name"),
        ("ts-{lam}", "ts-{lma}", "there is no field 'lma'; did you mean 'lam'?"),
        ("{lam: 0}", "{lam: []}", "line 5: lam is []; give a number, or a list of them"),
        ("{lam: 0}", "{lam: [0, x]}", "line 5: lam is 'x'; give a number"),
        (
            "  baseline: {lam: 0}",
            "  other-{lam}: {lam: [1, 1]}\n  baseline: {lam: 0}",
            "'other-1'; give every value of lam once",
        ),
        ("  baseline: {lam: 0}", "\tbaseline: {lam: 0}", "indent with spaces, not with tabs"),
        ("baseline: baseline", "baseline: basline", "line 7: there is no variant 'basline'; did you mean 'baseline'?"),
        ("baseline: baseline\n", "", "the key 'baseline' is missing"),
        ("[baseline, ts-*]", "[baseline, st-*]", "line 9: no variant is like 'st-*'"),
        ("  tuned:", "  baseline:", "'baseline' is a variant already"),
        ("- tuned - baseline", "- tuned", "line 11: 'tuned' does not name two variants"),
        ("- tuned - baseline", "- tune - baseline", "line 11: there is no variant 'tune'; did you mean 'tuned'?"),
        ("title: Mine", "title: [1]", "line 1: title is [1]; give a text"),
        ("title: Mine", "title: Mine\ntitle: Mine", "line 2: 'title' stands on line 1 already"),
        ("title: Mine", "title: Mine\nruns: 0", "line 2: runs is 0"),
        ("title: Mine", "title: Mine\ntraces: 3", "line 2: traces is 3"),
        ("title: Mine", "title: Mine\nprotocols: [pared]", "did you mean 'paired'?"),
        ("title: Mine", "title: Mine\nskip: [{dataset: digits}]", "a dataset, a model and a reason"),
        ("title: Mine", "title: Mine\nreads: mian", "did you mean 'main'?"),
        (
            "title: Mine",
            "title: Mine\npublished: mian",
            "line 2: there is no published table 'mian'; did you mean 'main'?",
        ),
        (
            "title: Mine",
            "title: Mine\npublished_runs: {mpl: 5}",
            "line 2: there is no model 'mpl'; did you mean 'mlp'?",
        ),
        ("title: Mine", "title: Mine\npublished_runs: 0", "line 2: published_runs is 0; give a whole number"),
        ("title: Mine", "title: Mine\npublished_runs:", "line 2: published_runs is None; give a whole number"),
        ("title: Mine", "title: Mine\npublished_runs: {mlp: }", "line 2: mlp is None; give a whole number"),
        (
            "{lam: 0}",
            "{split: given-0}",
            "line 5: there is no field 'split' here: every variant has the runs of the protocol",
        ),
        (
            "{lam: 0}",
            "{model: gat}",
            "line 5: there is no field 'model' here: every variant has the cells of the study",
        ),
        ("{lam: 0}", "{λ: 0}", "line 5: there is no field 'λ' here: write it as lam"),
        ("{lam: 0}", "{qqqqq: 0}", "line 5: there is no field 'qqqqq'; there are layers"),
        ("{lam: 0}", "{batching: 64}", "variant 'baseline': batching is '64'; write it like 'clusters-64-4'"),
        (
            "{lam: 0}",
            "{lam: {of: hidden}}",
            "line 5: lam cannot start from hidden, which is of another kind; start from lambda_",
        ),
        ("{lam: 0}", "{lam: {of: dropout, plus: 1}}", "lam cannot start from dropout"),
        ("{lam: 0}", "{q: {of: lr}}", "q cannot start from lr, which is of another kind; give a number"),
        ("{lam: 0}", "{hidden: {of: hidden, times: 0.001}}", "variant 'baseline': hidden is 0."),
        ("  baseline: {lam: 0}", "  7: {lam: 0}", "line 5: the name 7 is not a text; write it in quotes, as '7'"),
        (
            "  baseline: {lam: 0}",
            "  baseline: {lam: 0}\n  plain: {lam: 0, q: 2}",
            "'plain' and 'baseline' are the same trial",
        ),
        ("[0.25, 0.5]", "[0, 0.5]", "line 6: 'ts-0' and 'baseline' are the same trial; leave one of them out"),
        (
            "- tuned - baseline",
            "- baseline - baseline",
            "line 11: 'baseline - baseline' compares 'baseline' with itself",
        ),
        (
            "- tuned - baseline",
            "- tuned - baseline\n  - tun* - baseline",
            "line 12: 'tuned - baseline' is compared twice",
        ),
        (
            "title: Mine",
            "title: Mine\nskip: [{dataset: cora, model: gcn, reason: why}]",
            "line 2: the study has no cell cora gcn to leave out",
        ),
        (
            "title: Mine",
            "title: Mine\nskip: [{dataset: digits, model: gcn, reason: a}, {dataset: digits, model: gcn, reason: b}]",
            "digits gcn is left out twice",
        ),
        ("title: Mine", "title: Mine\nreads: main", "line 5: 'variants' has no effect beside reads"),
        ("[digits]", "digits", "datasets is 'digits'; give a list of names, such as [cora, …]"),
        ("title: Mine", "title: Mine\ntrial: {dropout: 1.5}", "line 2: variant 'baseline': dropout is 1.5"),
        ("{lam: [0.25, 0.5]}", "{lam: [0.25, 0.5], dropout: 1.5}", "line 6: variant 'ts-0.25': dropout is 1.5"),
        ("[gcn]", "[gcn, gcn]", "'gcn' stands in models twice"),
        ("[gcn]", "[]", "models is []; give a list of names"),
        ("[gcn]", "{gcn", "line 4: this is not YAML"),
        (MINE, "- a\n- b\n", "a study is a mapping of keys"),
        (MINE, "", "a study is a mapping of keys"),
        (MINE, "title: &a [*a]\n", "nested more than 20 deep"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_way_out(tmp_path, old, new, message):
    assert old in MINE
    path = write(tmp_path, MINE.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_study(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


READING = "title: Ours\nreads: main\ndatasets: [cora]\nmodels: [gcn]\n"


def test_a_study_that_reads_another_shows_its_own_models(tmp_path):
    study = load_study(write(tmp_path, READING))
    (ranking,) = rankings(study, outcome(load_study("main"), "paper", pd.DataFrame()))
    assert [entry.method for entry in ranking.entries if entry.ours] == ["GCN", "GCN+TS"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reads: main", "reads: universal", "line 2: universal has not both plain training and a choice by validation"),
        ("reads: main", "reads: retune", "retune has not both plain training and a choice"),
        ("reads: main", "reads: comparison", "comparison has not both"),
        ("reads: main", "reads: ''", "there is no study ''"),
        ("title: Ours", "title: Ours\ncompare: [a - b]", "line 2: 'compare' has no effect beside reads"),
        ("title: Ours", "title: Ours\npublished: main", "ranks the published table comparison; name that"),
    ],
)
def test_what_has_no_effect_beside_reads_is_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load_study(write(tmp_path, READING.replace(old, new, 1)))


def test_a_batching_and_a_norm_are_words(tmp_path):
    text = MINE.replace(
        "ts-{lam}: {lam: [0.25, 0.5]}", "ts-{batching}-{norm}: {batching: clusters-8-2-1, norm: [none, layer]}"
    )
    study = load_study(write(tmp_path, text))
    assert list(study.variants) == ["baseline", "ts-clusters-8-2-1-none", "ts-clusters-8-2-1-layer"]
    (cell,) = plan(study, "paper")
    assert {t.batching for t in cell.trials["ts-clusters-8-2-1-none"]} == {"clusters-8-2"}


def test_a_value_fits_the_field_that_it_sets(tmp_path):
    text = MINE.replace("{lam: 0}", "{layers: {of: layers, times: 1.4}, lam_max: {of: lambda_star, plus: 2}}")
    study = load_study(write(tmp_path, text.replace("digits", "cora")))
    trial = study.variants["baseline"].trial("cora", "gcn")
    assert (trial.layers, trial.lam_max) == (round(1.4 * setting("cora", "gcn")["layers"]), 3.35)


def test_a_folder_is_not_taken_for_a_misspelt_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="directory"):
        load_study(".")
    write(tmp_path, MINE, "mine")
    assert load_study("mine").title == "Mine"


def test_two_different_studies_of_one_name_are_refused(tmp_path):
    mine = load_study(write(tmp_path, MINE, "main.yaml"))
    assert each_once([mine, load_study(tmp_path / "main.yaml")]) == [mine]
    with pytest.raises(InputError, match="two different studies are called 'main'; rename"):
        each_once([load_study("main"), mine])


def test_files_that_are_no_text_or_not_there_are_named(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00title")
    with pytest.raises(InputError, match="not a text in UTF-8"):
        load_study(tmp_path / "binary.yaml")
    with pytest.raises(InputError, match="cannot be read"):
        load_study(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="did you mean 'entropy-order'"):
        load_study("entropy_order")


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["gcn", "lam", "of"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lam", "of", "from", "to", "step", "times", "gcn", "x"]) | scalars, inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(KEYS), value=values)
def test_whatever_stands_in_a_file_it_is_a_study_or_a_named_mistake(tmp_path, key, value):
    content = yaml.safe_load(MINE) | {key: value}
    path = write(tmp_path, yaml.safe_dump(content))
    try:
        load_study(path)
    except InputError as error:
        message = str(error)
    else:
        message = str(path)
    assert str(path) in message
