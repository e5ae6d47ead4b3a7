"""The result of a fit in sentences: what is expected, what was chosen, and what helped.

A summary is what ``sharpen fit`` writes to ``summary.json``; a report, what a classifier has as ``report_``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_ERRORS = {"ece": "ECE", "brier": "Brier", "log_loss": "log-loss"}
_LEGEND = (
    "Each row was selected without the labels that score it, among all candidates or those its name says; the sentences above "
    "compare these rows. ECE (expected calibration error), Brier score and log-loss are lower for better probabilities."
)
# So many classes are counted one by one.
_MOST_COUNTED = 8


def expectation(report: Mapping[str, Any]) -> str:
    """How often predictions should be right, beside guessing, in one sentence.

    >>> scores = {"accuracy": 0.84, "balanced_accuracy": 0.8, "macro_f1": 0.81}
    >>> expected = {"nodes": 50, "accuracy": 0.84, "accuracy_interval": [0.71, 0.92], "after": scores}
    >>> guessing = {"class": "a", "accuracy": 0.6, "better": True}
    >>> report = {"metric": "accuracy", "expected": expected, "guessing": guessing}
    >>> report |= {"labels": {"a": 30, "b": 20, "c": 2}, "unchecked": {"c": 2}}
    >>> expectation(report)
    'Expected accuracy on nodes like the labeled ones: 84.0 % (95 % CI 71.0 to 92.0, from 50 of 52 labels that had no part in it),
    against 60.0 % for always answering a; all of it without class c, which has too few labels to check.'
    """
    key, name = metric_of(report)
    expected, guess = report["expected"], report["guessing"]
    if not is_checked(report):
        return "How often predictions are right cannot be said: it takes three labels in each of two classes to hold some out."
    low, high = expected[f"{key}_interval"]
    return (
        f"Expected {name} on nodes like the labeled ones: {_percent(expected[key])} % "
        f"(95 % CI {_percent(low)} to {_percent(high)}, "
        f"from {judged_labels(report)} that had no part in it), against {_percent(guess[key])} % for always answering "
        f"{guess['class']}{'' if guess['better'] else ': not clearly better than that'}{left_out(report)}."
    )


def is_checked(report: Mapping[str, Any]) -> bool:
    """Whether labels could be held out, so that there is something to say of how good a fit is.

    >>> is_checked({"expected": {"nodes": 0}})
    False
    """
    return bool(report["expected"]["nodes"])


def used(report: Mapping[str, Any]) -> str:
    """Who contributes to the predictions, and how much.

    >>> gcn, trees = {"name": "plain GCN", "members": 5, "share": 0.7}, {"name": "boosted trees", "members": 5, "share": 0.3}
    >>> used({"chosen": [gcn, trees]}), used({"chosen": [gcn | {"members": 1, "share": 1.0}]})
    ('Used: 70 % plain GCN, 30 % boosted trees (10 runs).', 'Used: plain GCN.')
    """
    chosen = report["chosen"]
    runs = sum(entry["members"] for entry in chosen)
    alike = len(chosen) == 1 or "share" not in chosen[0]  # in reports of before there were shares
    names = [entry["name"] if alike else f"{100 * entry['share']:.0f} % {entry['name']}" for entry in chosen]
    return f"Used: {', '.join(names)}{f' ({runs} runs)' * (runs > 1)}."


def metric_of(report: Mapping[str, Any]) -> tuple[str, str]:
    """The score that a fit was asked for, as the report calls it and in words.

    >>> metric_of({"metric": "balanced-accuracy"})
    ('balanced_accuracy', 'balanced accuracy')
    """
    key = str(report.get("metric", "accuracy")).replace("-", "_")
    return key, key.replace("_", " ")


def _answers(report: Mapping[str, Any]) -> str:
    """What was predicted: how many unlabeled nodes of each class.

    >>> _answers({"predicted": {"a": 2797, "b": 158}})
    'Predicted for 2,955 unlabeled nodes: a 2,797 (95 %), b 158 (5 %).'
    """
    counts = dict(report["predicted"])
    total = sum(counts.values())
    if not total:
        return "Every node has a label, so nothing was left to predict."
    ranked = sorted(counts.items(), key=lambda entry: -entry[1])
    shown = [f"{name} {count:,} ({100 * count / total:.0f} %)" for name, count in ranked[:_MOST_COUNTED]]
    if rest := [count for _, count in ranked[_MOST_COUNTED:]]:
        shown.append(f"{len(rest)} more classes {sum(rest):,}")
    return f"Predicted for {total:,} unlabeled node{'s' * (total > 1)}: {', '.join(shown)}."


def other_scores(report: Mapping[str, Any]) -> str:
    """The scores that stand beside the one in the headline, each with what guessing has.

    >>> after = {"accuracy": 0.8, "balanced_accuracy": 0.7, "macro_f1": 0.6, "auc": 0.75, "average_precision": 0.5}
    >>> expected = {"nodes": 20, "accuracy": 0.8, "balanced_accuracy": 0.7, "after": after}
    >>> guessing = {"class": "a", "accuracy": 0.75, "balanced_accuracy": 0.5}
    >>> other_scores({"expected": expected, "guessing": guessing})
    'Balanced accuracy 70.0 % (guessing 50.0 %), macro-F1 60.0 %, AUC 0.750 (guessing 0.5), average precision 0.500 (guessing ...).'
    """
    key, _ = metric_of(report)
    after, guess = report["expected"]["after"], report["guessing"]
    other = "balanced_accuracy" if key == "accuracy" else "accuracy"
    parts = [
        f"{other.replace('_', ' ').capitalize()} {_percent(report['expected'][other])} % (guessing {_percent(guess[other])} %)",
        f"macro-F1 {_percent(after['macro_f1'])} %",
    ]
    if "auc" in after:
        parts.append(f"AUC {after['auc']:.3f} (guessing 0.5)")
        parts.append(f"average precision {after['average_precision']:.3f} (guessing {1 - guess['accuracy']:.3f})")
    return f"{', '.join(parts)}."


def left_out(report: Mapping[str, Any]) -> str:
    """Half a sentence about the classes that the scores of a fit leave out, or nothing.

    >>> left_out({"unchecked": {"b": 2, "c": 1}}), left_out({"unchecked": {}})
    ('; all of it without classes b and c, which have too few labels to check', '')
    """
    names = list(report["unchecked"])
    if not names:
        return ""
    if len(names) == 1:
        return f"; all of it without class {names[0]}, which has too few labels to check"
    *few, last = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return f"; all of it without classes {', '.join(few)} and {last}, which have too few labels to check"


def judged_labels(report: Mapping[str, Any]) -> str:
    """How many labels an expectation rests on, and of how many, where some could not be held out.

    >>> judged_labels({"expected": {"nodes": 21}, "labels": {"a": 20, "b": 4, "c": 1}})
    '21 of 25 labels'
    """
    nodes, given = report["expected"]["nodes"], sum(report.get("labels", {}).values())
    return f"{nodes} of {given} labels" if given > nodes else f"{nodes} labels"


def accounts(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What is compared, by name: the chosen one first; nothing where no label could be held out.

    >>> list(accounts({"expected": {"nodes": 4}, "baselines": {"without the graph": {}}}))
    ['chosen', 'without the graph']
    """
    return {"chosen": summary["expected"], **summary["baselines"]} if is_checked(summary) else {}


def fit_lines(summary: Mapping[str, Any]) -> list[str]:
    """The lines that a finished fit prints."""
    rows = [_row(name, account) for name, account in accounts(summary).items()]
    head = "                        labels  accuracy     ECE   Brier  log-loss   (before calibration → after)"
    return [*opening(summary), *([head, *rows] if rows else []), *_closing(summary)]


def opening(summary: Mapping[str, Any]) -> list[str]:
    """The sentences that stand above the table, the headline first."""
    scores = [other_scores(summary)] if is_checked(summary) else []
    verdicts = [answer["text"] for answer in summary["verdicts"]]
    return [summary["expectation"], _answers(summary), *scores, used(summary), *verdicts]


def print_fit(summary: Mapping[str, Any], console: Console) -> None:
    """Print a finished fit: a table on a terminal, plain lines elsewhere."""
    if not console.is_terminal or not is_checked(summary):
        for line in fit_lines(summary):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("calibration:\nbefore → after", no_wrap=True)
    for title in ("accuracy", *_ERRORS.values()):
        table.add_column(title, justify="right", no_wrap=True)
    for name, account in accounts(summary).items():
        right = f"{_percent(account['after']['accuracy'])} % of {account['nodes']:,}"
        table.add_row(name, right, *_errors(account), style="bold" if name == "chosen" else "")
    for number, line in enumerate(opening(summary)):
        console.print(line, style="" if number else "bold", markup=False, highlight=False)
    console.print(table)
    for line in _closing(summary):
        console.print(line, style="dim" if line == _LEGEND else "", markup=False, highlight=False)


def _closing(summary: Mapping[str, Any]) -> list[str]:
    """The sentences that stand below the table."""
    lines = [_LEGEND] if is_checked(summary) else []
    lines += [_abstention(summary)] if summary["abstain"] is not None else []
    lines += [summary["reasons"]["text"]] if summary.get("reasons") else []
    lines += [_suggested(summary["suggestions"])] if summary.get("suggestions") is not None else []
    return lines + [f"Note: {note}." for note in summary["notes"]]


def _errors(account: Mapping[str, Any]) -> list[str]:
    return [f"{account['before'][key]:.3f} → {account['after'][key]:.3f}" for key in _ERRORS]


def _row(name: str, account: Mapping[str, Any]) -> str:
    return f"{name:22s}  {account['nodes']:>6,}  {_percent(account['after']['accuracy']):>6} %  {'  '.join(_errors(account))}"


def _abstention(summary: Mapping[str, Any]) -> str:
    threshold, answered = summary["abstain"]["threshold"], summary["abstain"]["answered"]
    line = f"Abstaining below {threshold:g}: {_percent(answered)} % of the unlabeled nodes get a label"
    told = [point for point in summary["coverage"] if point["threshold"] <= threshold and point["accuracy"] is not None]
    if told:
        point, (low, high) = told[-1], told[-1]["interval"]
        line += (
            f"; at {point['threshold']:g}, {_percent(point['accuracy'])} % of held-out answers are right ({point['right']} of "
            f"{point['nodes']}, 95 % CI {_percent(low)} to {_percent(high)})"
        )
    return line + "."


def _suggested(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "Worth labeling next: no node, since every one has a label."
    ids = ", ".join(str(row["id"]) for row in rows[:_MOST_COUNTED])
    more = f" and {len(rows) - _MOST_COUNTED} more" if len(rows) > _MOST_COUNTED else ""
    return (
        f"Worth labeling next: {ids}{more}; with {'its label' if len(rows) == 1 else 'their labels'} "
        f"{100 * rows[-1]['left']:.0f} % of what is uncertain would be left."
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}"
