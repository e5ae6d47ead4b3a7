"""Entropies against NumPy's and scipy's formulas, their mathematical properties, and their behaviour in the tails."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from sharpen.entropy import tsallis_entropy, tsallis_entropy_of_log_probs
from sharpen.errors import InputError

ORDERS = [0.5, 0.999999, 1.0, 1.5, 2.0, 3.0]
EXTREME_ORDERS = [1e-3, 0.1, 0.5, 1 - 1e-7, 1.0, 1 + 1e-7, 1.5, 2.0, 3.0, 10.0, 1e3]

orders = st.floats(0.05, 20)
logit_rows = hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 8)), elements=st.floats(-30, 30))
fast = settings(max_examples=60, deadline=None)


def by_definition(p: np.ndarray, q: float) -> np.ndarray:
    """(1 - Σ p^q) / (q - 1) as it stands, for q away from 1."""
    return (1 - (p**q).sum(-1)) / (q - 1)


def maximum(classes: int, q: float) -> float:
    return math.log(classes) if abs(q - 1) < 1e-12 else -math.expm1((1 - q) * math.log(classes)) / (q - 1)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_uniform_prediction_of_gini_is_one_minus_one_over_c(classes: int) -> None:
    assert tsallis_entropy(torch.zeros(classes)).item() == pytest.approx(1 - 1 / classes, rel=1e-6)


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        ([0.5, 0.5], 2, 1 / 2),
        ([0.5, 0.5], 1, math.log(2)),
        ([0.5, 0.5], 3, (1 - 2 / 8) / 2),
        ([0.25, 0.75], 2, 1 - 1 / 16 - 9 / 16),
        ([0.25, 0.25, 0.25, 0.25], 0.5, (4 * 0.5 - 1) / 0.5),
        ([1.0, 0.0, 0.0], 2, 0),
        ([1.0, 0.0, 0.0], 1, 0),
        ([1.0, 0.0, 0.0], 0.5, 0),
    ],
)
def test_values_that_fit_in_the_head(p: list[float], q: float, expected: float) -> None:
    log_p = torch.tensor(p, dtype=torch.float64).log()
    assert tsallis_entropy_of_log_probs(log_p, q).item() == pytest.approx(expected, abs=1e-12)
    per_row = tsallis_entropy_of_log_probs(log_p, torch.tensor(q, dtype=torch.float64))
    assert per_row.item() == pytest.approx(expected, abs=1e-12)


@fast
@given(logits=logit_rows, q=orders.filter(lambda q: abs(q - 1) > 0.05))
def test_equals_the_definition(logits: np.ndarray, q: float) -> None:
    ours = tsallis_entropy(torch.from_numpy(logits), q).numpy()
    np.testing.assert_allclose(ours, by_definition(scipy.special.softmax(logits, -1), q), rtol=1e-9, atol=1e-12)


@fast
@given(logits=logit_rows)
def test_order_one_is_shannon_entropy(logits: np.ndarray) -> None:
    expected = scipy.stats.entropy(scipy.special.softmax(logits, -1), axis=-1)
    z = torch.from_numpy(logits)
    np.testing.assert_allclose(tsallis_entropy(z, 1).numpy(), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(tsallis_entropy(z, torch.ones(len(z))).numpy(), expected, rtol=1e-12, atol=1e-13)


@fast
@given(logits=logit_rows, step=st.floats(-14, -3).map(lambda e: 10**e), side=st.sampled_from([-1, 1]))
def test_continuous_at_order_one(logits: np.ndarray, step: float, side: int) -> None:
    """dH/dq at 1 is -½ Σ p (log p)², so a step in q moves the entropy by that, with no noise however small the step."""
    log_p = scipy.special.log_softmax(logits, -1)
    slope = -0.5 * (np.exp(log_p) * log_p**2).sum(-1)
    moved = tsallis_entropy(torch.from_numpy(logits), 1 + side * step).numpy()
    shannon = -(np.exp(log_p) * log_p).sum(-1)
    np.testing.assert_allclose(moved, shannon + side * step * slope, rtol=1e-11, atol=500 * step**2 + 1e-13)


@fast
@given(logits=logit_rows, q=orders)
def test_between_zero_and_that_of_the_uniform_prediction(logits: np.ndarray, q: float) -> None:
    for dtype, slack in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        entropy = tsallis_entropy(torch.from_numpy(logits).to(dtype), q)
        assert (entropy >= 0).all()
        assert (entropy <= maximum(logits.shape[-1], q) * (1 + slack)).all()


def test_rounding_makes_no_entropy_negative() -> None:
    logits = 20 * torch.randn(10_000, 7, generator=torch.Generator().manual_seed(0))
    for q in ORDERS:
        assert (tsallis_entropy(logits, q) >= 0).all()


@fast
@given(logits=logit_rows, q=orders, shift=st.floats(-100, 100), seed=st.integers(0, 1000))
def test_order_of_classes_and_common_shift_do_not_matter(logits: np.ndarray, q: float, shift: float, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(logits, axis=-1) + shift
    there, back = (tsallis_entropy(torch.from_numpy(z), q).numpy() for z in (logits, shuffled))
    np.testing.assert_allclose(there, back, rtol=1e-10, atol=1e-12)


@fast
@given(logits=logit_rows, q=orders, share=st.floats(0, 1), seed=st.integers(0, 1000))
def test_concave_in_the_prediction(logits: np.ndarray, q: float, share: float, seed: int) -> None:
    """The mixture of two predictions is at least as uncertain as the two are on average."""
    p = scipy.special.softmax(logits, -1)
    r = np.random.default_rng(seed).dirichlet(np.ones(p.shape[-1]), size=len(p))

    def entropy(values: np.ndarray) -> np.ndarray:
        return tsallis_entropy_of_log_probs(torch.from_numpy(values).log(), q).numpy()

    mixed = entropy(share * p + (1 - share) * r)
    assert (mixed >= share * entropy(p) + (1 - share) * entropy(r) - 1e-9).all()


@fast
@given(logits=logit_rows, a=orders, b=orders)
def test_falls_as_the_order_rises(logits: np.ndarray, a: float, b: float) -> None:
    low, high = sorted((a, b))
    z = torch.from_numpy(logits)
    assert (tsallis_entropy(z, low) >= tsallis_entropy(z, high) - 1e-12).all()


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_gradient_and_second_derivative(q: float, as_tensor: bool) -> None:
    order: float | Tensor = torch.full((3, 1), q, dtype=torch.float64) if as_tensor else q
    logits = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: tsallis_entropy(z, order), logits)
    assert torch.autograd.gradgradcheck(lambda z: tsallis_entropy(z, order), logits)


@pytest.mark.parametrize("q", EXTREME_ORDERS)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_finite_in_the_tails(q: float, as_tensor: bool) -> None:
    """Logits of ±1e4 in float32: no NaN or inf in the value, the gradient or the second derivative."""
    logits = torch.tensor(
        [
            [1e4, -1e4, 0.0],
            [-1e4, -1e4, 1e4],
            [1e4, 1e4, -1e4],
            [1e4, 1e4, 1e4],
            [-1e4, 0.0, 1.0],
            [90.0, 0.0, -90.0],
            [1e4, 1e4 - 1, 1e4 - 2],
        ],
        requires_grad=True,
    )
    entropy = tsallis_entropy(logits, torch.tensor(q) if as_tensor else q)
    (gradient,) = torch.autograd.grad(entropy.sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), logits)
    expected = tsallis_entropy(logits.detach().double(), q)
    torch.testing.assert_close(entropy.detach().double(), expected, rtol=1e-5, atol=1e-6)
    assert gradient.isfinite().all()
    assert second.isfinite().all()


@pytest.mark.parametrize("q", EXTREME_ORDERS)
def test_float32_gradient_is_that_of_float64(q: float) -> None:
    logits = 8 * torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
    single, double = (logits.detach().to(dtype, copy=True).requires_grad_() for dtype in (torch.float32, torch.float64))
    (ours,) = torch.autograd.grad(tsallis_entropy(single, q).sum(), single)
    (expected,) = torch.autograd.grad(tsallis_entropy(double, q).sum(), double)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("q", EXTREME_ORDERS)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_class_ruled_out_by_minus_infinity_is_no_class(q: float, as_tensor: bool) -> None:
    order: float | Tensor = torch.tensor(q) if as_tensor else q
    logits = torch.tensor([0.3, -0.2, -math.inf], requires_grad=True)
    entropy = tsallis_entropy(logits, order)
    entropy.backward()
    torch.testing.assert_close(entropy, tsallis_entropy(logits[:2], order))
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_an_order_for_each_member() -> None:
    logits = torch.randn(4, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    q = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64)
    together = tsallis_entropy(logits, q.unsqueeze(-1))
    alone = torch.stack([tsallis_entropy(logits[r], q[r].item()) for r in range(4)])
    torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)


def test_given_probabilities_are_used() -> None:
    log_p = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    for q in ORDERS:
        given_p = tsallis_entropy_of_log_probs(log_p, q, log_p.exp())
        torch.testing.assert_close(given_p, tsallis_entropy_of_log_probs(log_p, q))


def test_the_order_is_a_constant() -> None:
    q = torch.tensor(1.5, requires_grad=True)
    assert not tsallis_entropy(torch.zeros(2, 3), q).requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    log_p = logits.log_softmax(-1)
    for q in EXTREME_ORDERS:
        assert torch.equal(tsallis_entropy(logits, q), tsallis_entropy(logits.float(), q))
        assert torch.equal(tsallis_entropy_of_log_probs(log_p, q), tsallis_entropy_of_log_probs(log_p.float(), q))


@pytest.mark.parametrize("q", [0, -1.0, math.nan, math.inf])
def test_impossible_order_is_named(q: float) -> None:
    with pytest.raises(InputError, match=r"q is .*above 0"):
        tsallis_entropy(torch.zeros(2, 3), q)
