"""What helps and how surely, from runs whose mistakes are known."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from sharpen.fitting.account import account
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import deal
from sharpen.fitting.runs import Run
from sharpen.fitting.selection import choose
from sharpen.fitting.verdicts import QUESTIONS, Verdict, sides, verdict
from tests.fitting.camps import runs_of

Y = np.arange(60) % 2
GCN, SHARP, MLP = Candidate("gcn"), Candidate("gcn", 0.25), Candidate("mlp")


def judged(runs: list[Run], best: Candidate, y: np.ndarray = Y) -> list[Verdict]:
    evidence, groups = Evidence(runs, y), deal(y, 999)
    return [
        verdict(question, evidence, groups, both, helps=QUESTIONS[question](best))
        for question, both in sides(evidence, groups).items()
    ]


def answers(wrong: dict[Candidate, list[int]], best: Candidate) -> list[Verdict]:
    return judged([m for c, nodes in wrong.items() for m in runs_of(c, Y, nodes)], best)


def test_the_verdicts_say_what_helps_and_how_surely() -> None:
    graph, sharpening = answers({GCN: list(range(20)), SHARP: [0], MLP: list(range(30))}, SHARP)
    assert graph.helps
    assert graph.clear
    assert graph.text.startswith("The graph helps: log-loss ")
    assert "accuracy 98.3 % with it, 50.0 % without (+48.3 points, 95 % CI [+" in graph.text
    assert graph.text.endswith("on 60 held-out labels that had no part in choosing either.")
    assert sharpening.text.startswith("Sharpening helps: log-loss ")
    assert sum(group["nodes"] for group in graph.groups) == 60
    assert np.average([g["a"] - g["b"] for g in graph.groups], weights=[g["nodes"] for g in graph.groups]) == (
        pytest.approx(100 * 29 / 60)
    )


def test_the_sentence_and_the_table_have_the_same_numbers() -> None:
    runs = [m for c, w in {GCN: [0, 1, 2, 3], SHARP: [0, 5], MLP: list(range(20))}.items() for m in runs_of(c, Y, w)]
    evidence, groups = Evidence(runs, Y), deal(Y, 999)
    both = sides(evidence, groups)["sharpening"]
    answer = verdict("sharpening", evidence, groups, both, helps=True)
    for side, mean in zip(both, (answer.log_loss.mean_a, answer.log_loss.mean_b), strict=True):
        y = Y[side.rows]
        assert mean == pytest.approx(-np.log(side.after[np.arange(60), y]).mean())
        assert f"{mean:.3f}" in answer.text
        assert f"{100 * (side.after.argmax(1) == y).mean():.1f} %" in answer.text


def test_sentence_and_table_are_of_the_same_labels_where_a_short_budget_left_folds_out() -> None:
    runs = [m for c, w in {GCN: [0, 1, 2, 3], SHARP: [0, 5]}.items() for m in runs_of(c, Y, w)]
    runs += runs_of(MLP, Y, list(range(20)))[:2]  # the others were trained on five folds
    evidence, groups = Evidence(runs, Y), deal(Y, 999)
    with_graph, without = sides(evidence, groups)["graph"]
    assert 0 < len(without.rows) < len(Y)
    assert with_graph.rows.tolist() == without.rows.tolist()
    answer = verdict("graph", evidence, groups, (with_graph, without), helps=True)
    assert answer.log_loss.n == len(without.rows)
    for side in (with_graph, without):  # as the table has it
        assert f"{account(side, evidence)['after']['log_loss']:.3f}" in answer.text
        assert f"accuracy {100 * account(with_graph, evidence)['after']['accuracy']:.1f} % with it" in answer.text


def test_sharpening_is_asked_of_networks_alone() -> None:
    """A regression that beats every network says nothing about sharpening them."""
    logistic = Candidate("logistic")
    graph, sharpening = answers(
        {GCN: list(range(20)), SHARP: list(range(5)), logistic: [], MLP: list(range(30))}, logistic
    )
    assert graph.log_loss.mean_a < sharpening.log_loss.mean_a
    assert sharpening.text.startswith("Sharpening helps: log-loss ")
    assert "accuracy 91.7 % with it, 66.7 % without" in sharpening.text
    assert "What is used does without it. Networks are compared, which alone can be sharpened." in sharpening.text


def test_probabilities_tell_where_answers_do_not() -> None:
    """Two models that answer alike: one is surer where it is right. Accuracy cannot tell them apart, log-loss can."""
    wrong = list(range(0, 60, 6))
    plain = runs_of(GCN, Y, wrong)
    surer = []
    for run in runs_of(SHARP, Y, wrong):
        right = ~np.isin(run.test, wrong)
        surer.append(dataclasses.replace(run, opinions=run.opinions * np.where(right, 2.0, 0.1)[:, None]))
    (answer,) = judged([*plain, *surer], SHARP)
    assert answer.difference.difference == 0
    assert answer.clear
    assert answer.text.startswith("Sharpening helps: log-loss ")
    assert "(+0.0 points)" in answer.text


def test_what_does_not_help_is_said_plainly() -> None:
    graph, sharpening = answers({GCN: list(range(30)), MLP: [0], Candidate("mlp", 0.5): [0, 1, 2]}, MLP)
    assert graph.text.startswith("The graph does not help: log-loss ")
    assert not graph.helps
    assert sharpening.text.startswith("Whether sharpening helps, these labels cannot tell: log-loss ")
    assert sharpening.text.endswith("What is used does without it.")
    assert not sharpening.clear


def test_what_is_used_against_the_labels_is_said() -> None:
    graph, _ = answers({GCN: list(range(30)), MLP: [0], Candidate("mlp", 0.5): [0, 1, 2]}, GCN)
    assert graph.text.startswith("The graph does not help: ")
    assert graph.text.endswith("What is used has it.")


def test_an_interval_without_a_choice_is_that_of_the_pairs() -> None:
    (alone,) = answers({GCN: list(range(8)), SHARP: [0, 20]}, SHARP)
    d = np.array([(i in range(8)) - (i in (0, 20)) for i in range(60)])
    assert alone.difference.t_interval == pytest.approx(100 * np.array(ttest_1samp(d, 0).confidence_interval()))
    (several,) = answers({GCN: list(range(8)), SHARP: [0, 20], Candidate("gcn", 1.0): list(range(50))}, SHARP)
    low, high = several.difference.t_interval
    assert several.difference.difference == alone.difference.difference
    assert high - low == pytest.approx(1.5 * np.ptp(alone.difference.t_interval))


def test_help_is_rarely_found_where_there_is_none() -> None:
    """Eight variants that are right with the same chance as the plain one: the best of them looks better, and is not.

    A t-interval on the labels that chose it calls that help in about one search of seven.
    """
    rng, runs = np.random.default_rng(0), 150
    candidates = [GCN, *(Candidate("gcn", 0.1 * k) for k in range(1, 9))]
    said, naive = 0, 0
    for _ in range(runs):
        wrong = {c: np.flatnonzero(rng.random(60) > 0.75).tolist() for c in candidates}
        found = Evidence([m for c in candidates for m in runs_of(c, Y, wrong[c])], Y)
        (best,) = choose(found, ensemble=False)
        groups = deal(Y, 999)
        both = sides(found, groups, ensemble=False)["sharpening"]
        said += verdict("sharpening", found, groups, both, helps=True).text.startswith("Sharpening helps")
        seen = found.hits(best) - found.hits(GCN)
        naive += best.sharpens and ttest_1samp(seen, 0).confidence_interval().low > 0
    assert naive > 0.08 * runs  # the trap is there
    assert said <= 0.05 * runs
