"""The fused activation against plain PyTorch, forward and backward, for every norm; and plain PyTorch against its modules."""

import pytest
import torch

from sharpen.kernels.activation import Dropout, Norm, activate_plain
from sharpen.kernels.dropout import layer_keys, member_keys

MEMBERS, NODES = 2, 11


def operands(width, norm, biased, dropped, dtype=torch.float64):
    generator = torch.Generator().manual_seed(width)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    x = draw(MEMBERS, NODES, width).requires_grad_()
    bias = draw(MEMBERS, width).requires_grad_() if biased else None
    parts = [draw(MEMBERS, width).requires_grad_(), draw(MEMBERS, width).requires_grad_()]
    running = [draw(MEMBERS, width), draw(MEMBERS, width).abs() + 0.5]
    made = None if norm == "none" else Norm(*parts, *(running if norm == "batch" else ()))
    keys = layer_keys(member_keys([1, 2]), torch.tensor(5), 0)
    dropout = Dropout(torch.tensor([0.5, 0.2], dtype=dtype), keys) if dropped else None
    return x, bias, made, dropout


def on(device, dtype, x, bias, norm, dropout):
    """The same operands elsewhere, as leaves."""

    def move(t):
        return t if t is None else t.detach().to(device, dtype).clone().requires_grad_(t.requires_grad)

    moved = None if norm is None else Norm(*(move(t) for t in norm))
    dropped = None if dropout is None else Dropout(dropout.p.to(device, dtype), dropout.keys.to(device))
    return move(x), move(bias), moved, dropped


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("width", [5, 64])
def test_fused_kernel(kernel_device, width, norm, biased, dropped, training):
    from sharpen.kernels.triton.activation import activate_triton

    reference = operands(width, norm, biased, dropped)
    fused = on(kernel_device, torch.float32, *reference)
    expected = activate_plain(*reference[:3], training, reference[3])
    actual = activate_triton(*fused[:3], training, fused[3])
    torch.testing.assert_close(actual.cpu().double(), expected, rtol=1e-4, atol=1e-4)
    if norm == "batch":
        for ours, theirs in zip(fused[2][2:], reference[2][2:], strict=True):
            torch.testing.assert_close(ours.cpu().double(), theirs, rtol=1e-4, atol=1e-4)
        if not training:
            return  # the evaluation pass is not differentiated
    weight = torch.randn(expected.shape, dtype=torch.float64)

    def leaves(x, bias, norm, dropout):
        return [t for t in (x, bias, *(norm or ())) if t is not None and t.requires_grad]

    theirs = torch.autograd.grad((expected * weight).sum(), leaves(*reference), materialize_grads=True)
    ours = torch.autograd.grad((actual * weight.to(kernel_device, torch.float32)).sum(), leaves(*fused))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_plain_is_torchs_modules(norm):
    x, bias, made, _ = operands(6, norm, biased=True, dropped=False)
    for r in range(MEMBERS):
        module = {"none": torch.nn.Identity(), "layer": torch.nn.LayerNorm(6), "batch": torch.nn.BatchNorm1d(6)}[
            norm
        ].double()
        if made is not None:
            module.weight.data, module.bias.data = made.weight[r].detach(), made.bias[r].detach()
        expected = torch.relu(module(x[r] + bias[r]))
        fresh = made._replace(running_mean=made[2].clone(), running_var=made[3].clone()) if norm == "batch" else made
        torch.testing.assert_close(activate_plain(x, bias, fresh, True, None)[r], expected, rtol=1e-12, atol=1e-12)


def test_a_nan_stays_in_its_row_and_is_not_hidden(kernel_device):
    from sharpen.kernels.triton.activation import activate_triton

    x = torch.ones(2, 3, 4, device=kernel_device)
    x[0, 1, 2] = torch.nan
    out = activate_triton(x, None, None, True, None).cpu()
    assert out[0, 1, 2].isnan()
    assert out.isnan().sum() == 1
