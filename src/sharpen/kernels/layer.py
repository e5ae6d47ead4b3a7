"""A layer after its matrix product: gather from the neighbours, add the node's own, then bias, norm, ReLU and dropout.

The product ``z`` has its columns in blocks: what neighbours gather (H columns), what the node keeps (H), and the scores of
attention (two). Which of them there are is the :class:`Blocks`. The fused kernels take one product with all columns, the scores
padded with zeros so that rows stay aligned. Elsewhere each block is a product of its own: joining and splitting columns
means copies, which a CPU feels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sharpen.kernels import backend
from sharpen.kernels.activation import Dropout, Norm, activate
from sharpen.kernels.edges import attend
from sharpen.kernels.sparse import Csr, spmm

_SCORE_COLUMNS = 16


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
        present = (self.width * self.neighbors, self.width * self.own, _SCORE_COLUMNS * self.scores)
        return [size for size in present if size]

    @property
    def columns(self) -> int:
        """All columns together."""
        return sum(self.sizes)

    def split(self, z: Sequence[Tensor]) -> list[Tensor]:
        """A product's blocks, each by itself.

        >>> [part.shape[2] for part in Blocks(4, neighbors=True, own=True).split([torch.ones(1, 3, 8)])]
        [4, 4]
        """
        return list(z) if len(z) == len(self.sizes) else list(z[0].split(self.sizes, dim=2))


def join_blocks(weights: Sequence[Tensor], blocks: Blocks) -> list[Tensor]:
    """The weights of a layer's column blocks as its kernels take them: joined for the fused ones, else as they are.

    >>> weights = [torch.ones(1, 4, 8), torch.ones(1, 4, 2)]
    >>> [w.shape[2] for w in join_blocks(weights, Blocks(8, neighbors=True, own=False, scores=True))]
    [8, 2]
    """
    if len(weights) == 1 or not backend.fused(weights[0]):
        return list(weights)
    padded = [F.pad(w, (0, size - w.shape[2])) for w, size in zip(weights, blocks.sizes, strict=True)]
    return [torch.cat(padded, dim=2)]


def finish_layer(
    z: Sequence[Tensor],
    blocks: Blocks,
    graph: Csr | None,
    bias: Tensor | None,
    norm: Norm | None,
    training: bool,
    dropout: Dropout | None,
    overwrite: bool = False,
    offered: Sequence[Tensor] = (),
) -> Tensor:
    """What a layer makes of its matrix product.

    Args:
        z: The product, [R, N, C], or one for each of its blocks of columns; see :func:`join_blocks`.
        blocks: What its columns are.
        graph: The propagation matrix, or the pattern of attention; nothing where neighbours do not count.
        bias, norm, training, dropout: See :func:`sharpen.kernels.activation.activate`.
        overwrite: Whether the result may take the place of ``z``.
        offered: Where ``z`` is of some nodes only, one for each row of the graph: what all nodes offer, the block that is gathered
            and, for attention, that of scores.

    >>> import scipy.sparse as sp
    >>> swap = Csr.from_scipy(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]))
    >>> z = [torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[10.0], [20.0]]])]
    >>> finish_layer(z, Blocks(1, neighbors=True, own=True), swap, None, None, False, None).flatten().tolist()
    [12.0, 21.0]
    """
    if not offered and backend.fused(z[0]):
        from sharpen.kernels.triton.layer import finish_layer_triton

        return finish_layer_triton(z[0], blocks, graph, bias, norm, training, dropout)
    overwrite = overwrite and len(z) == len(blocks.sizes)
    z = blocks.split(z)
    if not blocks.neighbors:
        return activate(z[0], bias, norm, training, dropout, overwrite)
    assert graph is not None
    offered, own = offered or (z[0], z[-1]), z[1] if blocks.own else None
    if blocks.scores:
        gathered = attend(offered[0], offered[1][..., 0], z[-1][..., 1], graph, own, overwrite)
    else:
        gathered = spmm(graph, offered[0], own, overwrite)
    return activate(gathered, bias, norm, training, dropout, overwrite=True)
