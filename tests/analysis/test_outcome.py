"""What an outcome says is what SciPy says of the same records, and what is missing has a reason."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sharpen.analysis.outcome import NO_DATA, Outcome, outcome
from sharpen.analysis.provenance import costs
from sharpen.analysis.ranking import rankings
from sharpen.analysis.runs import Side
from sharpen.paper import published
from sharpen.report.shares import run_seconds
from sharpen.report.study_tables import details
from sharpen.report.study_text import gain_sentence
from sharpen.studies import list_studies, load_study, plan
from tests.studies.fake import bump, flat, records

GAIN = "ts-0.25 - baseline"


def universal(protocol: str = "paper", **kwargs: object) -> tuple[Outcome, pd.DataFrame]:
    study = load_study("universal")
    frame = records(study, protocol, datasets=["cora", "squirrel"], models=["gcn", "sage"], **kwargs)
    return outcome(study, protocol, frame, datasets=["cora", "squirrel"], models=["gcn", "sage"]), frame


def scores(frame: pd.DataFrame, dataset: str, model: str, lam: float) -> np.ndarray:
    rows = frame[(frame["dataset"] == dataset) & (frame["model"] == model) & (frame["lam"] == lam)]
    return 100 * rows.sort_values(["split", "seed"])["test"].to_numpy()


@pytest.mark.parametrize(
    ("protocol", "dataset", "n"), [("paper", "cora", 5), ("paper", "squirrel", 10), ("paired", "cora", 20)]
)
def test_a_difference_is_what_scipy_says(protocol, dataset, n):
    found, frame = universal(protocol)
    plain, sharp = (scores(frame, dataset, "gcn", lam) for lam in (0.0, 0.25))
    cell = found.cell(dataset, "gcn")
    effect = cell.effect(GAIN)
    expected = stats.ttest_rel(sharp, plain)
    interval = expected.confidence_interval(0.95)
    assert effect.n == effect.planned == cell.planned == n
    assert effect.difference.difference == pytest.approx(np.mean(sharp - plain))
    assert effect.difference.t_interval == pytest.approx((interval.low, interval.high))
    assert effect.difference.t_p == pytest.approx(expected.pvalue)
    assert effect.difference.wilcoxon_p == pytest.approx(stats.wilcoxon(sharp, plain).pvalue)
    assert (effect.difference.bootstrap_interval is None) == (n < 8)
    assert effect.glass == pytest.approx(np.mean(sharp - plain) / np.std(plain, ddof=1))
    assert cell.sides["baseline"].mean == pytest.approx(plain.mean())
    assert cell.sides["baseline"].sd == pytest.approx(stats.tstd(plain))
    assert effect.verdict == ("gain" if interval.low > 0 else "loss" if interval.high < 0 else "unclear")


def test_p_values_are_corrected_over_the_cells():
    found, _ = universal()
    pairs = sorted((e.difference.t_p, e.corrected_p) for _, e in found.effects(GAIN) if e.complete)
    assert len(pairs) == 4
    running = 0.0
    for i, (p, corrected) in enumerate(pairs):
        running = max(running, min(1.0, p * (4 - i)))
        assert corrected == pytest.approx(running)


def test_a_cell_without_a_difference_is_one_of_the_tests():
    """Else how strict the correction is would depend on what validation chose."""
    _, frame = universal()
    plain = frame[frame["lam"] == 0].set_index(["dataset", "model", "split", "seed"])["test"]
    keys = ["dataset", "model", "split", "seed"]
    same = (frame["dataset"] == "squirrel") & (frame["model"] == "sage")
    frame.loc[same, "test"] = plain.loc[[tuple(row) for row in frame.loc[same, keys].to_numpy()]].to_numpy()
    found = outcome(load_study("universal"), "paper", frame, datasets=["cora", "squirrel"], models=["gcn", "sage"])
    assert found.cell("squirrel", "sage").effect(GAIN).corrected_p == 1
    others = sorted((e.difference.t_p, e.corrected_p) for _, e in found.effects(GAIN) if e.difference.t_p is not None)
    (p1, c1), (p2, c2), (p3, c3) = others  # multiplied by 4, 3 and 2: the fourth is the cell without a difference
    assert (c1, c2, c3) == pytest.approx((4 * p1, max(4 * p1, 3 * p2), max(4 * p1, 3 * p2, 2 * p3)))
    (note,) = [line for line in details(found).notes if line.startswith("Holm: ")]
    assert "corrected over 4 complete cells" in note


def test_published_numbers_stand_beside_ours_with_welch_of_both_spreads():
    found, frame = universal()
    cell = found.cell("cora", "gcn")
    plain, sharp = (scores(frame, "cora", "gcn", lam) for lam in (0.0, 0.25))
    side, effect = cell.sides["baseline"], cell.effect(GAIN)
    assert (side.published.mean, side.published.sd) == (84.54, 0.86)
    welch = stats.ttest_ind_from_stats(plain.mean(), plain.std(ddof=1), 5, 84.54, 0.86, 5, equal_var=False)
    assert side.consistency.t_p == pytest.approx(welch.pvalue)
    assert side.consistency.distance == pytest.approx((plain.mean() - 84.54) / np.hypot(plain.std(ddof=1), 0.86))
    assert effect.published == 0.62
    assert effect.published_sd == pytest.approx(np.hypot(0.36, 0.86))
    d = sharp - plain
    welch = stats.ttest_ind_from_stats(d.mean(), d.std(ddof=1), 5, 0.62, np.hypot(0.36, 0.86), 5, equal_var=False)
    assert effect.consistency.t_p == pytest.approx(welch.pvalue)


def test_of_two_runs_of_a_trial_the_first_scores_count_and_the_time_of_both():
    found, frame = universal()
    again = pd.concat([frame, frame.assign(val=0.99, test=0.99, seconds=2.0)], ignore_index=True)
    twice = outcome(load_study("universal"), "paper", again, datasets=["cora", "squirrel"], models=["gcn", "sage"])
    assert twice.cells == found.cells
    assert (twice.finished, twice.planned) == (found.finished, found.planned)
    ((cost,), (once,)) = twice.costs, found.costs
    assert (cost.runs, cost.seconds) == (2 * once.runs, 5 * once.seconds)
    assert sum(run_seconds(twice).values()) == pytest.approx(cost.seconds)


def test_scores_on_other_splits_are_not_held_against_the_paper():
    found, _ = universal("paired")
    side = found.cell("cora", "gcn").sides["baseline"]
    assert side.published is not None
    assert side.consistency is None
    assert found.cell("cora", "gcn").effect(GAIN).consistency is not None  # differences can be compared


def test_lambda_is_chosen_on_validation_and_only_there():
    study = load_study("main")
    frame = records(study, "paper", flat, datasets=["cora"], models=["gcn"])
    # Validation prefers 0.3 by far, test prefers 1.5 by far.
    frame.loc[frame["lam"] == 0.3, "val"] += 0.05
    frame.loc[frame["lam"] == 1.5, "test"] += 0.2
    cell = outcome(study, "paper", frame, datasets=["cora"]).cell("cora", "gcn")
    tuned = cell.sides["ts-tuned"]
    assert tuned.variant == "ts-0.3"
    assert tuned.trial.lam == 0.3
    assert tuned.val == pytest.approx(100 * frame.loc[frame["lam"] == 0.3, "val"].mean())
    assert tuned.tests == pytest.approx(cell.sides["ts-0.3"].tests)
    shuffled = frame.assign(test=np.random.default_rng(0).permutation(frame["test"]))
    assert (
        outcome(study, "paper", shuffled, datasets=["cora"]).cell("cora", "gcn").sides["ts-tuned"].variant == "ts-0.3"
    )


def test_equal_validation_scores_change_nothing():
    study = load_study("retune")
    frame = records(study, "paper", flat, datasets=["cora"], models=["gcn"]).assign(val=0.8)
    cell = outcome(study, "paper", frame, datasets=["cora"]).cell("cora", "gcn")
    assert cell.sides["retuned"].trial == cell.sides["ts-tuned"].trial
    effect = cell.effect("retuned - ts-tuned")
    assert effect.difference.difference == 0
    assert effect.verdict == "unclear"


def test_of_equals_the_one_that_changes_least_is_chosen():
    study = load_study("lambda-curves")
    study = replace(study, choose={"best": tuple(name for name in study.variants if name != "baseline")})
    few = {"datasets": ["cora"], "models": ["gcn"]}
    frame = records(study, "paper", flat, **few).assign(val=0.8)
    assert outcome(study, "paper", frame, **few).cell("cora", "gcn").sides["best"].variant in ("ts-0.05", "ts--0.05")


def test_nothing_is_chosen_from_part_of_the_grid():
    study = load_study("main")
    frame = records(study, "paper", keep=lambda t: t.lam <= 1, datasets=["cora"], models=["gcn", "gat"])
    cell = outcome(study, "paper", frame, datasets=["cora"]).cell("cora", "gcn")
    assert cell.sides["ts-tuned"].variant is None
    assert cell.effects[0].reason == "100 of 205 runs not run yet"
    assert cell.effects[0].published == 1.20
    assert cell.sides["baseline"].n == 5


def test_the_baseline_itself_may_be_chosen():
    study = load_study("main")
    frame = records(study, "paper", lambda t: -30 * t.lam, datasets=["cora"], models=["gcn"])
    cell = outcome(study, "paper", frame, datasets=["cora"]).cell("cora", "gcn")
    assert cell.sides["ts-tuned"].variant == "baseline"
    effect = cell.effects[0]
    assert (effect.difference.difference, effect.verdict, effect.complete) == (0, "unclear", True)
    assert effect.reason == "validation chooses baseline itself"


def test_diverged_runs_leave_their_pairs_and_are_counted():
    found, frame = universal(diverged=lambda t: t.dataset == "cora" and t.lam == 0.25 and t.seed in (1, 3))
    cell = found.cell("cora", "gcn")
    effect = cell.effect(GAIN)
    assert (effect.n, effect.planned, effect.finished, effect.diverged) == (3, 5, 5, 2)
    assert effect.reason == "diverged: 2 of 5"
    # Survivors alone decide nothing, however clear they look.
    assert (effect.complete, effect.verdict, effect.corrected_p) == (False, "unclear", None)
    assert found.complete == 2
    assert "2 cells with diverged runs not counted (4 of 10 pairs)" in gain_sentence(found, GAIN)
    assert (cell.sides["ts-0.25"].n, cell.sides["ts-0.25"].diverged, cell.sides["baseline"].n) == (3, 2, 5)
    plain, sharp = (scores(frame, "cora", "gcn", lam) for lam in (0.0, 0.25))
    kept = ~np.isnan(sharp)
    assert effect.difference.t_p == pytest.approx(stats.ttest_rel(sharp[kept], plain[kept]).pvalue)


def test_pairs_of_two_precisions_do_not_count():
    _, frame = universal()
    frame.loc[(frame["dataset"] == "cora") & (frame["lam"] == 0) & (frame["seed"] == 1), "precision"] = "float64"
    found = outcome(load_study("universal"), "paper", frame, datasets=["cora", "squirrel"], models=["gcn", "sage"])
    effect = found.cell("cora", "gcn").effect(GAIN)
    assert effect.reason == "1 of 5 pairs of different precision"
    assert (effect.mixed, effect.complete, effect.verdict, effect.corrected_p) == (1, False, "unclear", None)
    assert found.cell("squirrel", "gcn").effect(GAIN).complete
    assert "2 cells with pairs of different precision not counted" in gain_sentence(found, GAIN)


def test_seeds_on_one_split_are_not_independent():
    found, frame = universal("paired")
    cell = found.cell("squirrel", "gcn")
    effect = cell.effect(GAIN)
    rows = frame[(frame["dataset"] == "squirrel") & (frame["model"] == "gcn")]
    plain, sharp = (100 * rows[rows["lam"] == lam].groupby("split")["test"].mean() for lam in (0.0, 0.25))
    expected = stats.ttest_rel(sharp, plain)
    interval = expected.confidence_interval(0.95)
    assert (effect.n, effect.splits, effect.difference.n, cell.splits, effect.complete) == (20, 10, 10, 10, True)
    assert effect.difference.t_p == pytest.approx(expected.pvalue)
    assert effect.difference.t_interval == pytest.approx((interval.low, interval.high))
    assert effect.difference.wilcoxon_p == pytest.approx(stats.wilcoxon(sharp, plain).pvalue)
    assert effect.difference.wins + effect.difference.ties + effect.difference.losses == 10
    assert found.cell("cora", "gcn").effect(GAIN).difference.n == 20  # a split each


@pytest.mark.parametrize(("shift", "verdict"), [(0.01, "gain"), (-0.01, "loss"), (0.0, "unclear")])
def test_differences_that_are_all_the_same_have_a_verdict(shift, verdict):
    _, frame = universal()
    levels = 0.8 + 0.01 * frame["seed"]
    frame = frame.assign(test=levels + shift * (frame["lam"] > 0))
    effect = outcome(load_study("universal"), "paper", frame).cell("cora", "gcn").effect(GAIN)
    assert (effect.difference.t_interval, effect.verdict) == (None, verdict)


def test_the_papers_own_number_of_runs_decides_how_sure_its_number_is():
    study = load_study("main")
    frame = records(study, "paper", flat, datasets=["photo"], models=["mlp", "gcn"])
    found = outcome(study, "paper", frame, datasets=["photo"])
    for model, runs in (("mlp", 5), ("gcn", 3)):  # the table of MLP settings says 5, the sweeps have 3
        side = found.cell("photo", model).sides["baseline"]
        ours = np.array(side.tests)
        said = (side.published.mean, side.published.sd, runs)
        welch = stats.ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 3, *said, equal_var=False)
        assert side.consistency.t_p == pytest.approx(welch.pvalue)
    study = load_study("meta-lambda")
    frame = records(study, "paper", flat, datasets=["photo"], models=["gcn"])
    cell = outcome(study, "paper", frame, datasets=["photo"]).cell("photo", "gcn")
    effect, d = cell.effects[0], np.subtract(*(cell.sides[name].tests for name in ("meta", "ts-tuned")))
    said = (effect.published, effect.published_sd, 5)
    welch = stats.ttest_ind_from_stats(d.mean(), d.std(ddof=1), 3, *said, equal_var=False)
    assert effect.consistency.t_p == pytest.approx(welch.pvalue)


def test_a_cell_in_which_all_runs_diverged_says_so():
    found, _ = universal(diverged=lambda t: t.dataset == "cora" and t.lam == 0.25)
    effect = found.cell("cora", "gcn").effect(GAIN)
    assert effect.difference is None
    assert effect.reason == "diverged: 5 of 5"
    assert effect.verdict == "unknown"


def test_part_of_the_runs_is_shown_but_does_not_count():
    found, _ = universal(keep=lambda t: t.dataset == "cora" or t.seed < 4)
    effect = found.cell("squirrel", "gcn").effect(GAIN)
    assert (effect.n, effect.complete, effect.corrected_p) == (4, False, None)
    assert effect.reason == "6 of 10 not run yet"
    assert found.complete == 2


def test_part_of_a_baseline_is_not_held_against_the_paper_and_has_no_rank():
    study = load_study("main")
    few = {"datasets": ["cora"], "models": ["gcn", "gat"]}
    frame = records(study, "paper", keep=lambda t: t.lam == 0 and (t.model == "gcn" or t.seed > 0), **few)
    found = outcome(study, "paper", frame, **few)
    assert found.cell("cora", "gcn").sides["baseline"].consistency is not None
    part = found.cell("cora", "gat").sides["baseline"]
    assert (part.n, part.consistency, part.reason) == (4, None, "1 of 5 not run yet")
    (cora,) = [ranking for ranking in rankings(load_study("comparison"), found) if ranking.dataset == "cora"]
    entries = {entry.method: entry for entry in cora.entries}
    assert entries["GCN"].rank is not None
    assert (entries["GAT"].rank, entries["GAT"].reason) == (None, "1 of 5 not run yet")


def test_cells_without_records_carry_their_reason():
    study = load_study("universal")
    frame = records(study, "paper", datasets=["cora"])
    found = outcome(study, "paper", frame, unavailable={"wikics": NO_DATA, "cora": "never shown"})
    assert found.cell("wikics", "gcn").reason == NO_DATA
    assert found.cell("wikics", "gcn").effects[0].reason == NO_DATA
    assert found.cell("photo", "gcn").reason == "not run yet"
    assert found.cell("cora", "gcn").reason is None
    skipped = outcome(load_study("offset"), "paper", pd.DataFrame()).cell("cs", "gat")
    assert skipped.reason == "λ* is 0 in this cell"
    assert skipped.effects[0].published is not None


@pytest.mark.parametrize("name", [study.name for study in list_studies() if study.reads is None])
def test_every_published_number_finds_its_place(name):
    study = load_study(name)
    found = outcome(study, study.protocols[0], pd.DataFrame())
    shown = set()
    for cell in found.cells:
        for side in cell.sides.values():
            if side.published is not None:
                shown.add((side.published.mean, cell.dataset, cell.model))
        shown |= {(effect.published, cell.dataset, cell.model) for effect in cell.effects}
    for row in published(study.published or "").values():
        if row.model not in study.models:
            assert name == "main-five"  # convolutions only
            continue
        value = row.delta if row.mean is None else row.mean
        assert (value, row.dataset, row.model) in shown


def test_records_of_other_settings_have_no_part():
    study = load_study("universal")
    frame = records(study, "paper", datasets=["cora"], models=["gcn"], max_epochs=5)
    assert outcome(study, "paper", frame).finished == 0
    quick = outcome(study, "paper", frame, max_epochs=5)
    assert (quick.finished, quick.cell("cora", "gcn").effects[0].n) == (10, 5)


def test_what_it_took_is_the_sum_over_its_own_runs():
    found, frame = universal()
    other = records(load_study("labeled-term"), "paper", datasets=["cora"], models=["gcn"])
    both = pd.concat([frame, other]).drop_duplicates("id")
    again = outcome(load_study("universal"), "paper", both, datasets=["cora", "squirrel"])
    assert again.costs == found.costs
    assert found.costs[0].seconds == pytest.approx(0.5 * 2 * (5 + 5 + 10 + 10))
    assert costs(pd.DataFrame()) == ()


def test_of_two_records_of_one_trial_the_first_counts():
    _, frame = universal()
    twice = pd.concat([frame, frame.assign(test=0.0)])
    assert outcome(load_study("universal"), "paper", twice).cell("cora", "gcn").sides["baseline"].mean > 50


def test_a_side_without_scores_has_no_mean():
    empty = Side("a", "a", None, planned=3)
    assert (empty.mean, empty.sd, empty.val, empty.n) == (None, None, None, 0)


def test_the_ablation_protocol_has_planetoid_cells_only():
    found = outcome(load_study("labeled-term"), "ablation", pd.DataFrame())
    assert {cell.dataset for cell in found.cells} == {"cora", "citeseer", "pubmed"}
    trials = [t for cell in plan(load_study("labeled-term"), "ablation") for ts in cell.trials.values() for t in ts]
    assert {t.split for t in trials} == {"balanced-20-500-1000-seed42"}
    assert {t.seed for t in trials} == set(range(5))


def test_bump_is_a_gain():  # what the other tests build on
    found, _ = universal("paired", effect=bump)
    assert found.cell("cora", "gcn").effect(GAIN).verdict == "gain"
