"""The paper's lemma, what does not follow from it, and what it says of gradients: claims of its text that need no training."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from sharpen.entropy import tsallis_entropy
from tests.scripts import by_graph

LOGITS = hnp.arrays(np.float64, st.integers(2, 8), elements=st.floats(-12, 12))


@settings(deadline=None)
@given(LOGITS, st.integers(0, 2**32 - 1))
def test_cross_entropy_is_entropy_plus_a_rest(logits, seed):
    """CE(y, p) = H(p) + Σ (pᵢ − yᵢ) log pᵢ for any target distribution, a single class too."""
    rng = np.random.default_rng(seed)
    p = torch.from_numpy(logits).softmax(-1)
    entropy = float(tsallis_entropy(torch.from_numpy(logits), q=1))
    for y in (rng.dirichlet(np.ones(len(logits))), np.eye(len(logits))[rng.integers(len(logits))]):
        target = torch.from_numpy(y)
        cross = float(torch.nn.functional.cross_entropy(torch.from_numpy(logits)[None], target[None]))
        rest = float(((p - target) * torch.from_numpy(logits).log_softmax(-1)).sum())
        assert cross == pytest.approx(entropy + rest, abs=1e-9)


def test_less_entropy_is_not_less_cross_entropy():
    """From an even guess to the wrong class the one falls and the other rises."""
    wrong = np.linspace(0.5, 0.999, 50)
    entropy = [stats.entropy([q, 1 - q]) for q in wrong]
    cross = -np.log(1 - wrong)
    assert (np.diff(entropy) < 0).all()
    assert (np.diff(cross) > 0).all()


@settings(deadline=None)
@given(LOGITS)
def test_gradients_by_the_logits_are_bounded_and_vanish_where_a_prediction_is_sure(logits):
    for q in (1.0, 2.0):
        z = torch.from_numpy(logits).requires_grad_()
        tsallis_entropy(z, q).backward()
        p = z.detach().softmax(-1)
        exact = -p * (p.log() + tsallis_entropy(z.detach(), 1)) if q == 1 else -2 * p * (p - (p**2).sum())
        torch.testing.assert_close(z.grad, exact, atol=1e-9, rtol=1e-6)
        assert float(z.grad.norm()) <= by_graph.gradient_norms(len(logits), q)[0] + 1e-5


def test_the_gradient_by_p_is_what_has_no_bound():
    p = torch.tensor([1 - 1e-12, 1e-12], dtype=torch.float64, requires_grad=True)
    (-(p * p.log()).sum()).backward()
    assert p.grad[1] > 26
    (sure, unsure) = by_graph.gradient_norms(2, 1)[::-1]
    assert sure < 1e-4 < unsure
