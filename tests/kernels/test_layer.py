"""The fused layer against its plain steps, forward and backward, for every arrangement of columns and every norm."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sharpen.kernels.activation import Dropout, Norm
from sharpen.kernels.dropout import layer_keys, member_keys
from sharpen.kernels.layer import Blocks, finish_layer
from sharpen.kernels.product import products
from sharpen.kernels.sparse import Csr

MEMBERS, NODES = 2, 11
BLOCKS = {
    "none": dict(neighbors=False, own=True),
    "gather": dict(neighbors=True, own=False),
    "gather+own": dict(neighbors=True, own=True),
    "attention": dict(neighbors=True, own=False, scores=True),
    "attention+own": dict(neighbors=True, own=True, scores=True),
}


def graph(attention: bool) -> Csr:
    """A ring with a hub: weights that are not symmetric for gathering, the bare pattern for attention."""
    dense = np.eye(NODES) + np.roll(np.eye(NODES), 1, axis=1) + np.roll(np.eye(NODES), -1, axis=1)
    dense[0] = dense[:, 0] = 1
    if not attention:
        dense = dense * np.random.default_rng(0).random(dense.shape)
    return Csr.from_scipy(sp.csr_array(dense), torch.float64, symmetric=attention)


def operands(blocks, norm, biased, dropped):
    generator = torch.Generator().manual_seed(blocks.width)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    width = blocks.width
    z = draw(MEMBERS, NODES, blocks.columns).requires_grad_()
    bias = draw(MEMBERS, width).requires_grad_() if biased else None
    parts = [draw(MEMBERS, width).requires_grad_(), draw(MEMBERS, width).requires_grad_()]
    running = [draw(MEMBERS, width), draw(MEMBERS, width).abs() + 0.5]
    made = None if norm == "none" else Norm(*parts, *(running if norm == "batch" else ()))
    keys = layer_keys(member_keys([1, 2]), torch.tensor(5), 0)
    dropout = Dropout(torch.tensor([0.5, 0.2], dtype=torch.float64), keys) if dropped else None
    return z, bias, made, dropout


def on(device, z, bias, norm, dropout):
    """The same operands elsewhere in single precision, as leaves."""

    def move(t):
        return t if t is None else t.detach().to(device, torch.float32).clone().requires_grad_(t.requires_grad)

    moved = None if norm is None else Norm(*(move(t) for t in norm))
    dropped = None if dropout is None else Dropout(dropout.p.to(device, torch.float32), dropout.keys.to(device))
    return move(z), move(bias), moved, dropped


@pytest.mark.parametrize(
    ("width", "biased", "dropped", "training"),
    [(5, True, True, True), (5, False, False, True), (5, True, False, False), (200, True, True, True)],
)
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_fused_layer(kernel_device, kind, width, norm, biased, dropped, training):
    from sharpen.kernels.triton.layer import finish_layer_triton

    blocks = Blocks(width, **BLOCKS[kind])
    csr = graph(blocks.scores) if blocks.neighbors else None
    z, bias, made, dropout = operands(blocks, norm, biased, dropped)
    fz, fbias, fmade, fdropout = on(kernel_device, z, bias, made, dropout)
    f_csr = None if csr is None else Csr(csr.rowptr, csr.col, csr.value.float(), NODES, csr.symmetric).to(kernel_device)

    expected = finish_layer([z], blocks, csr, bias, made, training, dropout)
    actual = finish_layer_triton(fz, blocks, f_csr, fbias, fmade, training, fdropout)
    torch.testing.assert_close(actual.detach().cpu().double(), expected.detach(), rtol=1e-4, atol=1e-4)
    if norm == "batch":
        for ours, theirs in zip(fmade[2:], made[2:], strict=True):
            torch.testing.assert_close(ours.cpu().double(), theirs, rtol=1e-4, atol=1e-4)
        if not training:
            return  # the evaluation pass is not differentiated
    weight = torch.randn(expected.shape, dtype=torch.float64)

    def leaves(z, bias, norm):
        return [t for t in (z, bias, *(norm or ())) if t is not None and t.requires_grad]

    theirs = torch.autograd.grad((expected * weight).sum(), leaves(z, bias, made), materialize_grads=True)
    scaled = (actual * weight.to(kernel_device, torch.float32)).sum()
    ours = torch.autograd.grad(scaled, leaves(fz, fbias, fmade), materialize_grads=True)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-3, atol=1e-3)


def test_a_nan_stays_in_its_member_and_is_not_hidden(kernel_device):
    from sharpen.kernels.triton.layer import finish_layer_triton

    z = torch.ones(2, 3, 4, device=kernel_device)
    z[0, 1, 2] = torch.nan
    out = finish_layer_triton(z, Blocks(4, neighbors=False, own=True), None, None, None, True, None).cpu()
    assert out[0, 1, 2].isnan()
    assert out.isnan().sum() == 1


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_separate_products_in_place_are_the_joined_one(kind, norm, training):
    """Values, first and second derivatives; the weights are those of the blocks side by side."""
    blocks = Blocks(3, **BLOCKS[kind])
    csr = graph(blocks.scores) if blocks.neighbors else None
    _, bias, made, dropout = operands(blocks, norm, biased=True, dropped=training)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(MEMBERS, NODES, 4, generator=generator, dtype=torch.float64).requires_grad_()
    weights = [
        torch.randn(MEMBERS, 4, size, generator=generator, dtype=torch.float64).requires_grad_()
        for size in blocks.sizes
    ]
    running = [] if made is None else [t for t in made[2:] if t is not None]
    before = [t.clone() for t in running]

    def layer(separate, x, *weights):
        for now, then in zip(running, before, strict=True):
            now.copy_(then)
        z = products(x, weights) if separate else [torch.bmm(x, torch.cat(weights, dim=2))]
        return finish_layer(z, blocks, csr, bias, made, training, dropout, overwrite=separate)

    results = []
    for separate in (True, False):
        out = layer(separate, x, *weights)
        leaves = [x, *weights]
        first = torch.autograd.grad(out.sin().sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
        results.append([out, *first, *second, *(t.clone() for t in running)])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_a_kept_product_is_not_overwritten():
    z = [torch.ones(1, NODES, 3), torch.ones(1, NODES, 3)]
    finish_layer(z, Blocks(3, neighbors=True, own=True), Csr.from_scipy(sp.eye_array(NODES)), *[None] * 2, True, None)
    assert all((block == 1).all() for block in z)
