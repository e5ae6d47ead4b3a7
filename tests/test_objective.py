"""The objective against NumPy's formulas and torch's cross-entropy, by member, in a PyG loop, and its refusals."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.special
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from sharpen.entropy import tsallis_entropy
from sharpen.errors import InputError
from sharpen.loss import SharpeningLoss
from sharpen.objective import LossParts, combine, sharpening_parts

Y = torch.tensor([0, 1, 2, 0, -1, -1])
LABELED = torch.tensor([True, True, True, False, False, False])


def random_logits(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def numpy_entropy(p: np.ndarray, q: float) -> np.ndarray:
    return -scipy.special.xlogy(p, p).sum(-1) if q == 1 else (1 - (p**q).sum(-1)) / (q - 1)


def numpy_objective(
    logits: Tensor,
    y: Tensor,
    labeled: list[int],
    unlabeled: list[int],
    lam: float,
    lam_labeled: float,
    q: float,
    balance: float = 0.0,
    num_unlabeled: int | None = None,
) -> float:
    """The objective as the paper writes it, node by node."""
    p = scipy.special.softmax(logits.detach().double().numpy(), axis=-1)
    total = sum(-math.log(p[i, y[i]]) for i in labeled) / len(labeled)
    total += lam_labeled * sum(numpy_entropy(p[i], q) for i in labeled) / len(labeled)
    if unlabeled:
        total += lam * sum(numpy_entropy(p[i], q) for i in unlabeled) / (num_unlabeled or len(unlabeled))
        total -= balance * numpy_entropy(p[unlabeled].mean(0), q)
    return float(total)


# --- the value ---


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    lam=st.floats(-2, 2),
    lam_labeled=st.none() | st.floats(-2, 2),
    q=st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]),
    balance=st.floats(0, 2),
    data=st.data(),
)
def test_equals_the_formula(
    seed: int, lam: float, lam_labeled: float | None, q: float, balance: float, data: st.DataObject
) -> None:
    roles = data.draw(st.lists(st.sampled_from("LUN"), min_size=1, max_size=8).filter(lambda r: "L" in r))
    labeled = [i for i, role in enumerate(roles) if role == "L"]
    unlabeled = [i for i, role in enumerate(roles) if role == "U"]
    logits = random_logits(len(roles), 3, seed=seed)
    y = torch.tensor([seed % 3 if role == "L" else -1 for role in roles])
    loss = SharpeningLoss(lam, lam_labeled, q, balance)(logits, y, labeled, unlabeled)
    expected = numpy_objective(
        logits, y, labeled, unlabeled, lam, -lam if lam_labeled is None else lam_labeled, q, balance
    )
    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_hand_computed() -> None:
    """Four nodes without an opinion, two classes: cross-entropy log 2, every Gini entropy 1/2."""
    trace = SharpeningLoss(lam=0.5, lam_labeled=-0.25, balance=0.1).parts(
        torch.zeros(4, 2), torch.tensor([0, 1, -1, -1]), labeled=[0, 1]
    )
    assert trace.cross_entropy.item() == pytest.approx(math.log(2))
    assert trace.entropy_labeled.item() == pytest.approx(0.5)
    assert trace.entropy_unlabeled.item() == pytest.approx(0.5)
    assert trace.entropy_mean.item() == pytest.approx(0.5)
    assert trace.loss.item() == pytest.approx(math.log(2) + 0.5 * 0.5 - 0.25 * 0.5 - 0.1 * 0.5)


def test_without_lambda_it_is_cross_entropy() -> None:
    logits = random_logits(6, 3)
    loss = SharpeningLoss(lam=0.0)(logits, Y, labeled=LABELED)
    torch.testing.assert_close(loss, F.cross_entropy(logits[LABELED], Y[LABELED]))


def test_lam_labeled_defaults_to_minus_lam_and_zero_removes_the_term() -> None:
    logits = random_logits(6, 3)
    parts = SharpeningLoss(lam=0.5).parts(logits, Y, labeled=LABELED)
    difference = parts.entropy_unlabeled - parts.entropy_labeled
    torch.testing.assert_close(parts.loss, parts.cross_entropy + 0.5 * difference)
    without = SharpeningLoss(lam=0.5, lam_labeled=0.0)(logits, Y, labeled=LABELED)
    torch.testing.assert_close(without, parts.cross_entropy + 0.5 * parts.entropy_unlabeled)


def test_unlabeled_is_all_that_is_not_labeled() -> None:
    logits = random_logits(6, 3)
    by_default = SharpeningLoss()(logits, Y, labeled=LABELED)
    torch.testing.assert_close(by_default, SharpeningLoss()(logits, Y, labeled=LABELED, unlabeled=[3, 4, 5]))


@pytest.mark.parametrize(
    "nodes",
    [
        [0, 1, 2],
        [True, True, True, False, False, False],
        np.array([2, 0, 1]),
        torch.tensor([1, 2, 0], dtype=torch.int32),
        LABELED.numpy(),
    ],
)
def test_sets_of_nodes_may_be_masks_or_indices(nodes: Any) -> None:
    logits = random_logits(6, 3)
    expected = SharpeningLoss()(logits, Y, labeled=LABELED)
    torch.testing.assert_close(SharpeningLoss()(logits, Y, labeled=nodes), expected, rtol=0, atol=0)


@pytest.mark.parametrize("weights", [[1.0, 2.0, 5.0], [0.0, 1.0, 3.0]])
def test_class_weights_are_those_of_torch(weights: list[float]) -> None:
    logits, y = random_logits(6, 3), torch.tensor([0, 1, 2, 2, 1, -1])
    weight = torch.tensor(weights, dtype=torch.float64)
    parts = SharpeningLoss(class_weight=weights).parts(logits, y, labeled=[0, 1, 2, 3])
    torch.testing.assert_close(parts.cross_entropy, F.cross_entropy(logits[:4], y[:4], weight=weight))
    plain = SharpeningLoss().parts(logits, y, labeled=[0, 1, 2, 3])
    assert parts[2:] == plain[2:]  # the entropies are not weighed


def test_equal_class_weights_change_nothing_whatever_the_normalizer() -> None:
    logits, half = random_logits(6, 3), LABELED.double() / 6
    weighed = sharpening_parts(logits, Y, half, half, class_weight=torch.full((3,), 7.0))
    torch.testing.assert_close(weighed.cross_entropy, sharpening_parts(logits, Y, half, half).cross_entropy)


def test_a_part_of_the_unlabeled_nodes_with_the_normalizer_kept() -> None:
    """Sharpening nodes 4 and 5 of the three unlabeled ones leaves the force on each of them as it was."""
    logits = random_logits(6, 3).requires_grad_()
    loss = SharpeningLoss(lam=1.0, lam_labeled=0.0)
    (whole,) = torch.autograd.grad(loss(logits, Y, LABELED), logits)
    (part,) = torch.autograd.grad(loss(logits, Y, LABELED, unlabeled=[4, 5], num_unlabeled=3), logits)
    torch.testing.assert_close(part[[0, 1, 2, 4, 5]], whole[[0, 1, 2, 4, 5]])
    assert (part[3] == 0).all()
    value = loss(logits, Y, LABELED, unlabeled=[4, 5], num_unlabeled=3).item()
    assert value == pytest.approx(numpy_objective(logits, Y, [0, 1, 2], [4, 5], 1.0, 0.0, 2.0, num_unlabeled=3))


def test_the_mean_prediction_does_not_depend_on_the_normalizer() -> None:
    logits = random_logits(6, 3)
    means = [
        SharpeningLoss().parts(logits, Y, LABELED, unlabeled=[4, 5], num_unlabeled=n).entropy_mean for n in (None, 3)
    ]
    torch.testing.assert_close(means[0], means[1])
    p = scipy.special.softmax(logits.numpy(), -1)[4:].mean(0)
    assert means[0].item() == pytest.approx(1 - (p**2).sum())


def test_balance_rewards_the_use_of_all_classes() -> None:
    """Two sure unlabeled nodes: in one class the mean prediction has entropy 0, in two classes 1/2."""
    y = torch.tensor([0, -1, -1])
    collapsed = torch.tensor([[0.0, 0.0], [50.0, -50.0], [50.0, -50.0]])
    spread = torch.tensor([[0.0, 0.0], [50.0, -50.0], [-50.0, 50.0]])
    loss = SharpeningLoss(lam=1.0, balance=0.3)
    assert loss(collapsed, y, [0]).item() - loss(spread, y, [0]).item() == pytest.approx(0.3 * 0.5)


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_an_empty_unlabeled_set_adds_nothing(q: float, as_tensor: bool) -> None:
    logits = random_logits(3, 3).requires_grad_()
    order: float | Tensor = torch.tensor(q) if as_tensor else q
    for loss in (
        SharpeningLoss(lam=1.0, lam_labeled=0.0, balance=1.0, q=order),
        SharpeningLoss(lam=1.0, lam_labeled=0.0, balance=1.0, uncertainty=lambda z: tsallis_entropy(z, q)),
    ):
        parts = loss.parts(logits, Y[:3], labeled=[0, 1, 2], unlabeled=[])
        assert parts.entropy_unlabeled == parts.entropy_mean == 0
        (gradient,) = torch.autograd.grad(parts.loss, logits, create_graph=True)
        (second,) = torch.autograd.grad(gradient.square().sum(), logits)
        expected = F.cross_entropy(logits, Y[:3])
        torch.testing.assert_close(parts.loss, expected)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected, logits)[0])
        assert second.isfinite().all()


def test_labels_of_other_nodes_have_no_effect() -> None:
    results = []
    for others in ([-1, -1, -1], [0, 1, 2], [99, -7, 3]):
        logits = random_logits(6, 3).requires_grad_()
        y = torch.cat([Y[:3], torch.tensor(others)])
        loss = SharpeningLoss(balance=0.1, class_weight=[1.0, 2.0, 3.0])(logits, y, labeled=LABELED)
        results.append((loss, torch.autograd.grad(loss, logits)[0]))
    for loss, gradient in results[1:]:
        assert torch.equal(loss, results[0][0])
        assert torch.equal(gradient, results[0][1])


# --- uncertainties of one's own ---


def margin(logits: Tensor) -> Tensor:
    """One minus the lead of the likeliest class."""
    top = logits.softmax(-1).topk(2).values
    return 1 - (top[..., 0] - top[..., 1])


def test_any_uncertainty() -> None:
    logits = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]).log()
    parts = SharpeningLoss(lam=1.0, uncertainty=margin).parts(logits, torch.tensor([0, -1, -1]), labeled=[0])
    assert parts.entropy_labeled.item() == pytest.approx(0.2)
    assert parts.entropy_unlabeled.item() == pytest.approx((0.8 + 0.4) / 2)
    assert parts.entropy_mean.item() == pytest.approx(1 - 0.2)  # of the mean, (0.4, 0.6)
    assert parts.loss.item() == pytest.approx(-math.log(0.9) + 0.6 - 0.2)


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0])
def test_the_entropy_as_a_callable_is_the_entropy(q: float) -> None:
    logits = random_logits(4, 6, 3).requires_grad_()
    built_in = SharpeningLoss(q=q, balance=0.5)(logits, Y, LABELED)
    own = SharpeningLoss(balance=0.5, uncertainty=lambda z: tsallis_entropy(z, q))(logits, Y, LABELED)
    torch.testing.assert_close(own, built_in)
    gradients = [torch.autograd.grad(loss.sum(), logits)[0] for loss in (built_in, own)]
    torch.testing.assert_close(gradients[0], gradients[1])


# --- members ---


def test_members_together_equal_members_alone() -> None:
    members = 5
    logits = random_logits(members, 6, 3)
    y = torch.stack([Y, Y, Y.flip(0), Y, Y])
    labeled = torch.stack([LABELED, LABELED.roll(1) & (Y >= 0), LABELED.flip(0), Y >= 0, LABELED])
    weights = {
        "lam": torch.tensor([0.0, 0.25, -0.5, 1.0, 2.0]),  # exact in float32
        "lam_labeled": [0.5, -0.25, 0.0, -1.0, 0.1],
        "q": np.array([0.5, 1.0, 2.0, 3.0, 1.5]),
        "balance": torch.tensor([0.0, 0.1, 0.0, 1.0, 0.5], dtype=torch.float64),
    }
    together = SharpeningLoss(**weights, class_weight=[1.0, 2.0, 3.0]).parts(logits, y, labeled)  # type: ignore[arg-type]
    for r in range(members):
        own = {name: float(values[r]) for name, values in weights.items()}  # type: ignore[index]
        alone = SharpeningLoss(**own, class_weight=[1.0, 2.0, 3.0]).parts(logits[r], y[r], labeled[r])
        for name in alone._fields:
            torch.testing.assert_close(getattr(together, name)[r], getattr(alone, name), rtol=1e-12, atol=1e-12)


def test_members_may_share_labels_and_sets_and_have_several_leading_dimensions() -> None:
    logits = random_logits(2, 3, 6, 3)
    lam = torch.tensor([[0.0, 0.25, 0.5], [0.75, 1.0, 1.25]])
    together = SharpeningLoss(lam=lam, q=1.0)(logits, Y, labeled=[0, 1, 2], num_unlabeled=lam + 1)
    assert together.shape == (2, 3)
    for a in range(2):
        for b in range(3):
            alone = SharpeningLoss(lam=lam[a, b].item(), q=1.0)
            expected = alone(logits[a, b], Y, labeled=LABELED, num_unlabeled=lam[a, b].item() + 1)
            torch.testing.assert_close(together[a, b], expected, rtol=1e-12, atol=1e-12)


def test_indices_for_each_member() -> None:
    logits = random_logits(2, 6, 3)
    losses = SharpeningLoss()(logits, Y, labeled=torch.tensor([[0, 1], [2, 3]]))
    for r, nodes in enumerate(([0, 1], [2, 3])):
        torch.testing.assert_close(losses[r], SharpeningLoss()(logits[r], Y, labeled=nodes))


@pytest.mark.parametrize("q", [2.0, torch.tensor([0.5, 1.0, 2.0])])
def test_a_member_of_nan_spoils_no_other(q: float | Tensor) -> None:
    loss = SharpeningLoss(lam=[0.5, 0.5, 0.5], q=q, balance=0.1)
    sane = random_logits(3, 6, 3).requires_grad_()
    sick = sane.detach().clone()
    sick[1] = torch.tensor([math.nan, math.inf, 0.0])
    sick.requires_grad_()
    losses = [loss(z, Y, LABELED) for z in (sane, sick)]
    gradients = [torch.autograd.grad(value.sum(), z)[0] for value, z in zip(losses, (sane, sick), strict=True)]
    assert losses[1][1].isnan()
    for r in (0, 2):
        assert torch.equal(losses[0][r], losses[1][r])
        assert torch.equal(gradients[0][r], gradients[1][r])


# --- derivatives, precision, devices ---


@pytest.mark.parametrize("q", [0.5, 0.999999, 1.0, 1.5, 2.0, 3.0, torch.tensor([0.5, 1.0], dtype=torch.float64)])
def test_first_and_second_derivative(q: float | Tensor) -> None:
    logits = random_logits(2, 6, 3).requires_grad_()
    loss = SharpeningLoss(lam=[0.3, 0.7], q=q, balance=0.2, class_weight=[1.0, 2.0, 3.0])
    assert torch.autograd.gradcheck(lambda z: loss(z, Y, LABELED), logits)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, Y, LABELED), logits)


def test_gradient_flows_to_lambda() -> None:
    """The derivative by λ is the difference of the two mean entropies: what a learned λ learns from."""
    lam = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    parts = SharpeningLoss(lam=lam).parts(random_logits(6, 3), Y, LABELED)
    (gradient,) = torch.autograd.grad(parts.loss, lam)
    torch.testing.assert_close(gradient, parts.entropy_unlabeled - parts.entropy_labeled)


@pytest.mark.parametrize("q", [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 50.0])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_finite_for_huge_logits(q: float, as_tensor: bool) -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [1e4, -1e4, -1e4], [1e4, 1e4, -1e4], [1e4, -1e4, 0]], requires_grad=True)
    loss = SharpeningLoss(lam=1.0, q=torch.tensor(q) if as_tensor else q, balance=1.0)
    value = loss(logits, torch.tensor([1, -1, -1, -1]), labeled=[0])
    (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), logits)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert second.isfinite().all()


def test_a_class_ruled_out_on_an_unlabeled_node() -> None:
    logits = torch.tensor([[0.0, 1.0], [-math.inf, 1.0]], requires_grad=True)
    loss = SharpeningLoss(balance=0.1)(logits, torch.tensor([0, -1]), labeled=[0])
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_logits_are_computed_in_float32(dtype: torch.dtype, autocast: bool) -> None:
    logits = random_logits(6, 3).to(dtype).requires_grad_()
    loss = SharpeningLoss(q=1.0, balance=0.1)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        value = loss(logits, Y, LABELED)
    value.backward()
    assert value.dtype == torch.float32
    assert torch.equal(value, loss(logits.detach().float(), Y, LABELED))
    assert logits.grad is not None
    assert logits.grad.dtype == dtype


ORDERS = [2.0, 1.0, 0.5, "per member"]


def hot_step(device: str, q: float | str) -> tuple[Tensor, Tensor]:
    """Value and gradient of the pure functions on a population of three, as a trainer calls them."""
    logits = random_logits(3, 6, 3).float().to(device).requires_grad_()
    order = torch.tensor([0.5, 1.0, 2.0], device=device) if isinstance(q, str) else q
    mask = LABELED.float().to(device)
    parts = sharpening_parts(logits, Y.to(device), mask / 3, (1 - mask) / 3, order, torch.ones(3, device=device))
    loss = combine(parts, torch.full((3,), 0.5, device=device), balance=torch.full((3,), 0.1, device=device))
    return loss, torch.autograd.grad(loss.sum(), logits)[0]


@pytest.mark.parametrize("q", ORDERS)
def test_pure_functions_never_look_at_a_value(q: float | str) -> None:
    """On the meta device there are no values: what reads one, or has a shape that depends on one, fails there."""
    loss, gradient = hot_step("meta", q)
    assert loss.shape == (3,)
    assert gradient.shape == (3, 6, 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("q", ORDERS)
def test_pure_functions_in_a_cuda_graph(q: float | str) -> None:
    logits = random_logits(3, 6, 3).float().cuda().requires_grad_()
    order = torch.tensor([0.5, 1.0, 2.0], device="cuda") if isinstance(q, str) else q
    mask, y = LABELED.float().cuda(), Y.cuda()
    lam = torch.full((3,), 0.5, device="cuda")

    def step() -> tuple[Tensor, Tensor]:
        loss = combine(sharpening_parts(logits, y, mask / 3, (1 - mask) / 3, order), lam, balance=lam)
        return loss, torch.autograd.grad(loss.sum(), logits)[0]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        expected = [tensor.clone() for tensor in step()]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    graph.replay()
    for ours, theirs in zip(captured, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_equals_cpu_and_sets_may_stay_on_the_host() -> None:
    logits = random_logits(2, 6, 3)
    loss = SharpeningLoss(lam=[0.1, 0.9], q=1.0, balance=0.1, class_weight=[1.0, 2.0, 3.0])
    torch.testing.assert_close(loss(logits.cuda(), Y, LABELED).cpu(), loss(logits, Y, LABELED))


# --- the module ---


def test_combine_leaves_out_terms_of_weight_zero() -> None:
    parts = LossParts(*torch.tensor([0.7, math.nan, math.nan, math.nan]))
    assert combine(parts, lam=0.0) is parts.cross_entropy


def test_weights_may_follow_a_schedule() -> None:
    loss = SharpeningLoss(lam=0.0)
    logits = random_logits(6, 3)
    before = loss(logits, Y, LABELED)
    loss.lam = 0.5
    torch.testing.assert_close(loss(logits, Y, LABELED), SharpeningLoss(lam=0.5)(logits, Y, LABELED))
    assert before != loss(logits, Y, LABELED)
    loss.lam = math.nan
    with pytest.raises(InputError, match="lam is nan"):
        loss(logits, Y, LABELED)


def test_module_has_no_state_and_can_be_copied() -> None:
    loss = SharpeningLoss(lam=torch.tensor([0.5, 1.0]), class_weight=[1.0, 1.0, 2.0])
    assert not list(loss.parameters())
    assert not loss.state_dict()
    logits = random_logits(2, 6, 3)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(twin(logits, Y, LABELED), loss(logits, Y, LABELED))


def test_repr_shows_the_settings() -> None:
    assert repr(SharpeningLoss()) == "SharpeningLoss(lam=auto, q=2.0)"
    assert repr(SharpeningLoss([0.5, 1.0], 0.0, 1.0, np.array([0.1, 0.2]), margin, [1, 2])) == (
        "SharpeningLoss(lam=[0.5, 1.0], lam_labeled=0.0, q=1.0, balance=[0.1, 0.2], "
        "uncertainty=margin, class_weight=[1, 2])"
    )


# --- a plain PyG loop ---


class GCN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = GCNConv(10, 8)
        self.second = GCNConv(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def two_rings() -> Data:
    """Two rings of five nodes, joined by one edge; the rings are the classes, and one node of each is labeled."""
    ring = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    edges = torch.cat([ring, ring + 5, torch.tensor([[0], [5]])], dim=1)
    train_mask = torch.zeros(10, dtype=torch.bool)
    train_mask[[2, 7]] = True
    y = torch.tensor([0] * 5 + [1] * 5)
    return Data(x=torch.eye(10), edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=y, train_mask=train_mask)


def test_in_a_plain_pyg_loop() -> None:
    data = two_rings()
    entropy = {}
    for lam in (0.0, 0.5):
        torch.manual_seed(0)
        model = GCN()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = SharpeningLoss(lam=lam)(model(data.x, data.edge_index), data.y, labeled=data.train_mask)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        logits = model(data.x, data.edge_index)
        assert losses[-1] < 0.5 * losses[0]
        assert (logits.argmax(-1) == data.y).all()
        entropy[lam] = tsallis_entropy(logits[~data.train_mask]).mean().item()
    assert entropy[0.5] < entropy[0.0]


# --- refusals ---

LOGITS = random_logits(6, 3)
MEMBERS = random_logits(2, 6, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": math.nan}, r"lam is nan; give a finite number"),
        ({"lam": [0.1, math.inf]}, r"lam is inf in member 1; give"),
        ({"lam": "atuo"}, r"lam is 'atuo'; give"),
        ({"lam": None}, r"lam is None; give"),
        ({"lam": torch.tensor([True, False])}, r"lam is torch.bool; give"),
        ({"lam_labeled": -math.inf}, r"lam_labeled is -inf; give"),
        ({"balance": math.nan}, r"balance is nan; give"),
        ({"balance": torch.tensor(math.nan)}, r"balance is nan; give"),
        ({"q": 0}, r"q is 0; give a finite number above 0"),
        ({"q": -1.5}, r"q is -1.5; give"),
        ({"q": math.inf}, r"q is inf; give"),
        ({"q": torch.tensor([[1.0, 2.0], [0.0, 1.0]])}, r"q is 0.0 in member \(1, 0\); give"),
        ({"uncertainty": 3}, r"uncertainty is 3; give a function"),
        ({"class_weight": [1.0, -1.0]}, r"class_weight is -1.0 for class 1; give"),
        ({"class_weight": [math.nan, 1.0]}, r"class_weight is nan for class 0; give"),
        ({"class_weight": 2.0}, r"class_weight has shape \[\]; give one number for each class"),
        ({"class_weight": ["a"]}, r"class_weight is \['a'\]; give"),
    ],
)
def test_settings_refused_when_made(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SharpeningLoss(**settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": LOGITS.numpy()}, r"logits are ndarray; give a floating-point tensor"),
        ({"logits": LOGITS.long()}, r"logits are torch.int64; give"),
        ({"logits": LOGITS[:, 0]}, r"logits have shape \[6\]; give \[N, C\]"),
        ({"logits": LOGITS[:, :1]}, r"logits have shape \[6, 1\]; give .* two classes or more"),
        ({"logits": LOGITS[:0]}, r"logits have shape \[0, 3\]; give"),
        ({"y": Y.float()}, r"y is torch.float32; give integer class labels"),
        ({"y": torch.eye(6)[:, :3]}, r"y is torch.float32; give integer class labels, y.argmax\(-1\)"),
        ({"y": torch.eye(6)[:, :3].long()}, r"y has shape \[6, 3\] but .*; give one label .*, y.argmax\(-1\)"),
        ({"y": None}, r"y is None; give"),
        ({"y": Y[:5]}, r"y has shape \[5\] but .*; give one label for each of the 6 nodes"),
        ({"y": Y[:, None]}, r"y has shape \[6, 1\] but .*; give .*y.squeeze\(-1\)"),
        ({"y": Y.expand(3, 6), "logits": MEMBERS}, r"y has shape \[3, 6\] but .*; give"),
        ({"y": torch.tensor([0, 1, -1, 0, 0, 0])}, r"y is -1 \(unknown\) at node 2, which labeled holds; take it out"),
        ({"y": torch.tensor([0, 3, 1, 0, 0, 0])}, r"y is 3 at node 1 but logits have 3 classes; give labels 0 to 2"),
        (
            {"logits": MEMBERS, "labeled": torch.stack([LABELED, LABELED.flip(0)])},
            r"y is -1 \(unknown\) at node 4 in member 1",
        ),
        ({"labeled": torch.zeros(6, dtype=torch.bool)}, r"labeled is empty; give at least one labeled node, .*skip"),
        ({"labeled": []}, r"labeled is empty; give"),
        ({"labeled": torch.tensor([])}, r"labeled is empty; give"),
        (
            {"logits": MEMBERS, "labeled": torch.stack([LABELED, LABELED & False])},
            r"labeled is empty in member 1; give",
        ),
        ({"labeled": LABELED[:5]}, r"labeled is a mask of shape \[5\] but .*; give one entry for each of the 6 nodes"),
        (
            {"labeled": LABELED[:, None].expand(6, 4)},
            r"labeled is a mask of shape \[6, 4\] .*labeled\[:, 0\].* 4 splits",
        ),
        ({"labeled": LABELED.expand(3, 6), "logits": MEMBERS}, r"labeled is a mask of shape \[3, 6\] but"),
        ({"labeled": LABELED.expand(2, 6)}, r"labeled is a mask of shape \[2, 6\] but"),
        ({"labeled": LABELED.float()}, r"labeled is torch.float32; give a boolean mask, labeled.bool\(\)"),
        ({"labeled": LABELED.byte()}, r"labeled is torch.uint8; give a boolean mask"),
        ({"labeled": LABELED.long()}, r"labeled holds node 0 3 times; give each index once, or labeled.bool\(\)"),
        ({"labeled": LABELED.long().tolist()}, r"labeled holds node 0 .*, or torch.tensor\(labeled\).bool\(\) if"),
        ({"labeled": LABELED.float().tolist()}, r"give a boolean mask, torch.tensor\(labeled\).bool\(\), or"),
        ({"labeled": LABELED.nonzero()}, r"labeled holds indices of shape \[3, 1\] .*labeled.view\(-1\) is one"),
        ({"labeled": [0, 6]}, r"labeled holds index 6; give indices from 0 to 5"),
        ({"labeled": [-1]}, r"labeled holds index -1; give"),
        ({"labeled": torch.tensor([[0, 1], [2, 7]]), "logits": MEMBERS}, r"labeled holds index 7 in member 1; give"),
        ({"labeled": torch.tensor([[0], [1]])}, r"labeled holds indices of shape \[2, 1\] but .*; give"),
        ({"labeled": torch.tensor(1)}, r"labeled holds indices of shape \[\] but .*; give"),
        ({"labeled": "train"}, r"labeled is 'train'; give a boolean mask or node indices"),
        ({"unlabeled": ~LABELED[:5]}, r"unlabeled is a mask of shape \[5\] but"),
        ({"unlabeled": [3, 17]}, r"unlabeled holds index 17; give"),
        ({"unlabeled": [3, 3]}, r"unlabeled holds node 3 2 times; give"),
        ({"unlabeled": [2, 3]}, r"unlabeled and labeled share node 2; take it out"),
        ({"num_unlabeled": 0}, r"num_unlabeled is 0; give a finite number above 0"),
        ({"num_unlabeled": -3}, r"num_unlabeled is -3; give"),
        ({"num_unlabeled": math.inf}, r"num_unlabeled is inf; give"),
        ({"num_unlabeled": torch.tensor([3, 0]), "logits": MEMBERS}, r"num_unlabeled is 0.0 in member 1; give"),
        ({"num_unlabeled": torch.tensor([3, 4])}, r"num_unlabeled has shape \[2\] but .*; give"),
        ({"lam": [0.1, 0.2]}, r"lam has shape \[2\] but logits have shape \[6, 3\]; give"),
        ({"lam": [0.1, 0.2, 0.3], "logits": MEMBERS}, r"lam has shape \[3\] but .*; give a number, or .* shape \[2\]"),
        ({"q": [0.1, 0.2, 0.3], "logits": MEMBERS}, r"q has shape \[3\] but .*; give"),
        ({"class_weight": [1.0, 2.0]}, r"class_weight has shape \[2\]; give one number for each class \(3 in"),
        ({"class_weight": [0.0, 0.0, 0.0]}, r"class_weight is 0 at all labeled nodes; raise"),
        (
            {"class_weight": [0.0, 1.0, 1.0], "logits": MEMBERS, "labeled": torch.tensor([[1], [0]])},
            r"class_weight is 0 at all labeled nodes in member 1; raise",
        ),
        ({"uncertainty": lambda z: z}, r"uncertainty returned \[6, 3\] for logits .*; let it return"),
        ({"uncertainty": lambda z: 1.0}, r"uncertainty returned float for logits .*; let it return"),
    ],
)
def test_arguments_refused_at_the_call(arguments: dict[str, Any], message: str) -> None:
    made_with = {name: arguments[name] for name in ("lam", "q", "class_weight", "uncertainty") if name in arguments}
    called_with = {"logits": LOGITS, "y": Y, "labeled": LABELED}
    called_with |= {name: value for name, value in arguments.items() if name not in made_with}
    with pytest.raises(InputError, match=message):
        SharpeningLoss(**made_with)(**called_with)


def test_weighted_batches_have_the_whole_objective_as_their_mean() -> None:
    whole = SharpeningLoss(lam=0.5)(LOGITS, Y, labeled=LABELED)
    labeled, unlabeled = LABELED / LABELED.sum(), ~LABELED / (~LABELED).sum()
    assert not LABELED[3:].any()  # so a batch without labeled nodes is among them
    batches = torch.arange(6).split(3)
    losses = [
        combine(sharpening_parts(LOGITS[nodes], Y[nodes], 2 * labeled[nodes], 2 * unlabeled[nodes]), 0.5)
        for nodes in batches
    ]
    assert torch.stack(losses).mean().item() == pytest.approx(whole.item(), rel=1e-5)
