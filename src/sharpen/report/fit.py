"""The result of a fit in sentences: what is expected, what was chosen, and what helped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_ERRORS = {"ece": "ECE", "brier": "Brier", "log_loss": "log-loss"}
_LEGEND = (
    "Each row is a search of its own, selected without the labels that score it. ECE (expected calibration error), Brier score and "
    "log-loss are lower for better calibrated probabilities; with few labels calibration is cautious, and they are higher."
)


def expectation(report: Mapping[str, Any]) -> str:
    """How often predictions should be right, in one sentence.

    >>> scores = {"accuracy": 0.84, "balanced_accuracy": 0.8, "macro_f1": 0.81}
    >>> report = {"expected": {"nodes": 50, "accuracy_interval": [0.71, 0.92], "after": scores}}
    >>> report |= {"labels": {"a": 30, "b": 20, "c": 2}, "unchecked": {"c": 2}}
    >>> expectation(report)
    'Expected accuracy on nodes like the labeled ones: 84.0 % (95 % CI 71.0 to 92.0, from 50 of 52 labels that had no part in it);
    balanced 80.0 %, macro-F1 81.0 %; all of it without class c, which has too few labels to check.'
    """
    expected = report["expected"]
    low, high = expected["accuracy_interval"]
    after = expected["after"]
    return (
        f"Expected accuracy on nodes like the labeled ones: {_percent(after['accuracy'])} % "
        f"(95 % CI {_percent(low)} to {_percent(high)}, from {judged_labels(report)} that had no part in it); "
        f"balanced {_percent(after['balanced_accuracy'])} %, macro-F1 {_percent(after['macro_f1'])} %{left_out(report)}."
    )


def left_out(report: Mapping[str, Any]) -> str:
    """Half a sentence about the classes that the scores of a fit leave out, or nothing.

    >>> left_out({"unchecked": {"b": 2, "c": 1}}), left_out({"unchecked": {}})
    ('; all of it without classes b and c, which have too few labels to check', '')
    """
    names = list(report["unchecked"])
    if not names:
        return ""
    few = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    listed = few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
    which = f"class {listed}, which has" if len(names) == 1 else f"classes {listed}, which have"
    return f"; all of it without {which} too few labels to check"


def judged_labels(report: Mapping[str, Any]) -> str:
    """How many labels an expectation rests on, and of how many, where some could not be held out.

    >>> judged_labels({"expected": {"nodes": 21}, "labels": {"a": 20, "b": 4, "c": 1}})
    '21 of 25 labels'
    """
    nodes, given = report["expected"]["nodes"], sum(report.get("labels", {}).values())
    return f"{nodes} of {given} labels" if given > nodes else f"{nodes} labels"


def fit_lines(summary: Mapping[str, Any]) -> list[str]:
    """The lines that a finished fit prints.

    Args:
        summary: What ``sharpen fit`` writes to ``summary.json``.
    """
    chosen, expected = summary["chosen"], summary["expected"]
    members = sum(entry["members"] for entry in chosen)
    names = ", ".join(entry["name"] for entry in chosen)
    lines = [
        summary["expectation"],
        f"Used: {names} ({members} runs)." if members > 1 else f"Used: {names}.",
        *(answer["text"] for answer in summary["verdicts"]),
        "                        accuracy     ECE   Brier  log-loss   (before calibration → after)",
        _row("chosen", expected),
        *(_row(name, account) for name, account in summary["baselines"].items()),
        _LEGEND,
    ]
    if summary["abstain"] is not None:
        lines.append(_abstention(summary))
    return lines + [f"Note: {note}." for note in summary["notes"]]


def print_fit(summary: Mapping[str, Any], console: Console) -> None:
    """Print a finished fit: a table on a terminal, plain lines elsewhere.

    Args:
        summary: What ``sharpen fit`` writes to ``summary.json``.
        console: Where to.
    """
    if not console.is_terminal:
        for line in fit_lines(summary):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    first, used, *rest = fit_lines(summary)
    accounts = {"chosen": summary["expected"], **summary["baselines"]}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("calibration: before → after", no_wrap=False)
    for title in ("accuracy", *_ERRORS.values()):
        table.add_column(title, justify="right", no_wrap=True)
    for name, account in accounts.items():
        before, after = account["before"], account["after"]
        errors = (f"{before[key]:.3f} → {after[key]:.3f}" for key in _ERRORS)
        table.add_row(name, f"{_percent(after['accuracy'])} %", *errors, style="bold" if name == "chosen" else "")
    console.print(first, style="bold", markup=False, highlight=False)
    for line in (used, *(answer["text"] for answer in summary["verdicts"])):
        console.print(line, markup=False, highlight=False)
    console.print(table)
    for line in rest[len(summary["verdicts"]) + 1 + len(accounts) :]:
        console.print(line, style="dim" if line == _LEGEND else "", markup=False, highlight=False)


def _row(name: str, account: Mapping[str, Any]) -> str:
    before, after = account["before"], account["after"]
    pairs = "  ".join(f"{before[key]:.3f} → {after[key]:.3f}" for key in _ERRORS)
    return f"{name:22s}  {_percent(after['accuracy']):>6} %  {pairs}"


def _abstention(summary: Mapping[str, Any]) -> str:
    threshold, answered = summary["abstain"]["threshold"], summary["abstain"]["answered"]
    line = f"Abstaining below {threshold:g}: {_percent(answered)} % of the unlabeled nodes get a label"
    below = [
        point for point in summary["coverage"] if point["threshold"] <= threshold and point["accuracy"] is not None
    ]
    if below:
        point = below[-1]
        line += f"; at {point['threshold']:g}, {_percent(point['accuracy'])} % of held-out answers are right"
    return line + "."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}"
