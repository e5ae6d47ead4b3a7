"""Activation of a stack of members against torch's own modules, one member at a time."""

import pytest
import torch

from sharpen.kernels.activation import Norm, activate

MEMBERS, NODES, WIDTH = 2, 11, 6


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_every_member_is_torchs_module(norm, training):
    x = torch.randn(MEMBERS, NODES, WIDTH, dtype=torch.float64)
    bias, weight, shift, mean = (torch.randn(MEMBERS, WIDTH, dtype=torch.float64) for _ in range(4))
    running = (mean, torch.rand(MEMBERS, WIDTH, dtype=torch.float64) + 0.5) if norm == "batch" else ()
    modules = []
    for r in range(MEMBERS):
        module = {"none": torch.nn.Identity, "layer": torch.nn.LayerNorm, "batch": torch.nn.BatchNorm1d}[norm](
            WIDTH
        ).double()
        if norm != "none":
            module.weight.data, module.bias.data = weight[r].clone(), shift[r].clone()
        if norm == "batch":
            module.running_mean, module.running_var = running[0][r].clone(), running[1][r].clone()
        modules.append(module.train(training))
    actual = activate(x, bias, None if norm == "none" else Norm(weight, shift, *running), training, None)
    for r, module in enumerate(modules):
        torch.testing.assert_close(actual[r], torch.relu(module(x[r] + bias[r])), rtol=1e-12, atol=1e-12)
        if norm == "batch":
            torch.testing.assert_close(running[0][r], module.running_mean)
            torch.testing.assert_close(running[1][r], module.running_var)


def test_a_bias_before_a_batch_norm_gets_no_gradient():
    """It has no effect; rounding noise in its place would be scaled up by Adam, differently in every population."""
    x, bias = torch.randn(1, 5, 3, requires_grad=True), torch.zeros(1, 3, requires_grad=True)
    norm = Norm(torch.ones(1, 3), torch.zeros(1, 3), torch.zeros(1, 3), torch.ones(1, 3))
    out = activate(x, bias, norm, True, None).square().sum()
    assert torch.autograd.grad(out, [bias], materialize_grads=True)[0].abs().max() == 0
