"""The choice, from runs whose mistakes are known."""

import dataclasses

import numpy as np
import pytest
import torch

from sharpen.errors import InputError
from sharpen.fitting.calibrated import cross_fit, fit_mean_temperature, mean_probabilities, quality, sharpen_by
from sharpen.fitting.candidates import Candidate, list_candidates, order, trust_in
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import deal
from sharpen.fitting.runs import Run
from sharpen.fitting.selection import choose, shortlist
from sharpen.graph import Graph
from tests.fitting.camps import runs_of, two_camps

Y = np.array([0, 1] * 20)
GCN, SHARP, MLP = Candidate("gcn"), Candidate("gcn", 0.25), Candidate("mlp")


def evidence(wrong: dict[Candidate, list[int]], metric: str = "accuracy", rounds: int = 1) -> Evidence:
    return Evidence([m for c, nodes in wrong.items() for m in runs_of(c, Y, nodes, rounds)], Y, metric)


def test_scores_count_the_held_out_nodes() -> None:
    found = evidence({GCN: [0, 1, 2, 3], SHARP: [0, 1], MLP: list(range(20))})
    assert [found.score(c) for c in (GCN, SHARP, MLP)] == [0.9, 0.95, 0.5]
    keep = np.arange(40) >= 2
    assert found.score(GCN, keep) == pytest.approx(36 / 38)


def test_the_balanced_score_counts_classes_alike() -> None:
    y = np.array([0] * 30 + [1] * 10)
    found = Evidence(runs_of(GCN, y, list(range(30, 35))), y, "balanced-accuracy")
    assert found.score(GCN) == pytest.approx((1 + 0.5) / 2)


def test_the_best_is_chosen_and_those_like_it_join_it() -> None:
    also = Candidate("gcn", 0.5)
    found = evidence({GCN: [0, 1, 2], SHARP: [0, 1], also: [0, 2, 3], MLP: list(range(20))})
    shares = choose(found)
    assert next(iter(shares)) == SHARP
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[SHARP] > max(shares.get(GCN, 0), shares.get(also, 0))
    assert MLP not in shares
    assert choose(found, ensemble=False) == {SHARP: 1.0}
    assert list(choose(found, among=lambda c: not c.sharpens)) == [GCN]


def test_two_that_err_in_different_places_are_better_together() -> None:
    """Each is wrong, and little sure, where the other is right and sure: the mean is right everywhere."""

    def unsure_where_wrong(candidate: Candidate, wrong: list[int]) -> list[Run]:
        return [
            dataclasses.replace(r, opinions=r.opinions * np.where(np.isin(r.test, wrong), 0.2, 1.5)[:, None])
            for r in runs_of(candidate, Y, wrong)
        ]

    first, second = list(range(10)), list(range(10, 20))
    found = Evidence([*unsure_where_wrong(GCN, first), *unsure_where_wrong(SHARP, second)], Y)
    shares = choose(found)
    assert shares == pytest.approx({GCN: 0.5, SHARP: 0.5}, abs=0.1)
    assert (mean_probabilities(found, shares).argmax(1) == Y).all()
    assert found.score(GCN) == found.score(SHARP) == 0.75


def test_many_labels_tell_and_few_leave_shares_equal() -> None:
    def share_of_the_better(labels: int) -> float:
        y, rng = np.arange(labels) % 2, np.random.default_rng(0)
        wrong = {GCN: 0.20, SHARP: 0.24}
        runs = [m for c, w in wrong.items() for m in runs_of(c, y, np.flatnonzero(rng.random(labels) < w).tolist())]
        return choose(Evidence(runs, y)).get(GCN, 0.0)

    assert share_of_the_better(2000) > 0.6
    assert 0.3 < share_of_the_better(20) < 0.9


def test_the_ensemble_is_never_clearly_worse_than_its_best_by_the_labels_that_chose_it() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        wrong = {Candidate("gcn", float(k)): np.flatnonzero(rng.random(40) < 0.3).tolist() for k in range(6)}
        found = evidence(wrong)
        loss = {c: -np.log(mean_probabilities(found, {c: 1.0})[np.arange(40), Y]) for c in shortlist(found)}
        best = min(loss.values(), key=np.mean)
        gap = -np.log(mean_probabilities(found, choose(found))[np.arange(40), Y]) - best
        assert gap.mean() <= 1.5 * gap.std() / np.sqrt(40) + 1e-9


def test_of_ten_labels_the_luckiest_does_not_take_all() -> None:
    y = np.arange(10) % 2
    many = {Candidate("gcn", float(k)): [k, k + 1, 9] for k in range(2, 7)} | {MLP: [0, 1]}
    shares = choose(Evidence([m for c, wrong in many.items() for m in runs_of(c, y, wrong)], y))
    assert next(iter(shares)) == MLP
    assert len(shares) > 3


def test_noise_beside_a_model_is_not_taken_for_help() -> None:
    """A weight that is fitted gains something on the labels it is fitted by, even where the second opinion knows nothing."""
    rng, y, noisy = np.random.default_rng(0), np.arange(20) % 2, 0
    for _ in range(20):
        alone = runs_of(GCN, y, rng.permutation(20)[:6].tolist())
        beside = [np.concatenate([m.opinions, rng.normal(size=m.opinions.shape)]) for m in alone]
        both = [
            dataclasses.replace(m, candidate=dataclasses.replace(GCN, spread=True), opinions=o)
            for m, o in zip(alone, beside, strict=True)
        ]
        noisy += next(iter(choose(Evidence([*alone, *both], y)))).spread
    assert noisy <= 8


def test_few_labels_do_not_silence_a_model_and_many_do() -> None:
    """Of what is wrong more often than right nothing would be left but a whisper, whatever its share."""

    def weight(labels: int) -> float:
        y = np.arange(labels) % 2
        wrong = [node for node in range(labels) if node % 20 < 11]
        return float(Evidence(runs_of(GCN, y, wrong), y).weights(GCN)[0])

    assert weight(40) > 0.1
    assert weight(2000) < 0.05


def test_what_paid_on_graphs_of_this_kind_is_trusted_first() -> None:
    linear, trees, grand = Candidate("linear"), Candidate("trees"), Candidate("grand", 0.5, 3)
    table, words = two_camps(), Graph(x=np.eye(200), edge_index=[[0], [1]])
    alike = {trees: [0], GCN: [1], linear: [2], grand: [3]}
    runs = [m for c, nodes in alike.items() for m in runs_of(c, Y, nodes)]
    on_table, on_words = (choose(Evidence(runs, Y, trust=trust_in(graph))) for graph in (table, words))
    assert on_table[linear] > 2 * on_words[linear]
    assert on_words[grand] > 2 * on_table.get(grand, 0)
    assert on_table[linear] > on_table[trees]
    of_many = trust_in(Graph(x=np.ones((4, 200)), edge_index=[[0], [1]]))
    weak = Candidate("grand", 0.5, 0.5)
    assert of_many(weak, True) > of_many(linear, True) == of_many(MLP, True) == 1 > of_many(grand, True)
    # Where labels say otherwise, they are heard.
    runs = [m for c, nodes in {GCN: [], grand: list(range(15))}.items() for m in runs_of(c, Y, nodes)]
    assert choose(Evidence(runs, Y, trust=trust_in(words))) == {GCN: 1.0}


def test_a_lucky_one_does_not_take_all_from_one_that_is_trusted() -> None:
    """It is better by seven labels of forty, which is less than two standard errors."""
    linear = Candidate("linear")
    runs = [m for c, wrong in {MLP: list(range(5)), linear: list(range(3, 15))}.items() for m in runs_of(c, Y, wrong)]
    assert choose(Evidence(runs, Y, trust=trust_in(two_camps())))[linear] > 0.25
    assert choose(Evidence(runs, Y))[MLP] > 0.6


def test_where_averages_over_neighbours_say_nothing_words_are_columns_of_a_table() -> None:
    """What is trusted on words averages over neighbours. Where held-out labels do not bear that out, it is trusted no more."""
    linear, grand, hops = Candidate("linear"), Candidate("grand", 0.5, 3), Candidate("logistic")
    words = trust_in(Graph(x=np.eye(200), edge_index=[[0], [1]]))

    def found(wrong: list[int]) -> Evidence:
        runs = {linear: list(range(16)), grand: wrong, hops: wrong}
        return Evidence([m for c, nodes in runs.items() for m in runs_of(c, Y, nodes)], Y, trust=words)

    told, nothing = found(list(range(8))), found(list(range(20)))
    assert told.trust(grand) > told.trust(linear)
    assert nothing.trust(linear) > nothing.trust(grand)
    assert nothing.trust(linear) > nothing.trust(dataclasses.replace(linear, spread=True))
    assert told.trust(linear) == told.trust(dataclasses.replace(linear, spread=True))
    assert choose(nothing)[linear] > 2 * choose(nothing).get(grand, 0)
    assert linear not in choose(told) or choose(told)[grand] > choose(told)[linear]
    few = np.where(np.arange(len(Y)) < 24, Y, -1)  # so few that models of any kind look like guessing
    runs = [m for c in (linear, grand, hops) for m in runs_of(c, few, list(range(12)))]
    assert Evidence(runs, few, trust=words).trust(grand) > Evidence(runs, few, trust=words).trust(linear)


def test_a_dozen_lucky_ones_do_not_crowd_out_those_that_are_trusted() -> None:
    lucky = {Candidate("gat", lam / 10): [lam % 3] for lam in range(1, 13)}
    grand, words = Candidate("grand", 0.5, 3), Graph(x=np.eye(200), edge_index=[[0], [1]])
    runs = [m for c, nodes in {**lucky, grand: [0, 1, 2]}.items() for m in runs_of(c, Y, nodes)]
    found = Evidence(runs, Y, trust=trust_in(words))
    assert len(shortlist(found)) == 6
    assert shortlist(found)[-1] == grand
    assert choose(found)[grand] > 0.2
    assert grand not in choose(Evidence(runs, Y))


def test_of_equals_the_less_surprised_wins() -> None:
    unsure = [dataclasses.replace(m, opinions=m.opinions * (m.test[:, None] % 3)) for m in runs_of(GCN, Y, [0])]
    assert list(choose(Evidence([*unsure, *runs_of(SHARP, Y, [0])], Y), ensemble=False)) == [SHARP]


def test_opinions_are_weighed_by_labels_that_they_are_not_judged_by() -> None:
    """Beside a model that is always right, one that knows nothing gets no weight; beside a poor one, one that is right does."""
    right, wrong, nothing = runs_of(GCN, Y, []), runs_of(GCN, Y, list(range(30))), np.zeros((1, 8, 2))

    def beside(one: list[Run], other: list[np.ndarray]) -> Evidence:
        both = [np.concatenate([m.opinions, o]) for m, o in zip(one, other, strict=True)]
        return Evidence([dataclasses.replace(m, opinions=o) for m, o in zip(one, both, strict=True)], Y)

    found = beside(right, [nothing] * 5)
    assert found.score(GCN) == 1
    found = beside(wrong, [m.opinions for m in right])
    assert found.score(GCN) == 1
    own, other = found.weights(GCN)
    assert other > 1 > own
    # Noise that fits some labels by chance does not help to be judged by them.
    rng = np.random.default_rng(0)
    noise = [2 * np.eye(2)[rng.integers(0, 2, (1, 8))] for _ in range(5)]
    blank = [dataclasses.replace(m, opinions=nothing) for m in right]
    assert beside(blank, noise).score(GCN) < 0.7


def test_of_equals_the_plain_one_wins() -> None:
    assert list(choose(evidence({SHARP: [1], GCN: [0]}), ensemble=False)) == [GCN]


def test_the_shortlist_reads_the_first_round_alone() -> None:
    better_later = [*runs_of(SHARP, Y, [0, 1])[:5], *runs_of(SHARP, Y, [], 2)[5:]]
    found = Evidence([*better_later, *runs_of(GCN, Y, [0], 2)], Y)
    assert [found.score(c, first_round=True) for c in (SHARP, GCN)] == [0.95, 0.975]
    assert [found.score(c) for c in (SHARP, GCN)] == [0.975, 0.975]
    assert shortlist(found)[0] == GCN


def test_of_equals_one_that_uses_the_graph_is_chosen() -> None:
    for tried in ((MLP, GCN), (GCN, MLP)):
        assert choose(evidence({candidate: [0] for candidate in tried}), ensemble=False) == {GCN: 1.0}
    assert choose(evidence({MLP: [0], GCN: [0, 1]}), ensemble=False) == {MLP: 1.0}


def test_a_candidate_that_diverged_is_not_chosen() -> None:
    broken = [dataclasses.replace(m, ok=False) for m in runs_of(SHARP, Y, [])]
    assert choose(Evidence([*broken, *runs_of(GCN, Y, [0, 1])], Y)) == {GCN: 1.0}
    with pytest.raises(InputError, match="every training run diverged"):
        choose(Evidence(broken, Y))


def test_temperatures_make_confidence_meet_accuracy() -> None:
    found = evidence({GCN: list(range(10))})  # sure to 88 %, right in 75 %
    raw = mean_probabilities(found, {GCN: 1.0}, calibrated=False)
    assert raw.max(1) == pytest.approx(1 / (1 + np.exp(-2)))
    calibrated = sharpen_by(mean_probabilities(found, {GCN: 1.0}), fit_mean_temperature(found, {GCN: 1.0}))
    assert calibrated.max(1).mean() == pytest.approx(0.75, abs=0.05)  # five small folds and smoothing pull a little
    assert (calibrated.argmax(1) == raw.argmax(1)).all()


def test_weights_read_only_the_labels_to_keep() -> None:
    keep = np.arange(40) >= 10
    one, other = (evidence({GCN: wrong}).weights(GCN, keep) for wrong in ([], list(range(10))))
    assert one == other
    assert evidence({GCN: []}).weights(GCN) != evidence({GCN: list(range(10))}).weights(GCN)
    # Thirty nodes, all right: sure to 31/32, by Platt's rule.
    p = mean_probabilities(evidence({GCN: []}), {GCN: 1.0}, keep)
    assert p.max(1) == pytest.approx(31 / 32, abs=1e-4)


def test_the_account_does_not_see_the_labels_it_judges_by() -> None:
    # Each candidate is right on one half only. Whoever sees all labels picks a candidate that is right on half of them and more;
    # choosing without the group that is judged must not profit from it.
    rng = np.random.default_rng(0)
    many = {Candidate("gcn", float(k)): rng.permutation(40)[:20].tolist() for k in range(1, 60)}
    found = evidence(many)
    groups = deal(Y, 999)
    honest = cross_fit(found, groups, ensemble=False)
    seen = max(found.score(c) for c in many)
    assert seen == 0.5
    assert sorted(honest.rows) == list(range(40))
    assert (
        quality(honest.after, Y)["accuracy"] < 0.5
    )  # a winner on the rest is a loser on the group: halves are exactly 20


def test_auto_tries_every_family_and_the_cheap_one_first() -> None:
    camps = two_camps()
    candidates = order(list_candidates(), camps)
    few, many, weak = Candidate("grand", 0.5, 3), Candidate("grand", 1, 1), Candidate("grand", 0.5, 0.5)
    assert candidates[:6] == [Candidate("logistic"), Candidate("linear"), weak, GCN, Candidate("gcn", 0.25, 0.25), MLP]
    assert {few, many} < set(candidates[6:])
    of_words = order(list_candidates(), dataclasses.replace(camps, x=np.eye(40, 120)))
    assert of_words.index(few) < of_words.index(many)
    forty_of_words = order(list_candidates(), dataclasses.replace(two_camps(labeled=40), x=np.eye(40, 120)))
    assert forty_of_words.index(many) < forty_of_words.index(weak)
    forty = order(list_candidates(), two_camps(labeled=40))  # 20 of each class
    assert forty[2:6] == [weak, GCN, SHARP, MLP]
    assert [(c.lam, c.balance) for c in list_candidates("grand")] == [(0, 0), (1, 1), (0.5, 3), (0.5, 0.5)]
    assert [(c.lam, c.balance) for c in list_candidates("appnp")] == [(0, 0), (0.5, 0.5), (1, 1)]
    assert [(c.lam, c.balance) for c in list_candidates("grand", lam=0.25)] == [
        (0, 0),
        (0.25, 1),
        (0.25, 3),
        (0.25, 0.5),
    ]
    assert {c.model for c in candidates} == {
        "mlp", "gcn", "sage", "gat", "appnp", "gprgnn", "grand", "logistic", "linear", "trees",
    }  # fmt: skip
    assert len(set(candidates)) == len(candidates)
    few = dataclasses.replace(camps, y=torch.where(torch.arange(40) < 6, camps.y, -1))
    assert order(list_candidates(), few)[1:3] == [Candidate("self-training"), Candidate("linear")]
    alone = dataclasses.replace(camps, edge_index=torch.empty((2, 0), dtype=torch.long))
    assert {c.model for c in order(list_candidates(), alone)} == {"mlp", "logistic", "linear", "trees"}
    wide = dataclasses.replace(camps, x=np.ones((40, 600)))
    assert {"linear", "trees"} & {c.model for c in order(list_candidates(), wide)} == {"linear"}
    assert "trees" in {c.model for c in order(list_candidates("trees"), wide, automatic=False)}


def test_where_neighbours_differ_what_tells_them_apart_comes_first() -> None:
    y = np.arange(60) % 2
    ring = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
    unlike = order(list_candidates(), Graph(x=np.ones((60, 3)), edge_index=ring, y=y))
    models = list(dict.fromkeys(c.model for c in unlike))
    assert models.index("trees") < models.index("sage") < models.index("grand")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "gnc"}, "model is 'gnc'; did you mean 'gcn'. Choose auto, or one of mlp, gcn"),
        ({"model": []}, "empty list"),
        ({"lam": "much"}, "lam is 'much'"),
        ({"lam": float("nan")}, "finite"),
        ({"balance": [None]}, "balance is"),
    ],
)
def test_what_cannot_be_searched_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_candidates(**arguments)
