"""The numbers of ``docs/findings.md``: blocks of text made from records, put between its markers.

A block stands between ``<!-- numbers: NAME -->`` and ``<!-- end of numbers -->``. What stands between is made anew; what stands
around it, the judgement, is written by hand and stays. Run it from the root of the repository, as ``make results`` does:

    python results/findings.py docs/findings.md --store results/store
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from split_story import Found, split_story, tuned_elsewhere

from sharpen.analysis.curves import lambda_curves
from sharpen.analysis.dynamics import Traces, dynamics
from sharpen.analysis.outcome import NOT_RUN, Outcome
from sharpen.analysis.provenance import Cost, costs
from sharpen.analysis.ranking import rankings
from sharpen.errors import InputError, did_you_mean
from sharpen.report.builder import Reader, unavailable
from sharpen.report.cells import Number, Quoted, Reason
from sharpen.report.missing import missing_lams
from sharpen.report.names import cell_title, dataset_title, minus
from sharpen.report.shares import run_seconds, shares, was_run
from sharpen.report.special_tables import dynamics_table, lambda_table
from sharpen.report.study_tables import gain_grid, own_score
from sharpen.report.study_text import (
    agreement,
    agreement_sentence,
    band_sentences,
    cost_sentence,
    gain_sentence,
    gap_sentence,
    sentences,
)
from sharpen.report.tables import Column, Place, Table, to_markdown
from sharpen.report.tally import tally
from sharpen.store import Store
from sharpen.studies import Study, list_studies, load_study
from sharpen.studies.cost import duration

# The graphs whose files are at hand for this project's own records.
TEN = ("cora", "citeseer", "pubmed", "computer", "photo", "cs", "physics", "squirrel", "chameleon", "minesweeper")
# What the paper says about each comparison, in the order of the paper.
CLAIMS = {
    "main": "λ by validation improves on plain training",
    "universal": "λ = 0.25 improves on plain training without tuning",
    "labeled-term": "without the labeled term it is worse",
    "offset": "moving both weights by an offset does not help",
    "entropy-order": "Shannon's entropy does about as well as Gini's",
    "meta-lambda": "a meta-learned λ is worse than a fixed one",
    "test-only": "sharpening test nodes only is worse",
    "retune": "retuning learning rate and dropout adds little",
}
_BLOCK = re.compile(r"(<!-- numbers: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end of numbers -->)", flags=re.DOTALL)


def findings_blocks(
    found: Found,
    traces: Callable[[Outcome], Traces],
    total: Sequence[Cost],
    reported: Callable[[Study], Sequence[str]],
) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name.

    Args:
        found: gives the outcome of one of the paper's studies under a protocol.
        traces: gives what an outcome's runs traced.
        total: what all records took together.
        reported: the protocols under which a study has a report of its own.

    >>> import pandas as pd
    >>> from sharpen.analysis.outcome import outcome
    >>> def found(name, protocol):
    ...     return outcome(load_study(name), protocol, pd.DataFrame())
    >>> blocks = findings_blocks(found, lambda _: {}, [], lambda study: study.protocols)
    >>> blocks["entropy-dynamics"]()
    'Not run yet.'
    """
    blocks: dict[str, Callable[[], str]] = {
        "claims": lambda: claims(found),
        "baselines": lambda: baselines(found("main", "paper")),
        "lambda-curves": lambda: curves(found),
        "entropy-dynamics": lambda: entropies(found("entropy-dynamics", "paper"), traces),
        "splits": lambda: split_story(found),
        "lambda-star": lambda: tuned_elsewhere(found),
        "comparison": lambda: ranks(load_study("comparison"), found("main", "paper")),
        "cost": lambda: cost(found, total, reported),
    }
    for name in CLAIMS:
        blocks[name] = lambda name=name: comparison(found, name)  # type: ignore[misc]  # the name of now
    return blocks


def fill(text: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """The text with every block between its markers made anew.

    >>> print(fill("Before.\\n<!-- numbers: cost -->\\nold\\n<!-- end of numbers -->\\nAfter.", {"cost": lambda: "42 minutes."}))
    Before.
    <!-- numbers: cost -->
    <BLANKLINE>
    42 minutes.
    <BLANKLINE>
    <!-- end of numbers -->
    After.
    """
    opened, closed = text.count("<!-- numbers:"), text.count("<!-- end of numbers -->")
    if opened != closed or opened != len(_BLOCK.findall(text)):
        raise InputError(
            f"the text has {opened} markers '<!-- numbers: NAME -->' and {closed} '<!-- end of numbers -->'; write them "
            f"in pairs, "
            "each on a line of its own"
        )

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in blocks:
            hint = did_you_mean(name, blocks)
            raise InputError(f"there are no numbers called {name!r}; {hint}There are {', '.join(blocks)}")
        return f"{match[1]}\n{blocks[name]().strip()}\n\n{match[4]}"

    return _BLOCK.sub(made, text)


def claims(found: Found) -> str:
    """One row per comparison of the paper: its mean difference and ours over the same cells, those that it gives a number for."""
    rows: list[tuple[Place, ...]] = []
    for name, claim in CLAIMS.items():
        for protocol in _protocols(found, name):
            outcome = found(name, protocol)
            contrast = outcome.study.compare[0].name
            everywhere = [e for _, e in outcome.effects(contrast)]
            counts = tally(everywhere)
            if counts is None:
                rows.append((claim, minus(contrast), protocol, Reason(_so_far(outcome)), *[None] * 5))
                continue
            both = [
                (e.difference.difference, e.published)
                for e in everywhere
                if e.complete and e.difference is not None and e.published is not None
            ]
            diverged = sum(e.diverged > 0 for e in everywhere)
            rows.append(
                (
                    claim,
                    minus(contrast),
                    protocol,
                    str(counts.cells) + (f" ({diverged} more diverged)" if diverged else ""),
                    str(len(both)),
                    Number(float(np.mean([ours for ours, _ in both])) if both else None, sign=True),
                    Number(float(np.mean([paper for _, paper in both])) if both else None, sign=True),
                    f"{counts.gains} / {counts.unclear} / {counts.losses}",
                    f"{counts.corrected_gains} / {counts.corrected_losses}",
                )
            )
    columns = (
        Column("claim", "the paper says"),
        Column("comparison", "comparison"),
        Column("protocol", "protocol"),
        Column("cells", "cells", "right"),
        Column("published", "of them published", "right"),
        Column("ours", "ours, mean", "right"),
        Column("paper", "paper, mean", "right"),
        Column("verdicts", "gain / unclear / loss", "center"),
        Column("holm", "after Holm: gain / loss", "center"),
    )
    notes = (
        "Cells: those that have all their pairs; where runs diverged they are not counted. Means: over those of them for which the "
        "paper gives a difference, in points. Gain and loss: cells whose 95 % t interval of the paired difference excludes zero; "
        "after Holm: corrected over the cells of the row.",
    )
    return to_markdown(Table("What the paper says, and what pairs say", columns, tuple(rows), notes))


def baselines(main: Outcome) -> str:
    """How many of the paper's baselines we meet, in the cells of the ten graphs."""
    own = _only(main, TEN)
    within, beyond, open_ = agreement(own, "baseline")
    lines = [agreement_sentence(own, "baseline")]
    rows: list[tuple[Place, ...]] = []
    distances = []
    for cell in own.cells:
        side = cell.sides["baseline"]
        said, found = side.published, side.consistency
        if said is None or said.mean is None or found is None or found.distance is None:
            continue
        distances.append(abs(found.distance))
        rows.append(
            (
                cell_title(cell.dataset, cell.model),
                own_score(side),
                Quoted("", said.mean, said.sd),
                Number(found.difference, sign=True),
                Number(found.distance, 1, sign=True),
            )
        )
    if distances:
        lines.append(
            f"Median distance {np.median(distances):.2f} combined standard deviations; the aim is at most two in 36 of the "
            f"{len(within) + len(beyond) + len(open_)} cells."
        )
    if open_:
        lines.append(f"Not run: {', '.join(cell_title(cell.dataset, cell.model) for cell in open_)}.")
    if not rows:
        return sentences(lines)
    columns = (
        Column("cell", "cell"),
        Column("ours", "ours", "right"),
        Column("paper", "paper", "right"),
        Column("difference", "difference, points", "right"),
        Column("distance", "in combined sd", "right"),
    )
    table = to_markdown(Table("Plain training, ours and the paper's, paper protocol", columns, tuple(rows)))
    return f"{sentences(lines)}\n\n{table.strip()}"


def comparison(found: Found, name: str) -> str:
    """One of the paper's comparisons under every protocol that has complete cells, these in the paper's layout."""
    parts = []
    for protocol in _protocols(found, name):
        outcome = found(name, protocol)
        contrast = outcome.study.compare[0]
        parts.append(f"{protocol} protocol: {gain_sentence(outcome, contrast.name)}")
        # Also those with diverged runs: their cells say so.
        shown = tuple(c.dataset for c, e in outcome.effects(contrast.name) if e.finished == e.planned and e.difference)
        if shown:  # how to read it stands at the top of the text
            parts.append(to_markdown(replace(gain_grid(_only(outcome, shown), contrast), notes=())))
    return "\n\n".join(part.strip() for part in parts)


def curves(found: Found) -> str:
    """Glass's Δ over λ, and the range in which its median is not negative."""
    parts = []
    for protocol in ("paper", "paired"):
        outcome = found("lambda-curves", protocol)
        drawn = lambda_curves(outcome)
        if not drawn:
            continue
        parts += [
            sentences(band_sentences(drawn, missing_lams(outcome, drawn))),
            to_markdown(lambda_table(drawn, f"Glass's Δ by λ, {protocol} protocol")),
        ]
    return "\n\n".join(part.strip() for part in parts) or "Not run yet."


def entropies(outcome: Outcome, traces: Callable[[Outcome], Traces]) -> str:
    """Whether the gap H_L − H_U is larger with sharpening, cell by cell."""
    cells = dynamics(outcome, traces(outcome))
    if not cells:
        return "Not run yet."
    return f"{gap_sentence(cells)}\n\n{to_markdown(dynamics_table(cells, 'Entropy gap during training')).strip()}"


def ranks(study: Study, main: Outcome) -> str:
    """Where our best entry stands among published scores, with and without sharpening."""
    columns = (
        Column("dataset", "dataset"),
        Column("plain", "our best without sharpening", "right"),
        Column("sharp", "our best with λ by validation", "right"),
        Column("first", "best published", "right"),
        Column("of", "other methods", "right"),
    )
    rows: list[tuple[Place, ...]] = []
    for ranking in rankings(study, main):
        scored = [entry for entry in ranking.entries if entry.mean is not None]
        kinds = [
            next((e for e in scored if e.ours and e.method.endswith("+TS") is sharp), None) for sharp in (False, True)
        ]
        others = [e for e in scored if not e.ours]
        if not any(kinds):
            continue
        rows.append(
            (
                dataset_title(ranking.dataset),
                *(
                    Reason(NOT_RUN) if e is None else f"{e.method} {e.mean:.2f}, place {ranking.place(e)[0]}"
                    for e in kinds
                ),
                f"{others[0].method} {others[0].mean:.2f}" if others else None,
                str(len(others)),
            )
        )
    if not rows:
        return "Not run yet."
    notes = ("After ours: its place among the other methods alone; our own entries do not count against each other.",)
    return to_markdown(Table("Places by mean score; other methods as published", columns, tuple(rows), notes))


def cost(found: Found, total: Sequence[Cost], reported: Callable[[Study], Sequence[str]]) -> str:
    """What every study took under each protocol, and all of them together."""
    outcomes = [found(study.name, p) for study in list_studies() if study.reads is None for p in reported(study)]
    rows: list[tuple[Place, ...]] = []
    found_shares = shares([(outcome.study.name, run_seconds(outcome)) for outcome in outcomes])
    for outcome, share in zip(outcomes, found_shares, strict=True):
        if not was_run(outcome, share):
            continue
        rows.append(
            (
                outcome.study.title,
                outcome.protocol,
                f"{outcome.finished:,} of {outcome.planned:,}",
                duration(sum(c.seconds for c in outcome.costs)),
                f"{share.own:,}",
                duration(share.own_seconds),
                ", ".join(dict.fromkeys(f"{c.device} ({c.precision})" for c in outcome.costs)),
            )
        )
    if not rows:
        return "Not run yet."
    keys = ("study", "protocol", "runs", "time", "runs of its own", "their time", "device")
    columns = tuple(Column(key, key) for key in keys)
    notes = (
        f"All together, a run that serves several studies counted once: {cost_sentence(total)} Training only: reading data and "
        "looking for how many runs fit at once are not in it.",
    )
    return to_markdown(Table("Time that training took", columns, tuple(rows), notes))


def _protocols(found: Found, name: str) -> list[str]:
    """The protocols under which a study has complete cells, the paired one first; if none has, the study's first."""
    study = load_study(name)
    wanted: list[str] = [protocol for protocol in ("paired", "paper") if protocol in study.protocols]
    ready = [p for p in wanted if found(name, p).complete]
    return ready or list(study.protocols[:1])


def _so_far(outcome: Outcome) -> str:
    """How much of a study without a complete cell is there."""
    if not outcome.finished:
        return NOT_RUN
    return f"no cell complete yet, {outcome.finished:,} of {outcome.planned:,} runs"


def _only(outcome: Outcome, datasets: tuple[str, ...]) -> Outcome:
    return replace(outcome, cells=tuple(cell for cell in outcome.cells if cell.dataset in datasets))


def filled(path: Path, reader: Reader) -> str:
    """The text of a file with its numbers made anew from a store."""
    blocks = findings_blocks(
        lambda name, protocol: reader.outcome(load_study(name), protocol),
        reader.traces,
        costs(reader.frame),
        reader.protocols,
    )
    return fill(path.read_text(encoding="utf-8"), blocks)


def main() -> None:
    """Fill the markers of a file."""
    parser = argparse.ArgumentParser(description="Update the numbers between the markers of a Markdown file.")
    parser.add_argument("file", type=Path, help="the file, such as docs/findings.md")
    parser.add_argument("--store", type=Path, default=Path(__file__).parent / "store", help="folder of records")
    parser.add_argument("--data", type=Path, help="folder of benchmark files (default: $SHARPEN_DATA)")
    given = parser.parse_args()
    reader = Reader(Store(given.store), unavailable(list_studies(), given.data))
    given.file.write_bytes(filled(given.file, reader).encode())  # the same line ends everywhere


if __name__ == "__main__":
    main()
