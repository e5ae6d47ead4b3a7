from __future__ import annotations

import dataclasses

import pytest
import torch

from sharpen.datasets import Dataset, Splits
from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.graph.splits import Split, draw_split

Y = [0, 1] * 5


def graph(y=Y) -> Graph:
    return Graph(x=torch.eye(len(y)), edge_index=[[0, 1], [1, 2]], y=y)


def mine(name: str = "mine") -> Split:
    return Split(name, [0, 1], [2], [3])


def test_given_split_comes_back_as_it_is():
    split = mine()
    assert Splits([split])["mine"] is split
    assert Splits({"other": split})["other"] is split


def test_drawn_split_is_that_of_its_name_and_is_kept():
    splits = Splits(y=Y)
    drawn = splits["stratified-60-20-20-seed3"]
    assert drawn.id == draw_split("stratified-60-20-20-seed3", Y).id
    assert splits["stratified-60-20-20-seed3"] is drawn


def test_iteration_is_over_given_and_paper_whatever_was_drawn():
    splits = Splits([mine("public")], y=Y, paper=["ratio-50-30-20-seed1"])
    assert splits["ratio-50-30-20-seed7"].name == "ratio-50-30-20-seed7"
    assert list(splits) == ["public", "ratio-50-30-20-seed1"]
    assert len(splits) == 2
    assert [split.name for split in splits.values()] == ["public", "ratio-50-30-20-seed1"]
    assert splits.given == ("public",)


def test_it_is_a_mapping():
    splits = Splits([mine()], y=Y)
    assert "mine" in splits
    assert "ratio-50-30-20-seed0" in splits
    assert "yours" not in splits
    assert "balanced-20-500-1000-seed0" not in splits  # ten nodes are too few
    assert splits.get("yours") is None


def test_unknown_name_is_an_input_error_that_lists_the_given_ones():
    with pytest.raises(InputError, match=r"'given-4' cannot be drawn.*\(given splits: given-0, given-1\)") as caught:
        Splits([mine("given-0"), mine("given-1")], y=Y)["given-4"]
    assert not str(caught.value).startswith("'")  # the text, not the repr that a KeyError prints


def test_nothing_is_drawn_without_labels():
    with pytest.raises(InputError, match="no labels to draw"):
        Splits([mine()])["ratio-50-30-20-seed0"]


def test_paper_is_the_given_ones_by_default():
    assert Splits([mine("a"), mine("b")]).paper == ("a", "b")
    assert Splits(y=Y).paper == ()


def test_paired():
    given = [mine("given-0"), mine("given-1")]
    assert Splits(given, y=Y).paired_names(1) == ("given-0",)
    assert Splits(given, y=Y).paired_names(5) == ("given-0", "given-1")
    assert Splits(given, y=Y, paired="ratio-50-30-20-seed{seed}").paired_names(2) == (
        "ratio-50-30-20-seed0",
        "ratio-50-30-20-seed1",
    )
    assert Splits(y=Y).paired_names(1) == ("stratified-60-20-20-seed0",)
    with pytest.raises(InputError, match="n is 0"):
        Splits(given).paired_names(0)


def test_two_given_splits_of_one_name():
    with pytest.raises(InputError, match="two of the given splits are called 'mine'"):
        Splits([mine(), mine()])


def test_dataset_of_a_graph_alone_draws_from_its_labels():
    dataset = Dataset("mine", graph())
    assert dataset.metric == "accuracy"
    assert dataset.splits["ratio-50-30-20-seed0"].id == draw_split("ratio-50-30-20-seed0", Y).id


def test_dataset_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Dataset("mine", graph()).metric = "roc-auc"
    assert dataclasses.replace(Dataset("mine", graph()), metric="roc-auc").metric == "roc-auc"


def test_metric_must_be_known_and_possible():
    with pytest.raises(InputError, match="metric is 'f1'; choose one of accuracy, balanced-accuracy, roc-auc"):
        Dataset("mine", graph(), "f1")
    assert Dataset("mine", graph(), "roc-auc").metric == "roc-auc"
    with pytest.raises(InputError, match="needs two classes, but mine has 3"):
        Dataset("mine", graph([0, 1, 2]), "roc-auc")


def test_given_split_must_fit_the_graph():
    with pytest.raises(InputError, match="holds node 10"):
        Dataset("mine", graph(), splits=Splits([Split("mine", [0], [1], [10])]))


@pytest.mark.parametrize("field", ["train", "val", "test"])
def test_given_split_must_hold_only_nodes_of_known_class(field):
    sets = {"train": [0], "val": [1], "test": [2]}
    sets[field] = [*sets[field], 3]
    with pytest.raises(InputError, match=f"node 3 in {field}, but its class is unknown"):
        Dataset("mine", graph([0, 1, 0, -1]), splits=Splits([Split("mine", **sets)]))
