"""The fused layer against its plain steps, forward and backward, for every arrangement of columns and every norm."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sharpen.kernels.activation import Dropout, Norm
from sharpen.kernels.dropout import layer_keys, member_keys
from sharpen.kernels.layer import Blocks, finish_layer_plain
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

    expected = finish_layer_plain(z, blocks, csr, bias, made, training, dropout)
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
