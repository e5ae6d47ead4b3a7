"""What a study found, in sentences: how many cells gain, what agrees with the paper, what is missing and why, what it took."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from sharpen.analysis.curves import Band, Curve, glass_bands
from sharpen.analysis.dynamics import Dynamics
from sharpen.analysis.outcome import CellOutcome, Effect, Outcome
from sharpen.analysis.provenance import Cost, Provenance
from sharpen.analysis.runs import collapsed_runs
from sharpen.report.cells import brief, number, signed
from sharpen.report.missing import kind
from sharpen.report.names import cell_title, counted_model, plural
from sharpen.report.tally import contrast_words, side_words, tally
from sharpen.studies.cost import duration
from sharpen.studies.spec import Contrast

# How a record marks code that was not committed as it was.
_CHANGED = "+changes"


def gain_sentence(outcome: Outcome, name: str) -> str:
    """How many cells gain, lose, or show no clear difference in one comparison, before and after Holm's correction.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> gain_sentence(outcome(load_study("universal"), "paper"), "ts-0.25 - baseline")
    'λ = 0.25 against plain training: no cell has all its pairs yet.'
    """
    words = contrast_words(outcome, Contrast(*name.split(" - ")))
    everywhere = [effect for _, effect in outcome.effects(name)]
    others = _not_counted([effect for effect in everywhere if not effect.complete])
    counts = tally(everywhere)
    if counts is None:
        return f"{words}: no cell has all its pairs yet.{others}"
    text = (
        f"{words}: of {counts.cells} {plural('cell', counts.cells)}, {counts.gains} gain, {counts.losses} lose, "
        f"{counts.unclear} show no clear difference (95 % t interval); corrected for multiple comparisons (Holm), "
        f"{counts.corrected_gains} gain and {counts.corrected_losses} lose. Median over cells {signed(counts.median)} points, mean "
        f"{signed(counts.mean)}."
    )
    if judged := [e.consistency for e in everywhere if e.complete and e.consistency is not None]:
        text += (
            f" Consistent with the paper's difference (Welch's 95 % interval; it says little where published spreads are "
            f"wide): {sum(bool(consistency.consistent) for consistency in judged)} of {len(judged)}."
        )
    return text + others


def gain_sentences(outcome: Outcome, names: Sequence[str], most: int) -> list[str]:
    """The same for every comparison; of more than so many, only those with complete cells, and how many have none.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> empty = outcome(load_study("lambda-curves"), "paper", datasets=["cora"], models=["gcn"])
    >>> gain_sentences(empty, [contrast.name for contrast in empty.study.compare], most=4)
    ['60 comparisons, and no cell has all the pairs of one yet.']
    """
    told = [name for name in names if any(effect.complete for _, effect in outcome.effects(name))]
    if len(names) <= most:
        told = list(names)
    elif not told:
        return [f"{len(names)} comparisons, and no cell has all the pairs of one yet."]
    rest = len(names) - len(told)
    others = [f"{rest} other {plural('comparison', rest)}: no cell has all its pairs yet."] if rest else []
    return [*(gain_sentence(outcome, name) for name in told), *others]


def collapse_sentences(outcome: Outcome) -> list[str]:
    """Which variants emptied classes by the last epoch of their runs, in which cells.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> collapse_sentences(outcome(load_study("universal"), "paper"))
    []
    """
    found: dict[str, list[str]] = {}
    for cell in outcome.cells:
        for variant, against in outcome.study.compare:
            side, other = cell.sides[variant], cell.sides[against]
            if against == outcome.study.baseline and (count := collapsed_runs(side, other)):
                told = f"{cell_title(cell.dataset, cell.model)} ({count} of {len(side.runs)} runs)"
                found.setdefault(variant, []).append(told)
    return [
        f"{variant} empties classes by the last epoch: {', '.join(cells)}. A balance, or class proportions as a prior, forbids "
        "that."
        for variant, cells in found.items()
    ]


def gap_sentence(cells: Sequence[Dynamics]) -> str:
    """In how many cells the gap H_L − H_U is larger with sharpening: on average over epochs, and epoch by epoch."""
    larger = sum(cell.gap.difference > 0 for cell in cells)
    sure = sum(cell.gap.t_interval is not None and cell.gap.t_interval[0] > 0 for cell in cells)
    shares = sorted(100 * cell.above for cell in cells)
    reach = number(shares[0], 1) if len(cells) == 1 else f"{number(shares[0], 1)} to {number(shares[-1], 1)}"
    return (
        f"Of {len(cells)} {plural('cell', len(cells))}, the gap H_L − H_U, averaged over epochs, is larger with sharpening in "
        f"{larger} (95 % t interval above zero in {sure}). Epoch by epoch, its mean over runs is larger in {reach} % of the "
        "epochs of a cell."
    )


def _not_counted(effects: Sequence[Effect]) -> str:
    """How many cells have pairs and do not count, by reason."""
    diverged = [effect for effect in effects if effect.diverged]
    mixed = [effect for effect in effects if effect.mixed and not effect.diverged]
    partly = [e for e in effects if e.difference is not None and not e.diverged and not e.mixed]
    lost, pairs = sum(effect.diverged for effect in diverged), sum(effect.finished for effect in diverged)
    return "".join(
        f" {len(own)} {plural('cell', len(own))} {what}."
        for own, what in (
            (diverged, f"with diverged runs not counted ({lost} of {pairs} pairs)"),
            (mixed, "with pairs of different precision not counted"),
            (partly, "of which only part was run left out"),
        )
        if own
    )


def band_sentences(curves: Sequence[Curve], missing: str | None = None) -> list[str]:
    """From 0 up to which λ the median of Glass's Δ over datasets is never negative, per model; first, which λ are missing.

    >>> from sharpen.analysis.curves import Point
    >>> points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    >>> band_sentences([Curve("cora", "gcn", "accuracy", points, 5)])
    ['GCN (1 dataset): the median Δ is at least 0 from λ = 0 to λ = 1, at 2 of 2 positive λ in all, and largest at λ = 1 (+1.00).']
    """
    lines = []
    for band in glass_bands(curves):
        positive = [(lam, median >= 0) for lam, median in zip(band.lams, band.median, strict=True) if lam > 0]
        unbroken = [lam for lam, _ in itertools.takewhile(lambda point: point[1], positive)]
        reach = f"from λ = 0 to λ = {unbroken[-1]:g}, at" if unbroken else "at no λ next to 0, at"
        best = int(np.argmax(band.median))
        lines.append(
            f"{counted_model(band.model, len(band.datasets))}: the median Δ is at least 0 {reach} "
            f"{sum(fine for _, fine in positive)} of {len(positive)} positive λ in all, and largest at "
            f"λ = {brief(band.lams[best])} ({signed(band.median[best])}).{_negative(band)}"
        )
    return [f"{missing}. {lines[0]}", *lines[1:]] if missing and lines else lines


def _negative(band: Band) -> str:
    """What the median says of negative λ, over all datasets or over those that have them."""
    told = band if min(band.lams) < 0 or band.whole is None else band.whole
    medians = [(median, lam) for lam, median in zip(told.lams, told.median, strict=True) if lam < 0]
    if not medians:
        return ""
    best, at = max(medians)
    below = sum(median < 0 for median, _ in medians)
    where = "It is" if told is band else f"Over the {len(told.datasets)} with every λ it is"
    return f" {where} below 0 at {below} of {len(medians)} negative λ, and largest there at λ = {brief(at)} ({signed(best)})."


def agreement(outcome: Outcome, name: str) -> tuple[list[CellOutcome], list[CellOutcome], list[CellOutcome]]:
    """Cells whose mean lies within two combined standard deviations of the paper's, those beyond, and those not run.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> [len(cells) for cells in agreement(outcome(load_study("main"), "paper"), "baseline")]
    [0, 0, 52]
    """
    found: tuple[list[CellOutcome], list[CellOutcome], list[CellOutcome]] = ([], [], [])
    for cell in outcome.cells:
        side = cell.sides[name]
        distance = None if side.consistency is None else side.consistency.distance
        if side.published is not None:
            found[2 if distance is None else int(abs(distance) > 2)].append(cell)
    return found


def agreement_sentence(outcome: Outcome, name: str) -> str:
    """How many scores of a variant lie within two combined standard deviations of the published ones; the others by name.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> agreement_sentence(outcome(load_study("arxiv"), "paper"), "baseline")
    "plain training: no cell can be compared with the paper's score yet."
    """
    within, beyond, open_ = agreement(outcome, name)
    words, compared = side_words(outcome, name), len(within) + len(beyond)
    if not compared:
        return f"{words}: no cell can be compared with the paper's score yet."
    found = [(cell_title(cell.dataset, cell.model), cell.sides[name].consistency) for cell in beyond]
    far = ", ".join(
        f"{title} ({signed(c.difference)} points, {number(abs(c.distance), 1)} combined sd)"
        for title, c in found
        if c is not None and c.distance is not None
    )
    kinds = Counter(kind(cell.sides[name].reason or "no score") for cell in open_)
    parts = ", ".join(f"{count} {plural('cell', count)} ({why})" for why, count in kinds.items())
    return (
        f"{words}: within two combined standard deviations of the paper's mean in {len(within)} of "
        f"{compared} {plural('cell', compared)}{f'; beyond: {far}.' if far else '.'}{f' Not compared: {parts}.' if parts else ''}"
    )


def cost_sentence(costs: Sequence[Cost]) -> str:
    """The time that training took, by device; reading data and looking for the size of populations is not in it.

    >>> cost_sentence([Cost("NVIDIA H200", "tf32", 8405, 2520.0)])
    '42 min on NVIDIA H200 (tf32, 8,405 runs).'
    >>> cost_sentence([])
    'nothing yet.'
    """
    if not costs:
        return "nothing yet."
    return "; ".join(f"{duration(c.seconds)} on {c.device} ({c.precision}, {c.runs:,} runs)" for c in costs) + "."


def provenance_sentence(provenance: Provenance) -> str:
    """Which code, which versions, and when.

    >>> provenance_sentence(Provenance(("0123456789ab+changes",), ('{"torch": "2.11.0"}',), "2026-11-15T10:00", None))
    'Code 0123456789ab with uncommitted changes; torch 2.11.0.'
    """
    versions: dict[str, None] = {}
    for text in provenance.versions:
        try:
            versions |= dict.fromkeys(f"{name} {version}" for name, version in json.loads(text).items())
        except (json.JSONDecodeError, AttributeError):
            versions[text] = None
    counts = [f" ({runs:,} {plural('run', runs)})" for runs in provenance.runs] or [""] * len(provenance.revisions)
    code = [_revision(text) + count for text, count in zip(provenance.revisions, counts, strict=True)]
    dates = [date[:10] for date in (provenance.first, provenance.last) if date]
    parts = [
        f"Code {', '.join(code)}" if code else "",
        ", ".join(versions),
        " to ".join(dates) if len(dates) > 1 else "",
    ]
    told = "; ".join(part for part in parts if part)
    return f"{told}." if told else ""


def _revision(text: str) -> str:
    """Which code, as records say it: a commit's short hash, or that of the source where there was no commit."""
    prefix, dash, digits = text.removesuffix(_CHANGED).rpartition("-")
    return f"{prefix}{dash}{digits[:12]}{' with uncommitted changes' if text.endswith(_CHANGED) else ''}"


def sentences(lines: Iterable[str]) -> str:
    """Lines as a Markdown list.

    >>> print(sentences(["One.", "Two."]))
    - One.
    - Two.
    """
    return "\n".join(f"- {line}" for line in lines)
