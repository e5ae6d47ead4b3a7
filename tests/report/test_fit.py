"""What a finished fit prints, from a summary written by hand."""

import io
from typing import Any

from rich.console import Console

from sharpen.report.fit import expectation, fit_lines, other_scores, print_fit


def account(accuracy: float) -> dict[str, Any]:
    scores = {
        "accuracy": accuracy,
        "balanced_accuracy": 0.7,
        "macro_f1": 0.6,
        "ece": 0.2,
        "brier": 0.3,
        "log_loss": 0.4,
    }
    return {
        "nodes": 20,
        "accuracy": accuracy,
        "accuracy_interval": [0.5, 0.9],
        "balanced_accuracy": 0.7,
        "balanced_accuracy_interval": [0.55, 0.85],
        "before": scores,
        "after": scores | {"ece": 0.05},
    }


GUESSING = {"class": "a", "accuracy": 0.6, "balanced_accuracy": 0.5, "better": True}


SUMMARY: dict[str, Any] = {
    "expectation": "Expected ...",
    "chosen": [{"name": "plain GCN", "members": 5, "share": 0.6}, {"name": "plain GAT", "members": 5, "share": 0.4}],
    "verdicts": [{"text": "The graph helps."}],
    "expected": account(0.75),
    "guessing": GUESSING,
    "predicted": {"a": 30, "b": 10},
    "baselines": {"without the graph": account(0.5)},
    "abstain": {"threshold": 0.8, "answered": 0.625},
    "coverage": [
        {"threshold": 0.0, "coverage": 1.0, "accuracy": 0.75, "nodes": 20, "right": 15, "interval": [0.53, 0.89]},
        {"threshold": 0.8, "coverage": 0.5, "accuracy": 0.9, "nodes": 10, "right": 9, "interval": [0.6, 0.98]},
        {"threshold": 0.99, "coverage": 0.0, "accuracy": None, "nodes": 0, "right": 0, "interval": None},
    ],
    "notes": ["class 'c' has 1 labeled node"],
}


def test_the_lines_hold_what_the_summary_holds() -> None:
    lines = fit_lines(SUMMARY)
    assert lines[:5] == [
        "Expected ...",
        "Predicted for 40 unlabeled nodes: a 30 (75 %), b 10 (25 %).",
        "Balanced accuracy 70.0 % (guessing 50.0 %), macro-F1 60.0 %.",
        "Used: 60 % plain GCN, 40 % plain GAT (10 runs).",
        "The graph helps.",
    ]
    assert lines[6].split()[:5] == ["chosen", "20", "75.0", "%", "0.200"]
    assert lines[7].startswith("without the graph")
    assert lines[8].startswith("Each row was selected without the labels that score it")
    assert lines[9] == (
        "Abstaining below 0.8: 62.5 % of the unlabeled nodes get a label; at 0.8, 90.0 % of held-out answers are right "
        "(9 of 10, 95 % CI 60.0 to 98.0)."
    )
    assert lines[10] == "Note: class 'c' has 1 labeled node."


def test_the_expectation_names_its_interval_its_labels_and_what_guessing_would_have() -> None:
    report = {"expected": account(0.75), "guessing": GUESSING, "unchecked": {}}
    sentence = expectation(report)
    assert "Expected accuracy on nodes like the labeled ones: 75.0 % (95 % CI 50.0 to 90.0, from 20 labels" in sentence
    assert sentence.endswith("against 60.0 % for always answering a.")
    few = expectation(report | {"labels": {"a": 20, "b": 2}, "unchecked": {"b": 2}})
    assert few.endswith("for always answering a; all of it without class b, which has too few labels to check.")


def test_what_is_not_clearly_better_than_guessing_is_said_in_the_headline() -> None:
    report = {"expected": account(0.61), "guessing": GUESSING | {"better": False}, "unchecked": {}}
    assert expectation(report).endswith("against 60.0 % for always answering a: not clearly better than that.")


def test_the_headline_speaks_of_the_metric_that_was_asked_for() -> None:
    report = {"metric": "balanced-accuracy", "expected": account(0.75), "guessing": GUESSING, "unchecked": {}}
    assert expectation(report).startswith(
        "Expected balanced accuracy on nodes like the labeled ones: 70.0 % (95 % CI 55.0 to 85.0"
    )
    assert "against 50.0 % for always answering a" in expectation(report)
    assert other_scores(report).startswith("Accuracy 75.0 % (guessing 60.0 %), macro-F1")


def test_without_a_threshold_nothing_is_said_of_abstaining() -> None:
    assert not any("Abstaining" in line for line in fit_lines(SUMMARY | {"abstain": None}))


def printed(*, terminal: bool, width: int = 80) -> str:
    file = io.StringIO()
    print_fit(SUMMARY, Console(file=file, force_terminal=terminal, width=width))
    return file.getvalue()


def test_in_a_file_it_is_plain_lines() -> None:
    assert printed(terminal=False, width=20).splitlines() == fit_lines(SUMMARY)


def test_on_a_terminal_it_is_a_table_that_fits_80_columns() -> None:
    text = printed(terminal=True)
    assert "\x1b" in text
    assert "…" not in text
    for word in (
        "Expected ...",
        "Used: 60 % plain GCN",
        "The graph helps.",
        "without the graph",
        "0.200 → 0.050",
        "Note: class 'c'",
    ):
        assert word in text
