"""Attention against the formula in NumPy, its derivatives against finite differences."""

import numpy as np
import scipy.sparse as sp
import torch

from sharpen.kernels.edges import attend
from sharpen.kernels.sparse import Csr

NODES = 7


def ring_with_hub() -> Csr:
    """A ring with self-loops, and node 0 joined to all."""
    dense = np.eye(NODES) + np.roll(np.eye(NODES), 1, axis=1) + np.roll(np.eye(NODES), -1, axis=1)
    dense[0] = dense[:, 0] = 1
    return Csr.from_scipy(sp.csr_array(dense > 0), torch.float64, symmetric=True)


def operands(width: int, members: int = 2):
    generator = torch.Generator().manual_seed(width)
    shapes = ((members, NODES, width), (members, NODES), (members, NODES))
    return [torch.randn(*s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


def test_formula_in_numpy():
    h, s, t = (o.detach().numpy() for o in operands(3))
    pattern = ring_with_hub()
    dense = pattern.matrix.to_dense().numpy() > 0
    actual = attend(*(torch.from_numpy(o) for o in (h, s, t)), pattern).numpy()
    for r in range(2):
        for i in range(NODES):
            neighbors = np.flatnonzero(dense[i])
            e = s[r, neighbors] + t[r, i]
            w = np.exp(np.where(e > 0, e, 0.2 * e))
            np.testing.assert_allclose(actual[r, i], (w / w.sum()) @ h[r, neighbors], rtol=1e-12)


def test_first_and_second_derivatives():
    pattern, inputs = ring_with_hub(), operands(2, members=1)
    assert torch.autograd.gradcheck(lambda *o: attend(*o, pattern), inputs)
    assert torch.autograd.gradgradcheck(lambda *o: attend(*o, pattern), inputs)


def test_scores_of_any_size_do_not_overflow():
    h, s, t = (o.detach() for o in operands(2))
    assert attend(h, s * 1e4, t * 1e4, ring_with_hub()).isfinite().all()
