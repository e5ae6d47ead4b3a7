"""A report written as text: Markdown for a person, CSV for a program, LaTeX for a paper, and the list of all reports."""

from __future__ import annotations

from collections.abc import Sequence

from sharpen.report.blocks import FOUND, MISSING, Report
from sharpen.report.shares import shares
from sharpen.report.study_text import sentences
from sharpen.report.tables import latex_document, markdown_text, to_csv, to_latex, to_markdown
from sharpen.studies.cost import duration


def report_markdown(report: Report, figure_folder: str | None = None) -> str:
    """The page of a study; its figures are in a folder, seen from the page, if they were drawn.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.report.study import study_report
    >>> page = report_markdown(study_report(outcome(load_study("arxiv"), "paper")))
    >>> page.splitlines()[0]
    '# ogbn-arxiv (arxiv, paper protocol)'
    """
    study, title = report.study, markdown_text(report.study.title)

    def told(heading: str, lines: Sequence[str]) -> list[str]:
        return [f"## {heading}", "", sentences(map(markdown_text, lines)), ""] if lines else []

    facts = [
        f"Runs: {report.progress}.",
        f"Training time: {report.cost} A run that serves several studies counts in each.",
        report.provenance,
        f"What the paper leaves open: {study.leaves_open}" if study.leaves_open else "",
    ]
    parts = [f"# {title} ({markdown_text(study.name)}, {report.protocol} protocol)", ""]
    parts += [markdown_text(study.about), ""] if study.about else []
    parts += told(FOUND, report.findings)
    for name in () if figure_folder is None else report.figures:
        parts += [f"![{title}: {name}]({figure_folder}/{report.name}-{name}.png)", ""]
    parts += ["## Tables", "", *(to_markdown(table) for table in report.tables)]
    parts += told(MISSING, report.missing)
    parts += told("Where it comes from", [fact for fact in facts if fact])
    return "\n".join(parts)


def report_csv(report: Report) -> str:
    """Every number of the study, one row per cell and comparison.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.report.study import study_report
    >>> report = study_report(outcome(load_study("arxiv"), "paper", models=["gcn"]))
    >>> print(report_csv(report)[:68])
    dataset,model,comparison,against_mean,against_sd,against_n,against_p
    """
    return to_csv(report.data)


def report_latex(report: Report) -> str:
    r"""The tables in the paper's layout, as a document that compiles as it is.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> from sharpen.report.study import study_report
    >>> report_latex(study_report(outcome(load_study("arxiv"), "paper"))).splitlines()[2]
    '\\usepackage{booktabs}'
    """
    grids = [table for table in report.tables if len(table.columns) <= 10]
    return latex_document(to_latex(table, f"tab:{report.name}-{i + 1}") for i, table in enumerate(grids))


def index_markdown(reports: Sequence[Report], total: str) -> str:
    """The list of all reports, what each found, and what all of it took.

    >>> index_markdown([], "nothing yet.").splitlines()[0]
    '# Results'
    """
    parts = [
        "# Results",
        "",
        "Made by `sharpen study report` from the records in `store/`; `make results` updates it. Every page has its",
        "tables as CSV and LaTeX beside it; [page.html](page.html) shows all of it interactively.",
        "",
        "| study | protocol | runs | of its own | what it found | time, with shared runs | of its own |",
        "|:---|:---|:---|---:|:---|:---|---:|",
    ]
    for report, share in zip(reports, shares([(each.study.name, each.runs) for each in reports]), strict=True):
        own, took = (f"{share.own:,}", duration(share.own_seconds)) if report.runs else ("", "")
        found = markdown_text(report.findings[0]) if report.findings else ""
        parts.append(
            f"| [{markdown_text(report.study.title)}]({report.name}.md) | {report.protocol} | {report.progress} | {own} | "
            f"{found} | {markdown_text(report.cost)} | {took} |"
        )
    parts += [
        "",
        "Of its own: runs that no other study shows, and the time they took. The time before it is that of all runs of the row,",
        "those that other studies needed anyway too: these times do not add up.",
        "",
        f"All records together, each run once: {markdown_text(total)}",
        "",
    ]
    return "\n".join(parts)
