"""Adam against torch's own, member by member."""

import torch

from sharpen.kernels.adam import Adam

LR, DECAY = [1e-3, 0.05, 0.0], [5e-4, 0.0, 0.1]


def trajectory(gradients, shapes):
    """torch.optim.Adam, one optimiser for each member."""
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, *shape, generator=generator, dtype=torch.float64) for shape in shapes]
    expected = [s.clone() for s in start]
    for r in range(3):
        leaves = [e[r].clone().requires_grad_() for e in expected]
        optimizer = torch.optim.Adam(leaves, lr=LR[r], weight_decay=DECAY[r])
        for step in gradients:
            for leaf, g in zip(leaves, step, strict=True):
                leaf.grad = g[r].clone()
            optimizer.step()
        for e, leaf in zip(expected, leaves, strict=True):
            e[r] = leaf.detach()
    return start, expected


def make_gradients(shapes, steps=20):
    generator = torch.Generator().manual_seed(1)
    return [[torch.randn(3, *s, generator=generator, dtype=torch.float64) for s in shapes] for _ in range(steps)]


def test_every_member_is_torchs_adam():
    shapes = [(4, 3), (5,)]
    gradients = make_gradients(shapes)
    ours, expected = trajectory(gradients, shapes)
    adam = Adam(ours, torch.tensor(LR, dtype=torch.float64), torch.tensor(DECAY, dtype=torch.float64))
    for step in gradients:
        adam.step(step)
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_fused_kernel(kernel_device):
    from sharpen.kernels.triton.adam import update_triton

    shapes = [(40, 33)]
    gradients = make_gradients(shapes, steps=5)
    (p,), (expected,) = trajectory(gradients, shapes)
    p = p.to(kernel_device, torch.float32)
    m, v = torch.zeros_like(p), torch.zeros_like(p)
    lr, decay = (torch.tensor(values, device=kernel_device) for values in (LR, DECAY))
    for number, (g,) in enumerate(gradients, start=1):
        root = torch.tensor((1 - 0.999**number) ** 0.5, device=kernel_device)
        update_triton(p, g.to(kernel_device, torch.float32), m, v, lr / (1 - 0.9**number), root, decay)
    torch.testing.assert_close(p.cpu().double(), expected, rtol=1e-5, atol=1e-5)
