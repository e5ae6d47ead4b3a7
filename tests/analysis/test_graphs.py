"""Comparisons by graph: models averaged per draw, held against the same worked out from the frame with pandas and SciPy."""

import numpy as np
import pytest
from scipy import stats

from sharpen.analysis.graphs import effects_of_sides, graph_effects
from sharpen.analysis.outcome import outcome
from sharpen.studies import load_study
from tests.studies.fake import records

NAME = "ts-0.25 - baseline"


def gain(trial):
    return (2 if trial.dataset == "cora" else 0) * (trial.lam > 0) + (trial.model == "gat") * (trial.lam > 0)


@pytest.fixture(scope="module")
def found():
    study = load_study("universal")
    some = {"datasets": ["cora", "photo", "squirrel"]}
    frame = records(study, "paired", gain, **some)
    return frame, outcome(study, "paired", frame, **some)


def by_hand(frame, dataset, models=("gcn", "sage", "gat")):
    own = frame[(frame["dataset"] == dataset) & frame["model"].isin(models)]
    wide = 100 * own.pivot_table(index=["split", "seed", "model"], columns="lam", values="test")
    return (wide[0.25] - wide[0.0]).groupby("split").mean()


def test_models_and_seeds_of_a_split_are_one_observation(found):
    frame, told = found
    effects = graph_effects(told, NAME)
    assert [(e.dataset, e.difference.n, e.runs, e.splits) for e in effects] == [
        ("cora", 20, 20, 20),
        ("photo", 20, 20, 20),
        ("squirrel", 10, 20, 10),
    ]
    for e in effects:
        draws = by_hand(frame, e.dataset)
        interval = stats.ttest_1samp(draws, 0).confidence_interval(0.95)
        assert e.difference.difference == pytest.approx(draws.mean())
        assert e.difference.t_interval == pytest.approx(tuple(interval))
        assert e.published == pytest.approx(np.mean([told.cell(e.dataset, m).effect(NAME).published for m in e.models]))
    ps = [stats.ttest_1samp(by_hand(frame, e.dataset), 0).pvalue for e in effects]
    assert [e.corrected_p for e in effects] == pytest.approx(
        [min(1, max(p * (3 - sorted(ps).index(p)), *(q * (3 - sorted(ps).index(q)) for q in ps if q <= p))) for p in ps]
    )


def test_some_models_only(found):
    frame, told = found
    (cora, *_) = graph_effects(told, NAME, ["gat"])
    assert cora.models == ("gat",)
    assert cora.difference.difference == pytest.approx(by_hand(frame, "cora", ("gat",)).mean())


def test_a_cell_counts_once_all_its_pairs_are_there():
    study = load_study("universal")
    frame = records(study, "paired", gain, keep=lambda t: t.model != "sage" or t.seed < 5, datasets=["cora"])
    (cora,) = graph_effects(outcome(study, "paired", frame, datasets=["cora"]), NAME)
    assert cora.models == ("gcn", "gat")


def test_the_same_runs_on_both_sides_are_equal_to_zero(found):
    _, told = found
    side = told.cell("cora", "gcn").sides["baseline"]
    (cora,) = effects_of_sides({"cora": {"gcn": (side, side)}})
    assert (cora.difference.difference, cora.detectable, cora.sure, cora.within(0.1)) == (0.0, None, False, True)
