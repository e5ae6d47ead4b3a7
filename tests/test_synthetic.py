"""Synthetic graphs have the size, the uneven degrees and the label share of the graphs they stand for."""

import numpy as np
import pytest

from sharpen.errors import InputError
from tests.scripts import synthetic

SIZES, generate = synthetic.SIZES, synthetic.generate


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return generate("ogbn-products", tmp_path_factory.mktemp("graphs") / "products", scale=0.004)


def test_size_degrees_and_split(small):
    size, graph, split = SIZES["ogbn-products"].scaled(0.004), small.graph, small.splits["given-0"]
    assert (graph.num_nodes, graph.num_edges) == (size.nodes, 2 * size.edges)
    assert (graph.num_features, graph.num_classes) == (100, 47)
    assert [len(part) for part in (split.train, split.val, split.test)] == list(size.split)
    degree = graph.adjacency.degree().numpy() - 1
    assert degree.min() > 0
    assert degree.max() == pytest.approx(size.max_degree, rel=0.03)
    assert np.median(degree) < 0.85 * degree.mean(), (
        "a few nodes have most of the edges, as far as small communities have room"
    )


def test_as_many_edges_as_published_join_nodes_of_one_class(small):
    source, target = small.graph.edge_index
    assert (small.graph.y[source] == small.graph.y[target]).double().mean() == pytest.approx(0.81, abs=0.01)


@pytest.mark.parametrize("seed", [0, 1])
def test_at_full_size_degrees_and_homophily_are_the_published_ones(seed, tmp_path):
    size, graph = SIZES["ogbn-arxiv"], generate("ogbn-arxiv", tmp_path / "arxiv", seed=seed).graph
    degree = graph.adjacency.degree().numpy() - 1
    assert (graph.num_nodes, graph.num_edges, degree.min()) == (size.nodes, 2 * size.edges, 1)
    assert degree.max() == pytest.approx(size.max_degree, rel=0.03)
    assert np.median(degree) < 0.5 * degree.mean(), "a few nodes have most of the edges"
    source, target = graph.edge_index
    assert (graph.y[source] == graph.y[target]).double().mean() == pytest.approx(size.homophily, abs=0.01)


@pytest.mark.parametrize("name", list(SIZES))
def test_a_graph_too_small_for_all_of_it_has_its_edges_all_the_same(name, tmp_path):
    size, graph = SIZES[name].scaled(0.0005), generate(name, tmp_path / "tiny", scale=0.0005).graph
    assert (graph.num_edges, int(graph.adjacency.degree().min()) > 1) == (2 * size.edges, True)


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
