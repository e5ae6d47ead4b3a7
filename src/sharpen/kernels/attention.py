"""Attention over the edges of a graph, for a stack of members.

Node i gathers from its neighbours j with weights that are a softmax over the neighbours of

.. math:: e_{ij} = \\mathrm{LeakyReLU}(s_j + t_i), \\qquad y_i = \\sum_j \\mathrm{softmax}_j(e_{ij})\\, h_j
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels.edges import softmax, sum_of_ends, weighted_sum
from sharpen.kernels.sparse import Csr

NEGATIVE_SLOPE = 0.2


def attend(
    h: Tensor, source: Tensor, target: Tensor, pattern: Csr, onto: Tensor | None = None, overwrite: bool = False
) -> Tensor:
    """Every node's attention-weighted mean of its neighbours; twice differentiable.

    Args:
        h: What is gathered, [R, N, H].
        source: What each node offers as a neighbour, s in the formula, [R, N].
        target: What each node asks for, t in the formula, [R, N].
        pattern: The adjacency; row i holds the neighbours of i. Values are ignored.
        onto: What the mean is added to, if anything.
        overwrite: Whether the sum may take the place of ``onto``.

    >>> import scipy.sparse as sp
    >>> import torch
    >>> ring = Csr.from_scipy(sp.csr_array([[1.0, 1.0], [1.0, 1.0]]))
    >>> attend(torch.tensor([[[0.0], [4.0]]]), torch.zeros(1, 2), torch.zeros(1, 2), ring).flatten().tolist()
    [2.0, 2.0]
    """
    score = F.leaky_relu(sum_of_ends(source, target, pattern), NEGATIVE_SLOPE)
    return weighted_sum(softmax(score, pattern), h, pattern, onto, overwrite)
