"""The drawing of a graph: near in the graph is near on the page, nothing covers anything, the same every time."""

import networkx
import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from sharpen.report.page.layout import layout


def drawn(graph: networkx.Graph) -> np.ndarray:
    edges = np.array(list(graph.edges)).T if graph.number_of_edges() else np.zeros((2, 0), dtype=int)
    return layout(graph.number_of_nodes(), edges[0], edges[1])


@pytest.mark.parametrize("graph", [networkx.karate_club_graph(), networkx.path_graph(30), networkx.grid_2d_graph(6, 5)])
def test_distance_on_the_page_follows_distance_in_the_graph(graph: networkx.Graph) -> None:
    graph = networkx.convert_node_labels_to_integers(graph)
    steps = networkx.floyd_warshall_numpy(graph)
    above = np.triu_indices(len(steps), 1)
    assert spearmanr(pdist(drawn(graph)), steps[above]).statistic > 0.6


def test_the_same_graph_is_drawn_the_same() -> None:
    graph = networkx.karate_club_graph()
    np.testing.assert_array_equal(drawn(graph), drawn(graph))


def test_clusters_keep_apart() -> None:
    graph = networkx.connected_caveman_graph(4, 8)
    position, cave = drawn(graph), np.repeat(np.arange(4), 8)
    centres = np.stack([position[cave == c].mean(0) for c in range(4)])
    within = max(np.linalg.norm(position[cave == c] - centres[c], axis=1).mean() for c in range(4))
    assert pdist(centres).min() > within


@pytest.mark.parametrize("graph", [networkx.star_graph(200), networkx.empty_graph(50), networkx.complete_graph(40)])
def test_no_node_hides_another(graph: networkx.Graph) -> None:
    position = drawn(graph)
    assert np.isfinite(position).all()
    fair = np.ptp(position, axis=0).max() / np.sqrt(len(position))
    assert pdist(position).min() > 0.1 * fair


def test_it_is_wider_than_high() -> None:
    wide, high = np.ptp(drawn(networkx.path_graph(10)), axis=0)
    assert wide >= high


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_hardly_a_graph(nodes: int) -> None:
    assert drawn(networkx.empty_graph(nodes)).shape == (nodes, 2)


def test_loops_and_double_edges_change_nothing() -> None:
    source, target = np.array([0, 1, 2]), np.array([1, 2, 3])
    once = layout(4, source, target)
    again = layout(4, np.concatenate([source, target, [2]]), np.concatenate([target, source, [2]]))
    np.testing.assert_allclose(once, again)


@pytest.mark.parametrize("alone", [1, 40])
def test_isolated_nodes_lie_below_and_move_nobody(alone: int) -> None:
    club = networkx.karate_club_graph()
    wanted, more = drawn(club), club.copy()
    more.add_nodes_from(range(34, 34 + alone))
    position = drawn(more)
    held, below = position[:34], position[34:]
    np.testing.assert_allclose(held - held.mean(0), wanted - wanted.mean(0), atol=1e-9)
    assert below[:, 1].max() < held[:, 1].min()
    assert held[:, 0].min() <= below[:, 0].min()
    assert below[:, 0].max() <= held[:, 0].max()
    assert np.ptp(below[:, 1]) < np.ptp(held[:, 1])
