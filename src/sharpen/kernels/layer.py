"""A layer after its matrix product: gather from the neighbours, add the node's own, then bias, norm, ReLU and dropout.

The product ``z`` [R, N, C] has its columns in blocks: what neighbours gather (H columns), what the node keeps (H), and the
scores of attention (two, padded with zeros so that rows stay aligned). Which of them there are is the :class:`Blocks`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sharpen.kernels import backend
from sharpen.kernels.activation import Dropout, Norm, activate
from sharpen.kernels.attention import attend
from sharpen.kernels.sparse import Csr, spmm

SCORE_COLUMNS = 16


@dataclass(frozen=True)
class Blocks:
    """The columns of a product.

    >>> Blocks(width=64, neighbors=True, own=True, scores=True).columns
    144
    """

    width: int
    neighbors: bool
    own: bool
    scores: bool = False

    @property
    def sizes(self) -> list[int]:
        """The widths of the blocks that are there, in order."""
        present = (self.width * self.neighbors, self.width * self.own, SCORE_COLUMNS * self.scores)
        return [size for size in present if size]

    @property
    def columns(self) -> int:
        """All columns together."""
        return sum(self.sizes)

    def offered(self, z: Tensor) -> Tensor:
        """Of a product, the columns that a node's neighbours look at: what they gather, and its scores.

        >>> import torch
        >>> Blocks(width=2, neighbors=True, own=True).offered(torch.arange(4.0).view(1, 1, 4)).flatten().tolist()
        [0.0, 1.0]
        """
        if not self.scores:
            return z[..., : self.width]
        return torch.cat([z[..., : self.width], z[..., -SCORE_COLUMNS:]], dim=2) if self.own else z


def finish_layer_plain(
    z: Tensor,
    blocks: Blocks,
    graph: Csr | None,
    bias: Tensor | None,
    norm: Norm | None,
    training: bool,
    dropout: Dropout | None,
    everywhere: Tensor | None = None,
) -> Tensor:
    """:func:`finish_layer` as separate steps: the reference for the fused kernel, and the CPU's way."""
    parts = list(z.split(blocks.sizes, dim=2)) if len(blocks.sizes) > 1 else [z]
    out = parts[0]
    if blocks.neighbors:
        assert graph is not None
        offered = parts if everywhere is None else [everywhere[..., : blocks.width], everywhere[..., blocks.width :]]
        h = offered[0]
        out = attend(h, offered[-1][..., 0], parts[-1][..., 1], graph) if blocks.scores else spmm(graph, h)
        if blocks.own:
            out = out + parts[1]
    return activate(out, bias, norm, training, dropout)


def finish_layer(
    z: Tensor,
    blocks: Blocks,
    graph: Csr | None,
    bias: Tensor | None,
    norm: Norm | None,
    training: bool,
    dropout: Dropout | None,
    everywhere: Tensor | None = None,
) -> Tensor:
    """What a layer makes of its matrix product.

    Args:
        z: The product, [R, N, C].
        blocks: What its columns are.
        graph: The propagation matrix, or the pattern of attention; nothing where neighbours do not count.
        bias, norm, training, dropout: See :func:`sharpen.kernels.activation.activate`.
        everywhere: Where ``z`` holds some of the nodes only: what all nodes offer to neighbours (:meth:`Blocks.offered`). The graph
            then has a row for each node of ``z`` and a column for each node there is.

    >>> import scipy.sparse as sp, torch
    >>> swap = Csr.from_scipy(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]))
    >>> z = torch.tensor([[[1.0, 10.0], [2.0, 20.0]]])
    >>> finish_layer(z, Blocks(1, neighbors=True, own=True), swap, None, None, False, None).flatten().tolist()
    [12.0, 21.0]
    """
    if backend.fused(z) and everywhere is None:
        from sharpen.kernels.triton.layer import finish_layer_triton

        return finish_layer_triton(z, blocks, graph, bias, norm, training, dropout)
    return finish_layer_plain(z, blocks, graph, bias, norm, training, dropout, everywhere)
