"""Splits: the paper's draw, the rules of the others, their names and files."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedShuffleSplit

from sharpen.errors import InputError
from sharpen.graph.split_files import load_split, save_split
from sharpen.graph.splits import Split, class_balanced, draw_split, from_masks, random_ratio, stratified_ratio

examples = settings(max_examples=50, deadline=None)  # a busy machine is no failure
labels = st.lists(st.integers(-1, 4), min_size=8, max_size=80).filter(lambda y: max(y) >= 0)
shares = st.tuples(st.integers(1, 99), st.integers(0, 99)).filter(lambda s: sum(s) <= 100)
DRAWS = [random_ratio, stratified_ratio]


def members(split: Split) -> list[list[int]]:
    return [split.train.tolist(), split.val.tolist(), split.test.tolist()]


def protocol_draw(y: torch.Tensor, seed: int, per_class: int, num_val: int, num_test: int) -> list[set[int]]:
    """The paper's split from the words of its protocol, with torch's global generator."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    train: list[int] = []
    remaining: list[int] = []
    for c in range(int(y.max()) + 1):
        of_class = [node for node, label in enumerate(y.tolist()) if label == c]
        shuffled = [of_class[i] for i in torch.randperm(len(of_class)).tolist()]
        train += shuffled[:per_class]
        remaining += shuffled[per_class:]
    order = torch.randperm(len(remaining)).tolist()
    torch.set_rng_state(state)
    chosen = [remaining[i] for i in order[: num_val + num_test]]
    return [set(train), set(chosen[:num_val]), set(chosen[num_val:])]


# --------------------------------------------------------------------------------------------------- class-balanced


@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_the_papers_planetoid_split_node_for_node(name: str, data_root: Path, tmp_path: Path) -> None:
    from torch_geometric.datasets import Planetoid

    shutil.copytree(data_root / "planetoid" / name / "raw", tmp_path / name / "raw")
    y = Planetoid(str(tmp_path), name)[0].y
    split = draw_split("balanced-20-500-1000-seed123", y)
    train, val, test = protocol_draw(y, 123, 20, 500, 1000)
    assert set(split.train.tolist()) == train
    assert set(split.val.tolist()) == val
    assert set(split.test.tolist()) == test
    assert torch.bincount(y[split.train]).tolist() == [20] * (int(y.max()) + 1)
    assert (split.val.numel(), split.test.numel()) == (500, 1000)


@examples
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 10), st.integers(0, 10), st.randoms())
def test_class_balanced_is_the_protocols(seed: int, per_class: int, num_val: int, num_test: int, random) -> None:
    y = [0] * 9 + [1] * 12 + [2] * 8  # 29 nodes, at least 20 of them left after training
    random.shuffle(y)
    split = class_balanced(torch.tensor(y), per_class, num_val, num_test, seed)
    assert [set(m) for m in members(split)] == protocol_draw(torch.tensor(y), seed, per_class, num_val, num_test)
    assert split.name == f"balanced-{per_class}-{num_val}-{num_test}-seed{seed}"


def test_the_draw_does_not_change_between_versions() -> None:
    # Recorded once: a torch that drew otherwise would give other members to the same name.
    split = class_balanced([0, 1, 2, -1] * 5, per_class=1, val=4, test=4, seed=123)
    assert members(split) == [[1, 8, 18], [0, 5, 13, 17], [4, 6, 10, 16]]


def test_drawing_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    class_balanced([0, 1] * 5, 1, 2, 2, seed=3)
    random_ratio([0, 1] * 5)
    stratified_ratio([0, 1] * 5)
    assert torch.equal(torch.get_rng_state(), before)


def test_class_balanced_can_take_a_class_whole() -> None:
    split = class_balanced([0, 0, 1, 1, 1, -1], per_class=2, val=1, test=0)
    assert set(split.train.tolist()) >= {0, 1}
    assert split.test.numel() == 0


# ----------------------------------------------------------------------------------------------------------- ratios


@pytest.mark.parametrize("draw", DRAWS)
@examples
@given(y=labels, share=shares, seed=st.integers(0, 1000))
def test_ratios_part_the_labeled_nodes(draw: Callable[..., Split], y: list[int], share: tuple, seed: int) -> None:
    n = sum(c >= 0 for c in y)
    train, val = share[0] / 100, share[1] / 100
    assume(n * train >= 1)
    split = draw(y, train, val, seed)
    assert sorted(node for part in members(split) for node in part) == [i for i, c in enumerate(y) if c >= 0]
    helped = sum(y.count(c) >= 3 and y.count(c) * train < 1 for c in set(y) - {-1}) if draw is stratified_ratio else 0
    assert -0.5 - 1e-9 <= split.train.numel() - n * train <= 0.5 + 1e-9 + helped
    assert abs(split.val.numel() - n * val) <= 1 + helped
    assert members(draw(torch.tensor(y), train, val, seed)) == members(split)
    assert members(draw_split(split.name, np.array(y))) == members(split)
    assert draw_split(split.name, y).id == split.id


@examples
@given(labels, shares)
def test_stratified_keeps_the_share_of_each_class(y: list[int], share: tuple[int, int]) -> None:
    train, val = share[0] / 100, share[1] / 100
    assume(sum(c >= 0 for c in y) * train >= 1)
    split = stratified_ratio(y, train, val)
    for c in set(y) - {-1}:
        size = y.count(c)
        in_train = sum(y[i] == c for i in split.train.tolist())
        in_val = sum(y[i] == c for i in split.val.tolist())
        assert abs(in_train - size * train) < 1 + 1e-9
        assert abs(in_val - size * val) < 2
        assert in_train >= (size >= 3)


def test_stratified_on_large_classes_is_sklearns() -> None:
    y = np.repeat([0, 1, 2], [600, 300, 100])
    split = stratified_ratio(y, 0.6, 0.2)
    train, _ = next(StratifiedShuffleSplit(1, train_size=0.6, random_state=0).split(y, y))
    assert np.bincount(y[split.train]).tolist() == np.bincount(y[train]).tolist() == [360, 180, 60]
    assert np.bincount(y[split.val]).tolist() == [120, 60, 20]


def test_stratified_keeps_the_totals_of_many_small_classes() -> None:
    # Rounding each class alone would give 200 training and no validation nodes.
    split = stratified_ratio(np.repeat(np.arange(100), 3), 0.6, 0.2)
    assert [len(part) for part in members(split)] == [180, 60, 60]


def test_ratio_takes_no_notice_of_classes() -> None:
    y = [0] * 50 + [1] * 50
    assert members(random_ratio(y, seed=4)) == members(random_ratio([0] * 100, seed=4))
    assert [len(part) for part in members(random_ratio(y, 0.025, 0.5))] == [3, 50, 47]


@pytest.mark.parametrize("draw", [class_balanced, *DRAWS])
def test_seeds_give_different_splits(draw: Callable[..., Split]) -> None:
    y = [0, 1, 2] * 600
    drawn = [draw(y, seed=seed) for seed in range(10)]
    assert len({split.id for split in drawn}) == 10
    assert len({tuple(split.train.tolist()) for split in drawn}) == 10


@pytest.mark.parametrize(
    ("train", "val", "name"),
    [
        (0.6, 0.2, "ratio-60-20-20-seed0"),
        (0.07, 0.29, "ratio-7-29-64-seed0"),
        (0.025, 0.5, "ratio-2.5-50-47.5-seed0"),
        (1 / 3, 1 / 3, "ratio-33.33333333-33.33333333-33.33333334-seed0"),
        (0.7, 0.3, "ratio-70-30-0-seed0"),
        (1, 0, "ratio-100-0-0-seed0"),
    ],
)
def test_names_are_free_of_rounding_noise(train: float, val: float, name: str) -> None:
    y = [0, 1] * 500
    split = random_ratio(y, train, val)
    assert split.name == name
    assert draw_split(name, y).id == split.id


# ------------------------------------------------------------------------------------------------------------ Split


def test_split_is_sorted_frozen_and_has_masks() -> None:
    split = Split("mine", train=np.array([4, 0], dtype=np.int32), val=torch.tensor([2]), test=[])
    assert members(split) == [[0, 4], [2], []]
    assert split.test.dtype == torch.int64
    train, val, test = split.masks(5)
    assert train.tolist() == [True, False, False, False, True]
    assert val.tolist() == [False, False, True, False, False]
    assert not test.any()
    assert members(from_masks(train, val.numpy(), test.tolist(), "mine")) == members(split)
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.name = "other"  # type: ignore[misc]


def test_id_is_of_name_and_members() -> None:
    split = Split("mine", [0, 1], [2], [3])
    assert split.id == Split("mine", [1, 0], [2], [3]).id
    others = [
        Split("yours", [0, 1], [2], [3]),
        Split("mine", [0, 1], [3], [2]),
        Split("mine", [0], [1, 2], [3]),
        Split("mine", [0, 1], [2], []),
        Split("mine", [0, 1], [], [2]),
    ]
    assert len({split.id, *(other.id for other in others)}) == 6
    assert split.id == "4ebdb893a1e70408"  # recorded once; stores of results are keyed by it


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (([], [1], [2]), "train is empty; give"),
        (([0, 1], [1], [2]), "node 1 is in train and in val; give"),
        (([0], [1], [3, 0]), "node 0 is in train and in test; give"),
        (([0], [5, 1], [1]), "node 1 is in val and in test; give"),
        (([0, 3, 3], [1], [2]), "train holds node 3 more than once; give"),
        (([0], [-1], [2]), "val holds node -1; give"),
        (([[0]], [1], [2]), r"train has shape \(1, 1\); give"),
        (([0.5], [1], [2]), "train holds float64 values; give"),
        (([True, False], [1], [2]), "train is a mask; give node indices"),
        (([0], torch.tensor([False, True]), [2]), "val is a mask; give node indices"),
    ],
)
def test_mistakes_in_members_are_named(sets: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Split("mine", *sets)


def test_mistakes_elsewhere_are_named() -> None:
    with pytest.raises(InputError, match=r"'mine' holds node 5, but there are only 5 nodes; give"):
        Split("mine", [0], [5], [2]).masks(5)
    with pytest.raises(InputError, match="name is ''; give"):
        Split("", [0], [1], [2])
    with pytest.raises(InputError, match=r"val is not a mask but int64 of shape \(2,\); give"):
        from_masks([True, False], [0, 1], [False, False])
    with pytest.raises(InputError, match="lengths 2, 2 and 3; give"):
        from_masks([True, False], [False, True], [False] * 3)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda y: class_balanced(y, per_class=5), "class 1 has 4 nodes, fewer than per_class=5; give per_class=4"),
        (lambda y: class_balanced(y, 2, 5, 2), r"6 nodes .* fewer than val \+ test = 7; give smaller"),
        (lambda y: class_balanced(y, 0), "per_class is 0; give"),
        (lambda y: class_balanced(y, 2.0), r"per_class is 2.0; give a whole number"),
        (lambda y: class_balanced(y, 1, -1), "val is -1; give"),
        (lambda y: class_balanced(y, 1, 1, 1, seed=-1), "seed is -1; give"),
        (lambda y: random_ratio(y, seed=2**32), "seed is 4294967296; give"),
        (lambda y: random_ratio(y, seed=0.5), "seed is 0.5; give"),
        (lambda y: random_ratio(y, 60, 20), "train is 60 and val is 20; give shares"),
        (lambda y: random_ratio(y, 0.6, 0.5), "train is 0.6 and val is 0.5; give shares"),
        (lambda y: stratified_ratio(y, 0, 0.5), "train is 0 and val is 0.5; give shares"),
        (lambda y: stratified_ratio(y, float("nan"), 0.5), "train is nan .* give shares"),
        (lambda y: random_ratio(y, 0.01, 0.5), "train=0.01 of 10 nodes of known class is none; give"),
        (lambda y: stratified_ratio([0, 1], 0.1, 0.5), "train=0.1 of 2 nodes of known class is none; give"),
        (lambda y: random_ratio([-1, -1]), "y holds no node of known class; give"),
        (lambda y: random_ratio([[0], [1]]), r"y has shape \(2, 1\); give"),
        (lambda y: random_ratio(["a"]), "y holds <U1 values; give integers"),
    ],
)
def test_mistakes_in_draws_are_named(draw: Callable[[list[int]], Split], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw([0] * 6 + [1] * 4 + [-1])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("balanced-20", "write it like 'balanced-20-500-1000-seed0'$"),
        ("stratified-60-20-20", "write it like 'stratified-60-20-20-seed0'$"),
        ("ratio-60-20-10-seed7", "90 percent in all, not 100; write it like 'ratio-60-20-20-seed7'"),
        ("ratio-60-20-20-seed-1", "write it like 'ratio-60-20-20-seed0'$"),
        ("random", "write it like 'balanced-.*' or 'ratio-.*' or 'stratified-.*'$"),
        ("given-3", "comes with a dataset's files; take it from its splits"),
        ("public", "comes with a dataset's files; take it from its splits"),
        ("", "write it like"),
    ],
)
def test_mistakes_in_names_are_answered_with_the_nearest_form(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_split(name, [0, 1] * 10)


# ------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_files_round_trip(ending: str, tmp_path: Path) -> None:
    split = random_ratio([0, 1] * 10, seed=5)
    path = tmp_path / "new folder" / f"some.{ending}"
    save_split(split, path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert load_split(path).id == split.id
    assert load_split(str(path), name="given-0").name == "given-0"
    save_split(Split("mine", [0], [], []), path)  # over an existing file
    assert members(load_split(path)) == [[0], [], []]


def test_files_of_others(tmp_path: Path) -> None:
    np.savez(tmp_path / "indices.npz", train=[3, 0], valid=[1], test=[2])
    assert load_split(tmp_path / "indices.npz").name == "indices"
    assert members(load_split(tmp_path / "indices.npz")) == [[0, 3], [1], [2]]
    masks = {"train": [True, False, False], "val": [False, True, False], "test": [False, False, True]}
    np.savez(tmp_path / "masks.npz", **masks)
    (tmp_path / "masks.json").write_text(json.dumps(masks))
    assert (
        members(load_split(tmp_path / "masks.npz")) == members(load_split(tmp_path / "masks.json")) == [[0], [1], [2]]
    )


def test_the_papers_split_files(data_root: Path) -> None:
    for name, num_nodes in (("computer", 13752), ("photo", 7650), ("cs", 18333), ("physics", 34493)):
        split = load_split(data_root / "splits" / f"{name}.npz", name="given-0")
        assert sum(int(mask.sum()) for mask in split.masks(num_nodes)) == num_nodes
        assert split.train.numel() == pytest.approx(0.6 * num_nodes, abs=2)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.npz"
    save_split(Split("old", [0], [1], [2]), path)

    def fail(file: object, **arrays: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        save_split(Split("new", [0], [1], [2]), path)
    assert load_split(path).name == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_replaces_the_file_in_one_step(tmp_path: Path) -> None:
    path, link = tmp_path / "mine.json", tmp_path / "link.json"
    save_split(Split("old", [0], [1], [2]), path)
    link.hardlink_to(path)
    save_split(Split("new", [0], [1], [2]), path)
    assert load_split(path).name == "new"
    assert load_split(link).name == "old"  # the bytes of the old file were never touched


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    import pickle

    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "sprung",))

    np.savez(tmp_path / "objects.npz", train=np.array([Trap()], dtype=object), val=[1], test=[2])
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Trap()))
    for name, says in (("objects.npz", "holds pickled Python objects"), ("bare.npz", "is not a whole .npz file")):
        with pytest.raises(InputError, match=f"{name}.*{says}"):
            load_split(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


# Where the first member of a zip archive says so in the archive's directory, and what.
@pytest.mark.parametrize(
    ("at", "byte"), [(6, 0xFF), (8, 0x01), (8, 0x20), (10, 99)], ids=["version", "locked", "patch", "way"]
)
def test_an_archive_that_cannot_be_unpacked_is_named(tmp_path: Path, at: int, byte: int) -> None:
    path = tmp_path / "odd.npz"
    save_split(Split("mine", [0], [1], [2]), path)
    content = bytearray(path.read_bytes())
    for start in (content.index(b"PK\x03\x04") - 2, content.index(b"PK\x01\x02")):
        content[start + at] = byte
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"odd\.npz is not a whole \.npz file"):
        load_split(path)


def test_an_array_that_says_it_is_larger_than_any_memory_is_refused(tmp_path: Path) -> None:
    from tests.attack.harmful import FAR, npy, npz

    path = tmp_path / "far.npz"
    path.write_bytes(npz(train=npy((FAR,), "<i8"), val=npy((0,), "<i8"), test=npy((0,), "<i8")))
    with pytest.raises(InputError, match=r"far\.npz: array 'train' is cut short"):
        load_split(path)


def test_mistakes_in_files_are_named_with_the_file(tmp_path: Path) -> None:
    def refuses(name: str, message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            load_split(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)

    refuses("absent.npz", "no such file; check the path")
    refuses("absent.txt", r"'\.txt' is no format for splits; give a .npz or .json")
    np.savez(tmp_path / "no_val.npz", train=[0], test=[1])
    refuses("no_val.npz", "'val' or 'valid' is missing .found 'train', 'test'.; add it")
    np.savez(tmp_path / "overlap.npz", train=[0], val=[0], test=[1])
    refuses("overlap.npz", "node 0 is in train and in val; give")
    np.savez(tmp_path / "mixed.npz", train=[0], val=[False, True], test=[2])
    refuses("mixed.npz", "some are indices; make all three alike")
    np.savez(tmp_path / "several.npz", train=np.eye(3, dtype=bool), val=np.eye(3) > 2, test=np.eye(3) > 2)
    refuses("several.npz", r"train is not a mask but bool of shape \(3, 3\); give")
    (tmp_path / "ragged.json").write_text('{"train": [[0], [1, 2]], "val": [], "test": []}')
    refuses("ragged.json", "inhomogeneous")
    (tmp_path / "list.json").write_text("[1, 2]")
    refuses("list.json", "cannot be read")
    (tmp_path / "broken.json").write_text('{"train": [0')
    refuses("broken.json", "cannot be read")
    (tmp_path / "plain.npz").write_bytes(b"not a zip")
    refuses("plain.npz", "is not a whole .npz file")
    save_split(Split("mine", [0], [1], [2]), tmp_path / "cut.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:100])
    refuses("cut.npz", "is not a whole .npz file")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    refuses("deep.json", "cannot be read")
    (tmp_path / "folder.npz").mkdir()
    refuses("folder.npz", "cannot be read")
    with pytest.raises(InputError, match=r"'\.csv' is no format for splits; end the name in"):
        save_split(Split("mine", [0], [1], [2]), tmp_path / "mine.csv")
