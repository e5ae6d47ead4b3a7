"""Class proportions: the term they add, how they are written, and what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sharpen import Graph, InputError, SharpeningLoss, Split, Trial, first_choice, train
from sharpen.kernels import backend
from sharpen.kernels.loss import population_loss
from sharpen.objective import Objective, class_use, divergence, sharpening_parts
from sharpen.prior import canonical_prior, prior_by_class, proportions

Y = torch.tensor([0, 1, 2, 0, -1, -1, -1])
LABELED = [0, 1, 2]


def shares(*weights: float) -> Tensor:
    values = torch.tensor(weights, dtype=torch.float64)
    return values / values.sum()


def random_logits(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# --- the term ---


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=8), st.lists(st.floats(0.01, 1), min_size=8, max_size=8))
def test_zero_at_the_prior_and_nowhere_else(prior: list[float], other: list[float]) -> None:
    pi, mean = shares(*prior), shares(*other[: len(prior)])
    assert divergence(pi, pi).item() == pytest.approx(0, abs=1e-12)
    apart = float((mean - pi).abs().max())
    value = divergence(mean, pi).item()
    assert value >= 0
    assert value > 0 or apart < 1e-6


def test_it_is_zero_where_the_mean_prediction_equals_the_prior() -> None:
    """Two unlabeled nodes that lean to opposite sides: their mean is what it is, however sure each is."""
    logits = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
    trace = SharpeningLoss(0.25, balance=1.0, prior=[0.5, 0.5]).parts(logits, torch.tensor([0, -1, -1]), labeled=[0])
    assert trace.divergence.item() == pytest.approx(0, abs=1e-15)
    away = SharpeningLoss(0.25, balance=1.0, prior=[0.9, 0.1]).parts(logits, torch.tensor([0, -1, -1]), labeled=[0])
    assert away.divergence.item() > 0.1
    assert away.loss.item() == pytest.approx(trace.loss.item() + away.divergence.item())


def test_the_gradient_agrees_with_finite_differences() -> None:
    logits = random_logits(2, 7, 3).requires_grad_()
    loss = SharpeningLoss([0.25, 0.5], balance=[0.3, 2.0], prior=[[0.2, 0.3, 0.5], [0.8, 0.1, 0.1]])
    assert torch.autograd.gradcheck(lambda z: loss(z, Y, labeled=LABELED), (logits,))


@pytest.mark.parametrize("shift", [-3.0, 0.5, 40.0])
def test_adding_the_same_to_all_logits_changes_nothing(shift: float) -> None:
    logits = random_logits(7, 3)
    loss = SharpeningLoss(0.25, balance=1.0, prior=[0.2, 0.3, 0.5])
    torch.testing.assert_close(loss(logits + shift, Y, labeled=LABELED), loss(logits, Y, labeled=LABELED))


def test_uniform_proportions_are_the_balance_as_it_was() -> None:
    """For Gini, up to a constant: the same gradient."""
    gradients = []
    for prior in (None, [1 / 3] * 3):
        logits = random_logits(7, 3).requires_grad_()
        SharpeningLoss(0.25, balance=0.7, prior=prior)(logits, Y, labeled=LABELED).backward()
        gradients.append(logits.grad)
    torch.testing.assert_close(*gradients)


def test_members_have_priors_of_their_own_and_do_not_touch_each_other() -> None:
    logits, priors = random_logits(3, 7, 3), [[0.2, 0.3, 0.5], [1 / 3] * 3, [0.8, 0.1, 0.1]]
    together = SharpeningLoss(0.5, balance=0.5, prior=priors)(logits, Y, labeled=LABELED)
    for r, prior in enumerate(priors):
        alone = SharpeningLoss(0.5, balance=0.5, prior=prior)(logits[r], Y, labeled=LABELED)
        torch.testing.assert_close(together[r], alone)
    logits[1] = torch.nan
    spoilt = SharpeningLoss(0.5, balance=0.5, prior=priors)(logits, Y, labeled=LABELED)
    assert spoilt.isnan().tolist() == [False, True, False]
    torch.testing.assert_close(spoilt[[0, 2]], together[[0, 2]])


def test_no_unlabeled_node_adds_nothing_and_no_nan() -> None:
    logits = random_logits(3, 3).requires_grad_()
    loss = SharpeningLoss(0.25, balance=1.0, prior=[0.2, 0.3, 0.5])
    value = loss(logits, torch.tensor([0, 1, 2]), labeled=[0, 1, 2])
    value.backward()
    assert loss.parts(logits, torch.tensor([0, 1, 2]), labeled=[0, 1, 2]).divergence.item() == 0
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_one_class_leaves_nothing_to_pull() -> None:
    logits, half = random_logits(4, 1).requires_grad_(), torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64) / 2
    parts = sharpening_parts(logits, torch.zeros(4, dtype=torch.int64), half, 0.5 - half, prior=shares(1))
    assert parts.divergence is not None
    (gradient,) = torch.autograd.grad(parts.divergence, logits)
    assert parts.divergence.item() == 0
    torch.testing.assert_close(gradient, torch.zeros_like(logits))


def test_a_class_without_a_label_is_pulled_up() -> None:
    """Class 2 has no label; the prior alone keeps it alive."""
    logits = torch.zeros(7, 3, dtype=torch.float64, requires_grad=True)
    SharpeningLoss(0.0, balance=1.0, prior=[0.1, 0.1, 0.8])(logits, Y.clamp(max=1), labeled=[0, 1]).backward()
    assert logits.grad is not None
    assert (logits.grad[4:, 2] < 0).all()
    assert (logits.grad[4:, :2] > 0).all()


def test_the_fused_kernel_declines_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "fused", lambda logits: True)
    lam = torch.tensor([0.25])
    objective = Objective(lam, -lam, prior=torch.tensor([[0.5, 0.5]]), balance=torch.tensor([1.0]))
    assert not objective.is_gini
    assert not Objective(lam, -lam, prior=torch.tensor([[0.5, 0.5]])).is_gini
    half = torch.tensor([[1.0, 0.0]])
    loss, _ = population_loss(torch.zeros(1, 2, 2), torch.tensor([0, -1]), half, 1 - half, objective)
    assert loss.item() == pytest.approx(math.log(2))


# --- whether classes are in use ---


def test_class_use_is_a_ratio_of_entropies() -> None:
    logits = random_logits(2, 7, 3)
    labeled = torch.tensor([1.0, 1.0, 1.0, 0, 0, 0, 0]) / 3
    unlabeled = (labeled == 0) / 4
    p = torch.softmax(logits, -1)[:, 3:].mean(1).numpy()
    expected = -(p * np.log(p)).sum(1) / np.log(3)
    np.testing.assert_allclose(class_use(logits, Y, labeled, unlabeled), expected)
    collapsed = torch.zeros(7, 3)
    collapsed[:, 1] = 50.0
    assert class_use(collapsed, Y, labeled, unlabeled).item() < 1e-6
    one_class = class_use(logits, torch.zeros(7, dtype=torch.int64), labeled, unlabeled)
    assert one_class.isnan().all()


def test_parts_has_the_number() -> None:
    collapsed = torch.zeros(7, 3)
    collapsed[:, 1] = 50.0
    assert SharpeningLoss().parts(collapsed, Y, labeled=LABELED).class_use.item() < 1e-6
    assert SharpeningLoss().parts(torch.zeros(7, 3), Y, labeled=LABELED).class_use.item() == pytest.approx(1)


# --- what to begin with ---


def test_auto_takes_lambda_and_balance_from_the_number_of_labels() -> None:
    logits = random_logits(7, 3)
    lam, balance = first_choice(1)
    assert balance > 0
    automatic = SharpeningLoss("auto")(logits, Y, labeled=LABELED)
    torch.testing.assert_close(automatic, SharpeningLoss(lam, balance=balance)(logits, Y, labeled=LABELED))
    own = SharpeningLoss("auto", balance=2.0)(logits, Y, labeled=LABELED)
    torch.testing.assert_close(own, SharpeningLoss(lam, balance=2.0)(logits, Y, labeled=LABELED))


def test_auto_looks_at_each_member() -> None:
    logits = random_logits(2, 400, 2)
    y = torch.arange(400) % 2
    many = torch.zeros(2, 400, dtype=torch.bool)
    many[0, :4], many[1, :300] = True, True
    both = SharpeningLoss("auto")(logits, y, labeled=many)
    for r, count in enumerate((2, 150)):
        lam, balance = first_choice(count)
        alone = SharpeningLoss(lam, balance=balance)(logits[r], y, labeled=many[r])
        torch.testing.assert_close(both[r], alone)


# --- how it is written ---


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.4], r"prior sums to 0.9; give shares that sum to 1"),
        ([1.0, 0.0], r"prior is 0.0 for class 1; give every class a share above 0"),
        ([0.5, math.nan], r"prior is nan for class 1"),
        ("uniform", r"prior is 'uniform'; give one share above 0 for each class"),
        (0.5, r"prior is 0.5; give one share"),
    ],
)
def test_a_prior_that_cannot_be_is_refused(prior: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SharpeningLoss(0.25, balance=1.0, prior=prior)  # type: ignore[arg-type]


def test_a_prior_that_would_do_nothing_is_refused() -> None:
    for make in (lambda: SharpeningLoss(0.25, prior=[0.5, 0.5]), lambda: Trial(lam=0.25, prior="uniform")):
        with pytest.raises(InputError, match=r"balance is 0, so that it would do nothing; give a balance"):
            make()
    loss = SharpeningLoss(0.25, balance=1.0, prior=[0.2, 0.3, 0.5])
    loss.balance = 0.0
    with pytest.raises(InputError, match="balance is 0"):
        loss(random_logits(7, 3), Y, labeled=LABELED)


def test_a_prior_of_other_classes_is_refused() -> None:
    with pytest.raises(InputError, match=r"prior has shape \[2\] but logits have shape \[7, 3\]; give one share"):
        SharpeningLoss(0.25, balance=1.0, prior=[0.5, 0.5])(random_logits(7, 3), Y, labeled=LABELED)
    ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    halves = Split("halves", train=[0, 3], val=[1, 4], test=[2, 5])
    trial = Trial(hidden=4, epochs=2, balance=1.0, prior="0.2,0.3,0.5")
    with pytest.raises(InputError, match=r"prior has 3 shares, but .* has 2 classes; give one share for each class"):
        train(ring, [trial], splits=[halves], device="cpu", progress=False)


def test_ways_to_write_one_prior_are_one_trial() -> None:
    made = [Trial(balance=1.0, prior=p).id for p in ("0.85,0.15", "0.850, 0.15", [0.85, 0.15], np.array([0.85, 0.15]))]
    assert len(set(made)) == 1
    assert Trial(balance=1.0, prior="labels").id != Trial(balance=1.0).id
    assert Trial(balance=1.0, prior=None).id == Trial(balance=1.0).id


@pytest.mark.parametrize("bad", ["unifrom", "0.5;0.5", [], "0.5,-0.5,1", "1.5", {"a": 1}])
def test_what_is_no_prior_is_named(bad: object) -> None:
    with pytest.raises(InputError, match="prior"):
        canonical_prior(bad)


def test_shares_by_class_name(tmp_path: Path) -> None:
    names = ["dem", "gop"]
    file = tmp_path / "shares.csv"
    file.write_text("class,share\ngop,0.85\ndem,0.15\n")
    for given_ in ("gop=0.85,dem=0.15", {"gop": 0.85, "dem": 0.15}, [0.15, 0.85], str(file), file):
        assert prior_by_class(given_, names) == "0.15,0.85"
    assert prior_by_class("labels", names) == "labels"
    assert prior_by_class(None, names) is None


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ("gop=0.85", r"no share for class 'dem'; give one for each of dem, gop"),
        ("gop=0.85,dme=0.15", r"a share for 'dme', which is no class; did you mean 'dem'"),
        ("gop=0.85,gop=0.15", r"two shares for class 'gop'"),
        ("gop=0.85,dem=0.25", r"sums to 1.1; give shares that sum to 1"),
        ("gop=0.85,dem", r"give a share for each class"),
        ("gop=a,dem=0.5", r"class_prior is"),
        ("1,", r"class_prior is"),
        ([0.2, 0.3, 0.5], r"has 3 shares, but there are 2 classes"),
        ("nowhere.csv", r"names the file nowhere.csv, which cannot be read"),
    ],
)
def test_shares_that_do_not_fit_the_classes_are_refused(given_: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prior_by_class(given_, ["dem", "gop"])


def test_words_become_shares() -> None:
    assert proportions("labels", 3, [0, 0, 1], []) == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    assert proportions("oracle", 2, [0], [0] * 98 + [-1] * 5) == pytest.approx([0.99, 0.01])
    assert proportions("0.5,0.3,0.2", 3, [], []) == pytest.approx([0.5, 0.3, 0.2])


# --- in training ---


def test_training_reaches_the_proportions() -> None:
    """A strong prior moves the mean prediction to where it says, whatever the labels are."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 4, generator=generator)
    graph = Graph(x=x, edge_index=[[0], [1]], y=(x[:, 0] > 0).long())
    split = Split("mine", train=range(10), val=range(10, 20), test=range(20, 60))
    trials = [
        Trial(model="mlp", layers=2, hidden=16, dropout=0.0, lr=0.01, epochs=200, lam=lam, balance=20.0, prior=prior)
        for lam, prior in ((0.0, "0.8,0.2"), (0.0, "0.3,0.7"), (0.25, "labels"))
    ]
    records = train(graph, trials, splits=[split], device="cpu", progress=False, choose="last")
    means = [torch.softmax(torch.tensor(record.logits), -1)[10:].mean(0)[0].item() for record in records]
    wanted = [0.8, 0.3, proportions("labels", 2, graph.y[:10], [])[0]]
    assert means == pytest.approx(wanted, abs=0.03)


def test_a_population_with_and_without_a_prior_gives_what_each_gives_alone() -> None:
    ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    halves = Split("halves", train=[0, 3], val=[1, 4], test=[2, 5])
    trials = [
        Trial(hidden=8, epochs=10, lam=0.25, balance=balance, prior=prior, lam_max=None)
        for balance, prior in ((0.0, None), (0.5, None), (0.5, "0.7,0.3"), (0.5, "uniform"))
    ]
    kept = {"splits": [halves], "device": "cpu", "progress": False, "precision": "float64"}
    together = train(ring, trials, **kept)  # type: ignore[arg-type]
    for trial, record in zip(trials, together, strict=True):
        (alone,) = train(ring, [trial], **kept)  # type: ignore[arg-type]
        np.testing.assert_allclose(alone.logits, record.logits, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(together[1].logits, together[3].logits, rtol=1e-6, atol=1e-9)


def test_a_learned_lambda_takes_a_prior_too() -> None:
    ring = Graph(x=torch.eye(6), edge_index=[[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]], y=[0, 0, 0, 1, 1, 1])
    halves = Split("halves", train=[0, 3], val=[1, 4], test=[2, 5])
    trial = Trial(hidden=8, epochs=25, lam_max=1.0, balance=0.5, prior="0.7,0.3")
    (record,) = train(ring, [trial], splits=[halves], device="cpu", progress=False)
    assert record.status == "ok"
    assert record.traces["lam"][-1] > 0


def test_sums_that_the_parts_return_are_those_of_the_prior() -> None:
    logits, weight = random_logits(2, 7, 3), torch.full((7,), 1 / 7, dtype=torch.float64)
    pi = shares(1, 2, 3)
    parts = sharpening_parts(logits, Y, weight, weight, prior=pi)
    mean = torch.softmax(logits, -1).mean(1)
    expected = ((mean - pi) ** 2 / pi).sum(1) / 3
    torch.testing.assert_close(parts.divergence, expected)
