r"""The matrices of a graph that propagate vectors along its edges, by name; every one of them is made here.

========== =====================================================================================================================
symmetric  :math:`D^{-1/2} A D^{-1/2}`, A being the pattern with one self-loop per node, D its row sums
mean       :math:`D^{-1} A`
pattern    A with all entries 1, for attention
one-hop    as symmetric, of the neighbours alone: no self-loops
two-hop    as symmetric, of the nodes at distance two exactly
in, out    :math:`D_\text{in}^{-1/2} B^\top D_\text{out}^{-1/2}` and its transpose, B being the edges as they are directed: row i
gathers
           from the sources of the edges into i, or from the targets of those out of i
========== =====================================================================================================================

Edge weights count in all but ``pattern`` and ``two-hop``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sharpen.errors import check_word
from sharpen.graph.graph import Graph

_MATRICES = ("symmetric", "mean", "pattern", "one-hop", "two-hop", "in", "out")


def degree_factors(name: str, degree: Any) -> tuple[Any, Any]:
    """What the rows and the columns of A are multiplied by to make ``symmetric`` or ``mean`` of it; NumPy's or torch's numbers.

    >>> degree_factors("mean", np.array([2.0, 4.0]))
    (array([0.5 , 0.25]), array([1., 1.]))
    """
    if name == "symmetric":
        return degree**-0.5, degree**-0.5
    return 1 / degree, degree**0


def _scaled(matrix: Any) -> Any:
    """D^-½ M D'^-½ with the row and the column sums of M; rows and columns of zeros stay as they are."""

    def root(sums: np.ndarray) -> Any:
        return sp.diags_array(np.divide(1, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0))

    return sp.csr_array(root(matrix.sum(1)) @ matrix @ root(matrix.sum(0)))


def _without(matrix: Any, entries: Any) -> Any:
    left = sp.csr_array(matrix - entries)
    left.eliminate_zeros()
    return left


def _apart(matrix: Any) -> Any:
    """The same without self-loops."""
    return _without(matrix, sp.diags_array(matrix.diagonal()))


def propagation_matrix(graph: Graph, name: str) -> Any:
    """The named matrix in SciPy's compressed rows, in double precision.

    >>> path = Graph(x=np.eye(3), edge_index=[[0, 1], [1, 2]])
    >>> propagation_matrix(path, "mean").toarray()[0].tolist()
    [0.5, 0.5, 0.0]
    >>> propagation_matrix(path, "two-hop").toarray()[0].tolist()
    [0.0, 0.0, 1.0]
    >>> propagation_matrix(path, "in").toarray()[1].tolist()  # of the directed edges 0 → 1 → 2
    [1.0, 0.0, 0.0]
    """
    check_word("matrix", name, _MATRICES)
    if name in ("in", "out"):  # row i of the first has the sources of the edges into i
        into = _scaled(_apart(graph.edge_matrix(np.float64)).T)
        return into if name == "in" else sp.csr_array(into.T)
    matrix = graph.adjacency.to_scipy().astype(np.float64)
    if name == "one-hop":
        return _scaled(_apart(matrix))
    if name in ("symmetric", "mean"):
        by_row, by_col = degree_factors(name, matrix.sum(1))
        row = np.repeat(np.arange(graph.num_nodes), np.diff(matrix.indptr))
        matrix.data *= by_row[row] * by_col[matrix.indices]
        return matrix
    matrix.data[:] = 1
    if name == "pattern":
        return matrix
    reach = sp.csr_array(matrix @ matrix)  # with all that one step reaches, as there are self-loops
    reach.data[:] = 1
    return _scaled(_without(reach, matrix))


def is_symmetric(name: str) -> bool:
    """Whether a named matrix equals its transpose.

    >>> is_symmetric("symmetric"), is_symmetric("mean")
    (True, False)
    """
    return name in ("symmetric", "pattern", "one-hop", "two-hop")
