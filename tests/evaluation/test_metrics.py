"""Metrics against scikit-learn, and their contracts in a population."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from sharpen.evaluation import accuracy, roc_auc
from sharpen.evaluation.metrics import balanced_accuracy


@st.composite
def scored_nodes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores full of ties, labels of both classes within the mask, a mask."""
    n = draw(st.integers(2, 40))
    score = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    y[0], y[1], mask[0], mask[1] = 0, 1, True, True
    return np.array(score) / 7, np.array(y), np.array(mask)


@settings(max_examples=200, deadline=None)
@given(scored_nodes())
def test_roc_auc_equals_sklearn_with_ties(nodes: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    score, y, mask = nodes
    ours = roc_auc(torch.tensor(score, dtype=torch.float32), torch.tensor(y), torch.tensor(mask))
    assert ours.item() == pytest.approx(roc_auc_score(y[mask], score[mask]), abs=1e-12)


def test_roc_auc_of_a_population_is_that_of_each_member() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    score = rng.normal(size=(7, 300)).round(1)
    mask = rng.random((7, 300)) < 0.5
    ours = roc_auc(torch.tensor(score), torch.tensor(y), torch.tensor(mask / mask.sum(1, keepdims=True)))
    expected = [roc_auc_score(y[m], s[m]) for s, m in zip(score, mask, strict=True)]
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-12)


def test_roc_auc_in_the_head() -> None:
    y = torch.tensor([0, 0, 1, 1])
    everyone = torch.ones(4, dtype=torch.bool)
    assert roc_auc(torch.tensor([1.0, 2, 3, 4]), y, everyone) == 1
    assert roc_auc(torch.tensor([4.0, 3, 2, 1]), y, everyone) == 0
    assert roc_auc(torch.zeros(4), y, everyone) == 0.5
    assert roc_auc(torch.tensor([1.0, 3, 2, 4]), y, everyone) == 0.75


def test_roc_auc_accepts_infinite_scores() -> None:
    score, y = torch.tensor([-torch.inf, torch.inf, torch.inf, torch.inf]), torch.tensor([0, 0, 1, 0])
    assert roc_auc(score, y, torch.tensor([True, True, True, False])) == 0.75


def test_a_member_with_nan_does_not_touch_the_others() -> None:
    y = torch.tensor([0, 0, 1, 1])
    score = torch.tensor([[1.0, 2, 3, 4], [1.0, torch.nan, 3, 4], [1.0, 3, 2, 4]])
    auc = roc_auc(score, y, torch.ones(4, dtype=torch.bool))
    assert auc[[0, 2]].tolist() == [1, 0.75]
    assert auc[1].isnan()
    logits = torch.stack([-score, score], dim=-1)
    hits = accuracy(logits, y, torch.ones(4, dtype=torch.bool))
    assert hits[[0, 2]].tolist() == [0.5, 0.5]
    assert hits[1].isnan()


def test_nan_outside_the_mask_does_not_count() -> None:
    y, mask = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([True, True, True, True, False])
    score = torch.tensor([1.0, 3, 2, 4, torch.nan])
    assert roc_auc(score, y, mask) == 0.75
    assert accuracy(torch.stack([-score, score], dim=-1), y, mask) == 0.5


def test_what_cannot_be_measured_is_nan() -> None:
    score, y = torch.tensor([1.0, 2.0]), torch.tensor([1, 1])
    assert roc_auc(score, y, torch.ones(2)).isnan()
    assert accuracy(torch.eye(2), y, torch.zeros(2)).isnan()


def test_accuracy_equals_sklearn_for_a_population() -> None:
    rng = np.random.default_rng(1)
    logits, y = rng.normal(size=(3, 5, 60, 4)), rng.integers(-1, 4, 60)
    mask = rng.random((3, 5, 60)) < 0.4
    mask &= y >= 0
    weight = torch.tensor(mask / mask.sum(-1, keepdims=True), dtype=torch.float32)
    for given_weight in (torch.tensor(mask), weight):
        ours = accuracy(torch.tensor(logits), torch.tensor(y), given_weight)
        assert ours.shape == (3, 5)
        for r in np.ndindex(3, 5):
            assert ours[r].item() == accuracy_score(y[mask[r]], logits[r].argmax(-1)[mask[r]])


def test_accuracy_weighs_nodes() -> None:
    logits, y = torch.eye(3), torch.tensor([0, 1, 0])
    assert accuracy(logits, y, torch.tensor([1.0, 1.0, 6.0])) == 0.25


@given(st.permutations(range(97)), st.integers(0, 97))
@settings(max_examples=50, deadline=None)
def test_equally_many_hits_are_equal_scores_whichever_nodes_are_hit(order: list[int], hits: int) -> None:
    y = torch.zeros(97, dtype=torch.long)
    y[order[hits:]] = 1
    logits = torch.tensor([1.0, 0.0]).expand(97, 2)
    assert accuracy(logits, y, torch.full((97,), 1 / 97)).item() == hits / 97


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_both_run_inside_a_cuda_graph_and_equal_the_cpu() -> None:
    rng = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (5000,), generator=rng)
    logits = torch.randn(11, 5000, 2, generator=rng).round(decimals=1)
    mask = torch.rand(11, 5000, generator=rng) < 0.3
    expected = accuracy(logits, y, mask), roc_auc(logits[..., 1], y, mask)
    logits, y, mask = logits.cuda(), y.cuda(), mask.cuda()
    accuracy(logits, y, mask), roc_auc(logits[..., 1], y, mask)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = accuracy(logits, y, mask), roc_auc(logits[..., 1], y, mask)
    graph.replay()
    for ours, cpu in zip(captured, expected, strict=True):
        assert torch.equal(ours.cpu(), cpu)


def test_balanced_accuracy_equals_sklearn_and_skips_absent_classes() -> None:
    rng = np.random.default_rng(1)
    y = rng.choice(4, p=[0.6, 0.3, 0.09, 0.01], size=200)
    logits = rng.normal(size=(5, 200, 4)) + np.eye(4)[y]
    mask = rng.random((5, 200)) < 0.3
    mask[0, y == 3] = False
    ours = balanced_accuracy(torch.tensor(logits), torch.tensor(y), torch.tensor(mask))
    expected = [balanced_accuracy_score(y[m], z[m].argmax(1)) for z, m in zip(logits, mask, strict=True)]
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-12)


def test_a_nan_spoils_the_balanced_accuracy_of_its_member_alone() -> None:
    logits, y = torch.eye(3).repeat(2, 1, 1), torch.tensor([0, 1, -1])
    logits[0, 1] = torch.nan
    assert balanced_accuracy(logits, y, y >= 0).isnan().tolist() == [True, False]
    logits[0, 1] = 0
    logits[0, 2] = torch.nan  # a node that does not count
    assert balanced_accuracy(logits, y, (y >= 0).expand(2, 3)).isfinite().all()
    assert balanced_accuracy(logits, y, torch.zeros(2, 3, dtype=torch.bool)).isnan().all()
