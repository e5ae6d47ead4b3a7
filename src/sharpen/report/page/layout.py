r"""Where to draw the nodes of a small graph: springs along edges, and all nodes keep their distance.

A force-directed layout in the manner of Jacomy et al. (*ForceAtlas2*, 2014): neighbours attract in proportion to their distance,
all nodes repel with :math:`(d_i + 1)(d_j + 1) / r`, a weak pull keeps components together. The repulsion of all pairs is a
convolution of the masses with :math:`\mathbf r / r^2`, and is done as one, on a grid, by fast Fourier transforms: a step costs
next to nothing more for thousands of nodes than for hundreds.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import scipy.sparse
from scipy.fft import irfft2, rfft2
from scipy.spatial import cKDTree

from sharpen.files.structure import pattern

_STEPS = 300
# A weaker pull along than across makes a drawing that is wider than high, as screens are.
_GRAVITY = np.array([0.016, 0.026])


def layout(num_nodes: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Positions [N, 2], wider than high, about the origin; the same for the same graph every time.

    Args:
        num_nodes: N.
        source, target: The ends of each edge; direction does not matter.

    >>> ends = layout(4, np.array([0, 2]), np.array([1, 3]))
    >>> near, far = np.linalg.norm(ends[0] - ends[1]), np.linalg.norm(ends[0] - ends[2])
    >>> bool(near < far)
    True
    """
    if num_nodes < 3:
        return np.array([[0.0, 0.0], [1.0, 0.0]])[:num_nodes]
    adjacency = pattern(np.stack([source, target]), num_nodes)
    degree: np.ndarray = np.diff(adjacency.indptr).astype(np.float64)
    held = degree > 0
    if 1 < held.sum() < num_nodes:
        number = np.cumsum(held) - 1
        some = source != target  # a loop holds nobody
        return _below(layout(int(held.sum()), number[source[some]], number[target[some]]), held)
    mass = degree + 1
    position = _first(adjacency, degree)
    cells = 32 if num_nodes < 100 else 64 if num_nodes < 600 else 128
    speed = np.full(num_nodes, 1.0)
    last = np.zeros_like(position)
    for step in range(_STEPS):
        pull = adjacency @ position - degree[:, None] * position
        force = pull / mass[:, None] + _repulsion(position, mass, cells) - _GRAVITY * position
        # A node that swings slows down, one that travels speeds up.
        turning = (force * last).sum(1) / (np.linalg.norm(force, axis=1) * np.linalg.norm(last, axis=1) + 1e-12)
        speed = np.clip(speed * np.where(turning < 0, 0.6, 1.1), 0.02, 1.0)
        size = np.linalg.norm(force, axis=1, keepdims=True)
        limit = 0.1 * np.ptp(position, axis=0).max() * (1 - step / _STEPS) + 1e-9
        position = position + force * np.minimum(speed[:, None] * 0.5, limit / (size + 1e-12))
        last = force
    position = _apart(position)
    position = position - position.mean(0)
    return position @ np.linalg.svd(position, full_matrices=False)[2].T  # turned so that it is wider than high


def _below(position: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Positions of all nodes: isolated ones, which no spring holds, in rows below the others, no wider than these."""
    low, high = position.min(0), position.max(0)
    alone = int((~held).sum())
    step = max(0.5 * float((high - low).max()) / np.sqrt(len(held)), 1e-9)
    most = max(1, int((high[0] - low[0]) / step) + 1)
    row, column = np.divmod(np.arange(alone), most)
    in_row = np.minimum(most, alone - row * most)
    middle = (low[0] + high[0]) / 2
    out = np.empty((len(held), 2))
    out[held] = position
    out[~held] = np.stack([middle + step * (column - (in_row - 1) / 2), low[1] - step * (2 + row)], axis=1)
    return out - out.mean(0)


def _first(adjacency: scipy.sparse.csr_array, degree: np.ndarray) -> np.ndarray:
    """Random positions, smoothed over the graph: neighbours start near each other."""
    position = np.random.default_rng(0).normal(size=(adjacency.shape[0], 2))
    for _ in range(30):
        heard = (adjacency @ position) / np.maximum(degree, 1)[:, None]
        position = np.where(degree[:, None] > 0, 0.5 * position + 0.5 * heard, position)
        position = position - position.mean(0)
        position = np.linalg.qr(position)[0]
    return position * adjacency.shape[0]


def _repulsion(position: np.ndarray, mass: np.ndarray, cells: int) -> np.ndarray:
    """The sum over all other nodes of mass times r / |r|², by way of a grid."""
    low, extent = position.min(0), float(np.ptp(position, axis=0).max()) + 1e-9
    width = extent / (cells - 2)
    place = (position - low) / width
    corner = np.floor(place).astype(int)
    share = place - corner
    corners = [
        (np.abs(1 - dx - share[:, 0]) * np.abs(1 - dy - share[:, 1]), (corner[:, 0] + dx) * cells + corner[:, 1] + dy)
        for dx, dy in itertools.product((0, 1), repeat=2)
    ]
    density = np.zeros(cells * cells)
    for weight, index in corners:
        density += np.bincount(index, weight * mass, minlength=cells * cells)
    shape = (2 * cells, 2 * cells)  # room for the convolution not to wrap around
    spectrum = rfft2(density.reshape(cells, cells), s=shape)
    field = [irfft2(spectrum * kernel, s=shape)[:cells, :cells].ravel() / width for kernel in _kernels(cells)]
    return np.stack([sum(weight * part[index] for weight, index in corners) for part in field], axis=1)


@cache
def _kernels(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """The transforms of both parts of r / |r|² on a grid of twice the size; no node pushes itself."""
    offsets = np.arange(2 * cells)
    offsets = np.where(offsets >= cells, offsets - 2 * cells, offsets).astype(np.float64)
    dx, dy = np.meshgrid(offsets, offsets, indexing="ij")
    square = dx**2 + dy**2
    square[0, 0] = 1
    return rfft2(dx / square), rfft2(dy / square)


def _apart(position: np.ndarray) -> np.ndarray:
    """Nodes that the grid could not tell apart move away from each other."""
    least = 0.5 * float(np.ptp(position, axis=0).max()) / np.sqrt(len(position))
    position = position + least * 1e-3 * np.random.default_rng(1).normal(size=position.shape)
    for _ in range(30):
        pairs = cKDTree(position).query_pairs(least, output_type="ndarray")
        if not len(pairs):
            break
        apart = position[pairs[:, 0]] - position[pairs[:, 1]]
        far = np.linalg.norm(apart, axis=1, keepdims=True) + 1e-12
        move = 0.25 * (least - far) * apart / far
        np.add.at(position, pairs[:, 0], move)
        np.add.at(position, pairs[:, 1], -move)
    return position
