"""Numbers on edges and rows by index, against dense formulas in NumPy on ten nodes; derivatives against finite differences;
vmap."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.func import vmap

from sharpen.kernels.edges import (
    edge_dot,
    edge_products,
    edge_scores,
    edge_softmax,
    edge_sum,
    row_sum,
    softmax,
    weighted_sum,
)
from sharpen.kernels.linear_attention import kernel_attention, linear_attention
from sharpen.kernels.segments import Index, pick, segment_sum
from sharpen.kernels.sparse import Csr, propagate

NODES, HEADS, WIDTH, MEMBERS = 10, 3, 4, 5
RNG = np.random.default_rng(0)
DENSE = (RNG.random((NODES, NODES)) < 0.3) | np.eye(NODES, dtype=bool)
PATTERN = Csr.from_scipy(sp.csr_array(DENSE), torch.float64)
ROW, COL = (t.numpy() for t in (PATTERN.row, PATTERN.indices[1]))


def draw(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.normal(size=shape))


def test_propagation_is_the_product_and_vmap_gives_every_member_its_own():
    matrix = Csr.from_scipy(sp.csr_array(DENSE * RNG.random((NODES, NODES))), torch.float64)
    x = draw(MEMBERS, NODES, WIDTH)
    dense = matrix.matrix.to_dense().numpy()
    together = vmap(lambda one: propagate(one, matrix))(x)
    np.testing.assert_allclose(together.numpy(), dense @ x.numpy(), rtol=1e-12)
    assert torch.autograd.gradcheck(vmap(lambda one: propagate(one, matrix)), x.requires_grad_())
    assert torch.autograd.gradgradcheck(vmap(lambda one: propagate(one, matrix)), x)


@pytest.mark.parametrize("heads", [None, HEADS])
def test_weighted_sums_scores_and_softmax_are_their_formulas(heads):
    shape = () if heads is None else (heads,)
    x, q = draw(NODES, *shape, WIDTH), draw(NODES, *shape, WIDTH)
    weight, source, target = draw(PATTERN.nnz, *shape), draw(NODES, *shape), draw(NODES, *shape)
    for h in range(heads or 1):
        at = (slice(None),) if heads is None else (slice(None), h)
        w = np.zeros((NODES, NODES))
        w[ROW, COL] = weight[at].numpy()
        np.testing.assert_allclose(edge_sum(x, weight, PATTERN)[at].numpy(), w @ x[at].numpy(), rtol=1e-12)
        np.testing.assert_allclose(
            edge_scores(source, target, PATTERN)[at].numpy(),
            source[at].numpy()[COL] + target[at].numpy()[ROW],
            rtol=1e-12,
        )
        dots = q[at].numpy() @ x[at].numpy().T
        np.testing.assert_allclose(edge_products(q, x, PATTERN)[at].numpy(), dots[ROW, COL], rtol=1e-12)
        e = np.where(DENSE, np.exp(w), 0)
        np.testing.assert_allclose(
            edge_softmax(weight, PATTERN)[at].numpy(), (e / e.sum(1, keepdims=True))[ROW, COL], rtol=1e-12
        )


@pytest.mark.parametrize("batched", [(0, 0), (0, None), (None, 0)])
def test_vmap_of_attention_is_a_loop_over_members_with_its_derivatives(batched):
    q, x = (draw(MEMBERS, NODES, HEADS, WIDTH) if dim == 0 else draw(NODES, HEADS, WIDTH) for dim in batched)

    def attend(query, key):
        return edge_sum(key, edge_softmax(edge_products(query, key, PATTERN), PATTERN), PATTERN)

    def member(t, dim, r):
        return t if dim is None else t[r]

    together = vmap(attend, in_dims=batched)(q, x)
    alone = [attend(*(member(t, d, r) for t, d in zip((q, x), batched, strict=True))) for r in range(MEMBERS)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-12, atol=1e-12)
    inputs = [t.requires_grad_() for t in (q, x)]
    assert torch.autograd.gradcheck(vmap(attend, in_dims=batched), inputs)


def test_additive_scores_have_sums_along_rows_as_their_derivatives():
    source, target = draw(2, NODES).requires_grad_(), draw(2, NODES).requires_grad_()

    def scores(s, t):
        return edge_scores(s, t, PATTERN).square()

    assert torch.autograd.gradcheck(vmap(scores), (source, target))
    assert torch.autograd.gradgradcheck(vmap(scores), (source, target))


def test_rows_by_index_are_picked_and_summed():
    index = Index(torch.tensor([3, 0, 3, 9, 1]))
    x, y = draw(MEMBERS, NODES, HEADS, WIDTH), draw(MEMBERS, 5, HEADS, WIDTH)
    torch.testing.assert_close(vmap(lambda one: pick(one, index))(x), x[:, index.rows])
    expected = torch.zeros(MEMBERS, NODES, HEADS, WIDTH, dtype=torch.float64).index_add(1, index.rows, y)
    torch.testing.assert_close(vmap(lambda one: segment_sum(one, index, NODES))(y), expected)
    assert torch.autograd.gradcheck(vmap(lambda one: pick(one, index)), x[:2].requires_grad_())
    assert torch.autograd.gradcheck(vmap(lambda one: segment_sum(one, index, NODES)), y[:2].requires_grad_())


@pytest.mark.parametrize("heads", [None, HEADS])
def test_linear_attention_is_the_quadratic_formula(heads):
    shape = (NODES, WIDTH) if heads is None else (NODES, heads, WIDTH)
    q, k, v = (draw(*shape) for _ in range(3))
    for h in range(heads or 1):
        at = slice(None) if heads is None else (slice(None), h)
        a, b, c = (t[at].numpy() for t in (q, k, v))
        weights = (a / np.linalg.norm(a)) @ (b / np.linalg.norm(b)).T / NODES
        expected = (c + weights @ c) / (1 + weights.sum(1, keepdims=True))
        np.testing.assert_allclose(linear_attention(q, k, v)[at].numpy(), expected, rtol=1e-12)
        positive = 1 / (1 + np.exp(-a)) @ (1 / (1 + np.exp(-b))).T
        np.testing.assert_allclose(
            kernel_attention(q.sigmoid(), k.sigmoid(), v)[at].numpy(),
            positive @ c / positive.sum(1, keepdims=True),
            rtol=1e-12,
        )
    stacked = [torch.stack([t, 2 * t]) for t in (q, k, v)]
    torch.testing.assert_close(vmap(linear_attention)(*stacked)[0], linear_attention(q, k, v))


def test_fused_kernels_give_the_same(kernel_device):
    from sharpen.kernels.triton.edges import edge_dot_triton, softmax_triton
    from sharpen.kernels.triton.spmm import spmm_triton

    pattern = Csr.from_scipy(sp.csr_array(DENSE), torch.float32).to(kernel_device)
    for width in (1, 4, 70, 300):
        g, h = (draw(MEMBERS, NODES, width).float().to(kernel_device) for _ in range(2))
        score = draw(MEMBERS, PATTERN.nnz).float().to(kernel_device)
        out = torch.empty_like(g)
        spmm_triton(out, pattern, h, value=score)
        double = [t.cpu().double() for t in (score, g, h)]
        torch.testing.assert_close(
            out.cpu().double(), weighted_sum(double[0], double[2], PATTERN), rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(
            edge_dot_triton(g, h, pattern).cpu().double(), edge_dot(double[1], double[2], PATTERN), rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(
            softmax_triton(score, pattern).cpu().double(), softmax(double[0], PATTERN), rtol=1e-4, atol=1e-5
        )


def test_a_node_without_edges_gathers_nothing():
    isolated = Csr.from_scipy(sp.csr_array([[0.0, 1.0], [0.0, 0.0]]), torch.float64)
    assert row_sum(torch.ones(1, 1, dtype=torch.float64), isolated).tolist() == [[1.0, 0.0]]
    assert edge_softmax(torch.tensor([5.0], dtype=torch.float64), isolated).tolist() == [1.0]
