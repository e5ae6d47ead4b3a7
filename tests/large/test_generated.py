"""Stand-ins have the size, the uneven degrees and the label share of the graphs they stand for."""

import numpy as np
import pytest

from sharpen.errors import InputError
from sharpen.large.generated import SIZES, generate


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return generate("ogbn-products", tmp_path_factory.mktemp("graphs") / "products", scale=0.004)


def test_size_degrees_and_split(small):
    size, graph, split = SIZES["ogbn-products"].scaled(0.004), small.graph, small.splits["given-0"]
    assert (graph.num_nodes, graph.num_edges) == (size.nodes, 2 * size.edges)
    assert (graph.num_features, graph.num_classes) == (100, 47)
    assert [len(part) for part in (split.train, split.val, split.test)] == list(size.split)
    degree = graph.adjacency.degree().numpy() - 1
    assert 0.3 * size.max_degree < degree.max() < 2 * size.max_degree
    assert np.median(degree) < 0.7 * degree.mean(), "a few nodes have most of the edges"


def test_edges_mostly_join_nodes_of_one_class(small):
    """Less than published on so small a graph, whose communities have hardly room for all edges of a hub."""
    source, target = small.graph.edge_index
    assert (small.graph.y[source] == small.graph.y[target]).double().mean() > 0.4


def test_the_pattern_is_symmetric_with_one_loop_per_node(small):
    matrix = small.graph.adjacency.to_scipy()
    assert abs(matrix - matrix.T).sum() == 0
    assert (matrix.diagonal() == 1).all()


def test_the_same_again_is_opened_and_another_refused(small, tmp_path):
    folder = small.graph.folder
    assert generate("ogbn-products", folder, scale=0.004).graph.fingerprint == small.graph.fingerprint
    with pytest.raises(InputError, match="another folder"):
        generate("ogbn-products", folder, scale=0.002)
    with pytest.raises(InputError, match=r"'seed': 0.*'seed': 1.*another folder"):
        generate("ogbn-products", folder, scale=0.004, seed=1)
    same_nodes = 0.004 + 1e-9
    assert SIZES["ogbn-products"].scaled(same_nodes).nodes == small.graph.num_nodes
    with pytest.raises(InputError, match="another folder"):
        generate("ogbn-products", folder, scale=same_nodes)
    with pytest.raises(InputError, match="choose one of"):
        generate("ogbn-mag", tmp_path / "mag")


def test_an_empty_folder_is_used_and_one_of_other_things_is_named(tmp_path):
    assert generate("ogbn-arxiv", tmp_path, scale=0.001).graph.folder == tmp_path
    (tmp_path / "graph.json").unlink()
    with pytest.raises(InputError, match="give a new folder, or an empty one"):
        generate("ogbn-arxiv", tmp_path, scale=0.001)
