"""No label both teaches and judges a member, and small classes are always learnt from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from sharpen.errors import InputError
from sharpen.fitting.folds import FEWEST, balanced_weights, check_labels, deal, draw_round, folds_needed

counts = st.lists(st.integers(0, 30), min_size=1, max_size=5).map(lambda rest: [3, 4, *rest])


def labels(sizes: list[int]) -> np.ndarray:
    y = np.concatenate([np.full(size, c) for c, size in enumerate(sizes)] + [np.full(5, -1)])
    return np.random.default_rng(1).permutation(y)


@given(counts, st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_a_round_judges_by_every_label_once(sizes: list[int], number: int) -> None:
    y = labels(sizes)
    folds = draw_round(y, number)
    for fold in folds:
        train, test = set(fold.train.tolist()), set(fold.test.tolist())
        assert test
        assert len(fold.val) == 0
        assert train | test == set(np.flatnonzero(y >= 0))
        assert not train & test
        # Every class that has a label can be learnt from.
        assert set(y[fold.train.numpy()]) == set(y[y >= 0])
    if len(folds) == 5:
        once = np.concatenate([fold.test.numpy() for fold in folds])
        size = np.bincount(y[y >= 0])[y]
        assert sorted(once) == np.flatnonzero((y >= 0) & (size >= FEWEST)).tolist()


def test_slices_hold_the_same_share_of_every_class() -> None:
    y = labels([20, 10])
    for part in deal(y, seed=3):
        assert np.bincount(y[part]).tolist() == [4, 2]


def test_rounds_differ_and_repeat() -> None:
    y = labels([20, 20])
    assert not draw_round(y, 0)[0].test.equal(draw_round(y, 1)[0].test)
    assert draw_round(y, 1)[0].test.equal(draw_round(y, 1)[0].test)
    assert not draw_round(y, 0, seed=1)[0].test.equal(draw_round(y, 0, seed=0)[0].test)


def test_many_labels_need_few_folds() -> None:
    assert [folds_needed(n) for n in (10, 300, 500, 1000, 10**6)] == [5, 5, 3, 2, 1]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([0, 0], "no node has a label"),
        ([1, 0], "only one node has a label .'a'"),
        ([9, 0], "all 9 labels are 'a'"),
    ],
)
def test_too_few_labels_are_refused_with_the_way_out(sizes: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_labels(labels(sizes), ["a", "b"])


def test_labels_that_cannot_be_checked_are_a_note_with_the_way_out() -> None:
    assert "'a' has 9, 'b' has 2" in check_labels(labels([9, 2]), ["a", "b"])[0]
    assert "at least 3 labeled nodes in each of two classes" in check_labels(labels([1, 1]), ["a", "b"])[0]


def test_a_class_with_one_member_is_a_note() -> None:
    assert "'c' has 1 labeled node" in check_labels(labels([3, 3, 1]), ["a", "b", "c"])[0]
    assert check_labels(labels([3, 3]), ["a", "b"]) == []


def test_balanced_weights_are_those_of_sklearn() -> None:
    y = labels([12, 3, 5])
    expected = compute_class_weight("balanced", classes=np.arange(3), y=y[y >= 0])
    assert balanced_weights(y, 3) == pytest.approx(expected)
    assert balanced_weights(y, 4)[3] == 1
