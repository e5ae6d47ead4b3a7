"""What a finished fit prints, from a summary written by hand."""

import io
from typing import Any

from rich.console import Console

from sharpen.report.fit import expectation, fit_lines, print_fit


def account(accuracy: float) -> dict[str, Any]:
    scores = {
        "accuracy": accuracy,
        "balanced_accuracy": 0.7,
        "macro_f1": 0.6,
        "ece": 0.2,
        "brier": 0.3,
        "log_loss": 0.4,
    }
    return {"nodes": 20, "accuracy_interval": [0.5, 0.9], "before": scores, "after": scores | {"ece": 0.05}}


SUMMARY: dict[str, Any] = {
    "expectation": "Expected ...",
    "chosen": [{"name": "plain GCN", "members": 5}, {"name": "plain GAT", "members": 5}],
    "verdicts": [{"text": "The graph helps."}],
    "expected": account(0.75),
    "baselines": {"without the graph": account(0.5)},
    "abstain": {"threshold": 0.8, "answered": 0.625},
    "coverage": [
        {"threshold": 0.0, "coverage": 1.0, "accuracy": 0.75},
        {"threshold": 0.8, "coverage": 0.5, "accuracy": 0.9},
        {"threshold": 0.99, "coverage": 0.0, "accuracy": None},
    ],
    "notes": ["class 'c' has 1 labeled node"],
}


def test_the_lines_hold_what_the_summary_holds() -> None:
    lines = fit_lines(SUMMARY)
    assert lines[:3] == ["Expected ...", "Used: plain GCN, plain GAT (10 runs).", "The graph helps."]
    assert lines[4].split()[:5] == ["chosen", "75.0", "%", "0.200", "→"]
    assert lines[5].startswith("without the graph")
    assert lines[6].startswith("Each row is a search of its own")
    assert (
        lines[7]
        == "Abstaining below 0.8: 62.5 % of the unlabeled nodes get a label; at 0.8, 90.0 % of held-out answers are right."
    )
    assert lines[8] == "Note: class 'c' has 1 labeled node."


def test_the_expectation_names_its_interval_and_its_labels() -> None:
    sentence = expectation({"expected": account(0.75), "unchecked": {}})
    assert "75.0 % (95 % CI 50.0 to 90.0, from 20 labels" in sentence
    assert "balanced 70.0 %, macro-F1 60.0 %" in sentence
    few = expectation({"expected": account(0.75), "labels": {"a": 20, "b": 2}, "unchecked": {"b": 2}})
    assert few.endswith("macro-F1 60.0 %; all of it without class b, which has too few labels to check.")


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
        "Used: plain GCN",
        "The graph helps.",
        "without the graph",
        "0.200 → 0.050",
        "Note: class 'c'",
    ):
        assert word in text
