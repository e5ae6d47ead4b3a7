"""Balanced accuracy and macro-F1 against scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from sharpen.evaluation.classes import balanced_accuracy, macro_f1


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=50))
def test_both_are_sklearns(pairs: list[tuple[int, int]]) -> None:
    predicted, y = np.array(pairs).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are predicted and never true
        assert balanced_accuracy(predicted, y) == pytest.approx(metrics.balanced_accuracy_score(y, predicted))
        theirs = metrics.f1_score(y, predicted, average="macro", labels=np.unique(y), zero_division=0)
    assert macro_f1(predicted, y) == pytest.approx(theirs)


def test_text_labels_are_classes_too() -> None:
    assert balanced_accuracy(np.array(["a", "a"]), np.array(["a", "b"])) == 0.5
