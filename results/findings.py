"""The numbers of ``docs/findings.md`` and ``docs/evidence.md``: blocks of text made from records, put between their markers.

A block stands between ``<!-- numbers: NAME -->`` and ``<!-- end of numbers -->``. What stands between is made anew; what stands
around it, the judgement, is written by hand and stays. Run it from the root of the repository, as ``make results`` does, after
``sharpen study report``; with ``--results`` it also draws the two figures of the findings and puts the claims at the top of that
folder's README:

    python results/findings.py docs/findings.md docs/evidence.md --store results/store --results results
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from by_graph import CLAIMS, by_draw, by_graph, claims_table, over_graphs, overlapping_cells
from coverage import Left, clean, coverage, missing
from figures_of_findings import draw_figures
from in_the_store import (
    easy_splits,
    gradients,
    lambda_beside,
    no_message_passing,
    overhead,
    ranks_by_draws,
    seeds,
    tuning,
)
from paper_tables import COMPARISONS, baselines, comparison, cost, curves, entropies, ranks, tallies
from split_story import Found, split_story, tuned_elsewhere
from summary import split_sentence, summary

from sharpen.analysis.dynamics import Traces
from sharpen.analysis.outcome import Outcome
from sharpen.errors import InputError, did_you_mean
from sharpen.report.builder import Reader, unavailable
from sharpen.store import Store
from sharpen.studies import Study, list_studies, load_study
from sharpen.studies.cost import Costs
from sharpen.studies.status import progress

_STUDIES = "## Every study"
_BLOCK = re.compile(r"(<!-- numbers: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end of numbers -->)", flags=re.DOTALL)


def findings_blocks(
    found: Found,
    traces: Callable[[Outcome], Traces],
    frame: pd.DataFrame,
    reported: Callable[[Study], Sequence[str]],
    left: Left,
) -> dict[str, Callable[[], str]]:
    """What makes each block, by its name.

    Args:
        found: gives the outcome of one of the paper's studies under a protocol.
        traces: gives what an outcome's runs traced.
        frame: all runs.
        reported: the protocols under which a study has a report of its own.
        left: gives how far the cells of a study are under a protocol.

    >>> import pandas as pd
    >>> from sharpen.analysis.outcome import outcome
    >>> def found(name, protocol):
    ...     return outcome(load_study(name), protocol, pd.DataFrame())
    >>> blocks = findings_blocks(found, lambda _: {}, pd.DataFrame(), lambda study: study.protocols, lambda *_: [])
    >>> blocks["entropy-dynamics"]()
    'Not run yet.'
    """
    blocks: dict[str, Callable[[], str]] = {
        "summary": lambda: summary(found),
        "claims": lambda: claims_table(found, traces),
        "two-splits": lambda: split_sentence(found),
        "coverage": lambda: coverage(found, traces, frame),
        "missing": lambda: missing(left),
        "revisions": lambda: clean(frame),
        "by-graph": lambda: by_graph(found),
        "overlap": lambda: overlapping_cells(found),
        "over-graphs": lambda: over_graphs(found),
        "easy-splits": lambda: f"{easy_splits(found)}\n\n{ranks_by_draws(found)}",
        "tuning": lambda: tuning(found),
        "tuning-draws": lambda: f"{tuning(found, 'main-five', 'paired')}\n\n{by_draw(found)}",
        "lambda-beside": lambda: lambda_beside(found),
        "message-passing": lambda: no_message_passing(found),
        "seeds": lambda: seeds(found, frame),
        "gradients": gradients,
        "overhead": overhead,
        "tallies": lambda: tallies(found),
        "baselines": lambda: baselines(found("main", "paper")),
        "lambda-curves": lambda: curves(found),
        "entropy-dynamics": lambda: entropies(found("entropy-dynamics", "paper"), traces),
        "splits": lambda: split_story(found),
        "lambda-star": lambda: tuned_elsewhere(found),
        "comparison": lambda: ranks(load_study("comparison"), found("main", "paper")),
        "cost": lambda: cost(found, frame, reported),
    }
    for name in COMPARISONS:
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


def made_from(reader: Reader, data: Path | None) -> dict[str, Callable[[], str]]:
    """The blocks that a store gives."""
    speed = Costs("cuda", None, "tf32", reader.frame)
    return findings_blocks(
        lambda name, protocol: reader.outcome(load_study(name), protocol),
        reader.traces,
        reader.frame,
        reader.protocols,
        lambda name, protocol: progress(load_study(name), protocol, reader.store, speed, data=data),
    )


def readme(text: str) -> str:
    """The README of the results: the figure and the claims, each with its verdict and its page, above the list of all studies.

    >>> print(readme("# Results\\n\\nMade by …"))  # doctest: +ELLIPSIS
    # Results
    ...
    ## Every study
    <BLANKLINE>
    Made by …
    """
    head = [
        "# Results",
        "",
        "![Gain of λ = 0.25 on ten graphs, with intervals, beside the paper's](figures/findings-graphs.png)",
        "",
        "What each claim of the paper comes to, and the page that says so. With numbers: [findings](../docs/findings.md); all of",
        "it: [evidence](../docs/evidence.md). Beyond the paper: [how many labels sharpening",
        "needs](label-rates/label-rates-all.md), on a small network [too](few-labels/label-rates-small-all.md), and [the",
        "field](../docs/field.md).",
        "",
        "| the paper says | verdict | page |",
        "|:---|:---|:---|",
        *(f"| {c.says} | {c.judged} | [{Path(c.page.split('#')[0]).stem}]({c.page}) |" for c in CLAIMS),
        "",
        _STUDIES,
        "",
    ]
    return "\n".join(head) + "\n" + text.split(f"{_STUDIES}\n\n")[-1].removeprefix("# Results\n\n")


def main() -> None:
    """Fill the markers of files, draw the figures, and lead from claims to pages."""
    parser = argparse.ArgumentParser(description="Update the numbers between the markers of Markdown files.")
    parser.add_argument("files", type=Path, nargs="+", help="such as docs/findings.md")
    parser.add_argument("--store", type=Path, default=Path(__file__).parent / "store", help="folder of records")
    parser.add_argument("--data", type=Path, help="folder of benchmark files (default: $SHARPEN_DATA)")
    parser.add_argument(
        "--results", type=Path, help="folder of reports: draw its figures, and put the claims into its README"
    )
    given = parser.parse_args()
    reader = Reader(Store(given.store), unavailable(list_studies(), given.data))
    blocks = made_from(reader, given.data)
    for file in given.files:
        file.write_bytes(fill(file.read_text(encoding="utf-8"), blocks).encode())  # the same line ends everywhere
    if given.results is not None:
        draw_figures(lambda name, protocol: reader.outcome(load_study(name), protocol), given.results / "figures")
        page = given.results / "README.md"
        page.write_bytes(readme(page.read_text(encoding="utf-8")).encode())


if __name__ == "__main__":
    main()
