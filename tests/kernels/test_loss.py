"""The fused objective against the objective itself."""

import pytest
import torch

from sharpen.kernels.loss import population_loss
from sharpen.objective import Objective


@pytest.mark.parametrize("classes", [2, 7, 40])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_fused_loss(kernel_device, classes, scale):
    from sharpen.kernels.triton.loss import population_loss_triton

    members, nodes = 3, 50
    generator = torch.Generator().manual_seed(classes)
    logits = torch.randn(members, nodes, classes, generator=generator, dtype=torch.float64) * scale
    y = torch.randint(classes, (nodes,), generator=generator)
    mask = torch.rand(members, nodes, generator=generator) < 0.3
    y[~mask.any(0)] = -1
    labeled = mask.double() / mask.sum(1, keepdim=True)
    unlabeled = (~mask).double() / (~mask).sum(1, keepdim=True)
    lam, lam_labeled = torch.tensor([0.0, 0.5, 2.0]).double(), torch.tensor([0.0, -0.5, 0.1]).double()

    def run(function, device, dtype, *rest):
        z = logits.to(device, dtype).requires_grad_()
        weights = (t.to(device, dtype) for t in (labeled, unlabeled))
        lams = [t.to(device, dtype) for t in (lam, lam_labeled)]
        labels = y.to(device)
        if function is population_loss:
            loss, parts = function(z, labels, *weights, Objective(*lams))
        else:
            loss, parts = function(z, labels, *weights, *lams)
        (gradient,) = torch.autograd.grad((loss * torch.tensor([1.0, 2.0, 3.0], device=device, dtype=dtype)).sum(), z)
        return [t.detach().cpu().double() for t in (loss, parts, gradient)]

    expected = run(population_loss, "cpu", torch.float64)
    actual = run(population_loss_triton, kernel_device, torch.float32)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_nan_stays_in_its_member(kernel_device):
    from sharpen.kernels.triton.loss import population_loss_triton

    logits = torch.zeros(2, 4, 3, device=kernel_device)
    logits[0, 1] = torch.nan
    quarter = torch.full((2, 4), 0.25, device=kernel_device)
    y, lam = torch.zeros(4, dtype=torch.int64, device=kernel_device), torch.ones(2, device=kernel_device)
    loss, _ = population_loss_triton(logits, y, quarter, quarter, lam, -lam)
    assert loss.isnan().tolist() == [True, False]
