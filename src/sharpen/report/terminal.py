"""A comparison as a table for the terminal; plain text where the output is not one."""

from rich import box
from rich.console import Console
from rich.table import Table

from sharpen.evaluation.comparison import Comparison, LamComparison
from sharpen.report.cells import Value
from sharpen.report.headline import headline
from sharpen.report.names import metric_title

_STYLES = {"gain": "bold green", "loss": "bold red", "unclear": "", "unknown": "dim"}


def comparison_table(comparison: Comparison, *, plain: bool = False) -> Table:
    """The table of a comparison: the baseline, then one row per λ with its paired difference; plain ones are for files and pipes.

    >>> toy = dict(dataset="toy", model="gcn", metric="accuracy", splits=3, seeds=1, val=82.0, test=82.2, test_sd=1.0)
    >>> Console(width=80).print(comparison_table(Comparison(**toy, diverged=0, variants=()), plain=True))
    λ           val          test  gain  95 % CI  win/tie/loss  p
    baseline  82.00  82.20 ± 1.00
    """
    several = len(comparison.variants) > 1 and comparison.chosen is None
    # The box brings a space of its own; together they fit 80 columns.
    table = Table(box=None if plain else box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2 if plain else 1, 0, 0))
    table.add_column("λ", no_wrap=True)
    for name in ("val", "test", "gain", "95 % CI", "win/tie/loss", "p (Holm)" if several else "p"):
        table.add_column(name, justify="right", no_wrap=True)
    baseline = "baseline *" if comparison.chosen == 0 else "baseline"
    table.add_row(baseline, _mean(comparison.val), _mean(comparison.test, comparison.test_sd), end_section=True)
    for variant in comparison.variants:
        star = " *" if variant is comparison.subject and comparison.chosen is not None else ""
        style = _STYLES[variant.verdict(corrected=several)]
        table.add_row(f"{variant.lam:g}{star}", _mean(variant.val), *_cells(variant, several), style=style)
    return table


def print_comparison(comparison: Comparison, console: Console, notes: tuple[str, ...] = ()) -> None:
    """Print headline, table, and what a reader must know to trust them.

    >>> toy = dict(dataset="toy", model="gcn", metric="accuracy", splits=3, seeds=1, val=82.0, test=82.2, test_sd=1.0)
    >>> print_comparison(Comparison(**toy, diverged=0, variants=(), chosen=0.0), Console(width=80))
    Validation chooses λ = 0 on toy with a GCN: sharpening is not chosen, 3 paired splits.
    <BLANKLINE>
    λ             val          test  gain  95 % CI  win/tie/loss  p
    baseline *  82.00  82.20 ± 1.00
    <BLANKLINE>
    accuracy in %, mean ± standard deviation over runs; the baseline is λ = 0.
    gain: paired difference of test scores in points; CI and p: paired t.
    * chosen by mean validation score among these; test scores had no part in it.
    """
    plain = not console.is_terminal
    # In a file or a pipe one sentence is one line.
    console.print(headline(comparison), style="bold", highlight=False, soft_wrap=plain)
    console.print()
    console.print(comparison_table(comparison, plain=plain))
    if plain:
        console.print()
    for line in (*_legend(comparison), *notes):
        console.print(line, style="dim", highlight=False, markup=False, soft_wrap=plain)


def _legend(comparison: Comparison) -> list[str]:
    lines = [
        f"{metric_title(comparison.metric)} in %, mean ± standard deviation over runs; the baseline is λ = 0.",
        "gain: paired difference of test scores in points; CI and p: paired t.",
    ]
    if comparison.chosen is not None:
        lines.append("* chosen by mean validation score among these; test scores had no part in it.")
    subject = comparison.subject
    if subject is not None and (d := subject.difference) is not None and d.wilcoxon_p is not None:
        ends = d.bootstrap_interval
        bootstrap = "" if ends is None else "bootstrap (BCa) 95 % CI [{:+.2f}, {:+.2f}], ".format(*ends)
        p = "< 0.0001" if d.wilcoxon_p < 0.0001 else f"= {d.wilcoxon_p:.4f}"
        lines.append(f"λ = {subject.lam:g}, normality not assumed: {bootstrap}Wilcoxon signed-rank p {p}.")
    diverged = [("the baseline", comparison.diverged)]
    diverged += [(f"λ = {variant.lam:g}", variant.diverged) for variant in comparison.variants]
    if counts := ", ".join(f"{count} of {name}" for name, count in diverged if count):
        lines.append(f"Diverged, of {comparison.pairs} runs each: {counts}; a pair with such a run is left out.")
    return lines


def _cells(variant: LamComparison, several: bool) -> tuple[str, ...]:
    d = variant.difference
    if d is None:
        return ("diverged",)
    interval = "" if d.t_interval is None else "[{:+.2f}, {:+.2f}]".format(*d.t_interval)
    p = Value.chance(variant.corrected_p if several else d.t_p).text
    return _mean(d.mean_a, d.sd_a), f"{d.difference:+.2f}", interval, f"{d.wins}/{d.ties}/{d.losses}", p


def _mean(mean: float | None, sd: float | None = None) -> str:
    return Value.number(mean).text if mean is None or sd is None else Value.score(mean, sd).text
