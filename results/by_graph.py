"""What the findings say by graph: the table of claims, and for every comparison and graph its interval, its power, its equality.

The models of a graph are averaged on every draw of the split before anything is tested (:mod:`sharpen.analysis.graphs`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from coverage import TEN
from split_story import PLANETOID, Found

from sharpen.analysis.dynamics import Traces, dynamics
from sharpen.analysis.graphs import GraphEffect, effects_of_sides, graph_effects
from sharpen.analysis.outcome import Outcome
from sharpen.analysis.runs import Side
from sharpen.datasets.catalog import CATALOG
from sharpen.entropy import tsallis_entropy
from sharpen.evaluation import overlap_factor, paired_difference
from sharpen.evaluation.paired import widened
from sharpen.paper import published
from sharpen.report.cells import Value, signed
from sharpen.report.names import cell_title, dataset_title, model_title, plural
from sharpen.report.tables import Column, Place, Table, to_markdown

CONVOLUTIONS = ("gcn", "sage", "gat")
OVERHEAD = Path(__file__).parents[1] / "docs" / "measurements" / "overhead-cpu.csv"
# Training and test nodes of the given splits, in percent of the graph; of the draws, their names say it.
_GIVEN = {"squirrel": (48, 20), "chameleon": (48, 20), "minesweeper": (50, 25)}

Seen = tuple[str, Sequence[str], str]
Numbers = Callable[[Found, Callable[[Outcome], Traces]], Seen]


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we make of it, and where it stands; its numbers are made from records.

    Args:
        says: the claim.
        verdict: ours, in a word or two.
        because: the rest of it, if there is more to say.
        page: the report it rests on, in ``results/``, or a page of the documents.
        numbers: what the paper has, what we have, and what could have been seen.
    """

    says: str
    verdict: str
    because: str
    page: str
    numbers: Numbers

    @property
    def judged(self) -> str:
        """Verdict and reason."""
        return f"**{self.verdict}**" + (f": {self.because}" if self.because else "")


def _of_study(name: str, protocol: str, models: Sequence[str] = CONVOLUTIONS, contrast: str | None = None) -> Numbers:
    def numbers(found: Found, traces: Callable[[Outcome], Traces]) -> Seen:
        outcome = found(name, protocol)
        wanted = contrast or outcome.study.compare[0].name
        effects = graph_effects(outcome, wanted, models)
        if effects:
            return told(effects)
        said = [
            (c.dataset, e.published) for c, e in outcome.effects(wanted) if c.dataset in TEN and e.published is not None
        ]
        means = [np.mean([value for dataset, value in said if dataset == each]) for each in {d for d, _ in said}]
        return signed(float(np.mean(means))) if means else "", ["not run"], ""

    return numbers


def meta_against_plain(found: Found) -> list[GraphEffect]:
    """The meta-learned λ against no sharpening, whose runs are another study's."""
    return _across(found("meta-lambda", "paired"), "meta", found("universal", "paired"), "baseline")


def _across(one: Outcome, name: str, other: Outcome, against: str) -> list[GraphEffect]:
    cells: dict[str, dict[str, tuple[Side, Side]]] = {}
    for cell in one.cells:
        match = next((c for c in other.cells if (c.dataset, c.model) == (cell.dataset, cell.model)), None)
        if match is not None and cell.sides[name].complete and match.sides[against].complete:
            cells.setdefault(cell.dataset, {})[cell.model] = cell.sides[name], match.sides[against]
    return effects_of_sides(cells)


def chosen_by_draw(found: Found, against: str) -> list[GraphEffect]:
    """λ that the validation nodes of each draw choose among five, against one of these for all draws."""
    return effects_of_sides(_sides_by_draw(found, against))


def by_draw(found: Found) -> str:
    """The same in a sentence: what test nodes give and what validation nodes promised, over plain training and over 0.25."""
    sides = _sides_by_draw(found, "baseline")
    if not sides:
        return "Not run yet."
    promised = [
        np.mean(
            [
                np.mean([a.val - b.val for a, b in zip(*(side.runs for side in pair), strict=True)])
                for pair in own.values()
            ]
        )
        for own in sides.values()
    ]
    gains, beyond = (
        [e.difference.difference for e in chosen_by_draw(found, against)] for against in ("baseline", "ts-0.25")
    )
    return (
        f"Where each draw chooses for itself, λ gains {signed(float(np.mean(gains)))} in the mean of {len(gains)} graphs, "
        f"{signed(float(np.mean(beyond)))} beyond a fixed 0.25; validation nodes promise {signed(float(np.mean(promised)))}."
    )


def _sides_by_draw(found: Found, against: str) -> dict[str, dict[str, tuple[Side, Side]]]:
    """As someone with one split has to: every draw has its own λ, of equals the smallest."""
    five = found("main-five", "paired")
    cells: dict[str, dict[str, tuple[Side, Side]]] = {}
    for cell in five.cells:
        if all(effect.complete for effect in cell.effects):
            tried = [{(run.split, run.seed): run for run in cell.sides[name].runs} for name in five.study.variants]
            keys = [(run.split, run.seed) for run in cell.sides[against].runs]
            best = tuple(max((each[key] for each in tried), key=lambda run: round(run.val or 0.0, 9)) for key in keys)
            own = replace(cell.sides["ts-tuned"], name="by draw", variant=None, trial=None, runs=best)
            cells.setdefault(cell.dataset, {})[cell.model] = own, cell.sides[against]
    return cells


def message_passing(found: Found) -> list[tuple[GraphEffect, str, float]]:
    """An MLP with λ by validation against a GCN without sharpening, with the λ, and the paper's difference of the two."""
    main, table = found("main", "paper"), published("main")
    sides = {
        cell.dataset: {"mlp": (cell.sides["ts-tuned"], main.cell(cell.dataset, "gcn").sides["baseline"])}
        for cell in main.cells
        if cell.model == "mlp" and cell.sides["ts-tuned"].complete
    }
    rows = []
    for effect in effects_of_sides(sides):
        trial = sides[effect.dataset]["mlp"][0].trial
        mlp, gcn = table[effect.dataset, "mlp", "ts-tuned"], table[effect.dataset, "gcn", "baseline"]
        rows.append((effect, f"{trial.lam:g}" if trial else "", float(mlp.mean or 0) - float(gcn.mean or 0)))
    return rows


def _message_passing(found: Found, traces: Callable[[Outcome], Traces]) -> Seen:
    rows = message_passing(found)
    if not rows:
        return "", ["not run yet"], ""
    effects = [effect for effect, *_ in rows]
    *_, seen = told(effects)
    below = sum(e.difference.difference < 0 for e in effects)
    clear = sum(e.sure for e in effects)
    paper = sum(said < 0 for *_, said in rows)
    return f"below on {paper} of {len(rows)}", [f"below on {below} of {len(rows)} graphs, clearly on {clear}"], seen


def _entropies(found: Found, traces: Callable[[Outcome], Traces]) -> Seen:
    outcome = found("entropy-dynamics", "paper")
    cells = [cell for cell in dynamics(outcome, traces(outcome)) if cell.model == "gcn"]
    larger = sum(cell.gap.t_interval is not None and cell.gap.t_interval[0] > 0 for cell in cells)
    return "larger", [f"larger on {larger} of {len(cells)} graphs (GCN)"], ""


def overheads() -> list[dict[str, str]]:
    """The measured cost of an epoch with and without sharpening."""
    with OVERHEAD.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _overhead(found: Found, traces: Callable[[Outcome], Traces]) -> Seen:
    parts = []
    for way in ("plain loop", "population"):
        own = [float(row["overhead_percent"]) for row in overheads() if row["way"] == way]
        parts.append(f"{way}: {signed(min(own), 1)} to {signed(max(own), 1)} % CPU time an epoch")
    return "negligible", parts, ""


@cache
def gradient_norms(classes: int, q: float) -> tuple[float, float]:
    """The largest norm of an entropy's gradient by the logits, where one class stands out, and that at 1 − 10⁻⁶ for it.

    >>> [round(norm, 3) for norm in gradient_norms(2, 2)]
    [0.272, 0.0]
    """
    import torch

    share = torch.cat([torch.linspace(1e-4, 1 - 1e-4, 20_000, dtype=torch.float64), torch.tensor([1 - 1e-6]).double()])
    rest = ((1 - share) / (classes - 1))[:, None].expand(-1, classes - 1)
    logits = torch.cat([share[:, None], rest], 1).log().requires_grad_()
    tsallis_entropy(logits, q).sum().backward()
    assert logits.grad is not None
    norms = logits.grad.norm(dim=1)
    return float(norms.max()), float(norms[-1])


def _gradients(found: Found, traces: Callable[[Outcome], Traces]) -> Seen:
    shannon, gini = gradient_norms(7, 1)[0], gradient_norms(7, 2)[0]
    return "unbounded", [f"by p yes; by the logits at most {shannon:.2f} (Gini {gini:.2f}) with 7 classes"], ""


def told(effects: Sequence[GraphEffect]) -> Seen:
    """The paper's mean, ours with the graphs where it is clear and those where it is as good as zero, and what could be seen."""
    if not effects:
        return "", ["not run"], ""
    said = [e.published for e in effects if e.published is not None]
    count = len(effects)
    clear = sorted((e for e in effects if e.sure), key=lambda e: -abs(e.difference.difference))
    each = [f"**{dataset_title(e.dataset)} {_gain(e).text}**".replace(" ", "\u00a0") for e in clear]  # on one line
    near, nearer = (sum(e.within(margin) for e in effects) for margin in (1.0, 0.5))
    lines = [
        f"{signed(float(np.mean([e.difference.difference for e in effects])))} over {count} {plural('graph', count)}",
        *(each or ["clear on none"]),
        f"equal within ±0.5 on {nearer}, ±1 on {near}",
    ]
    sizes = [(e.detectable, dataset_title(e.dataset)) for e in effects if e.detectable is not None]
    seen = f"{min(sizes)[0]:.2f} ({min(sizes)[1]}) to {max(sizes)[0]:.2f} ({max(sizes)[1]})" if sizes else ""
    return signed(float(np.mean(said))) if said else "", lines, seen


CLAIMS = (
    Claim(
        "λ = 0.25 improves on plain training",
        "in part",
        "on two of three graphs with 20 labels per class; with most nodes labeled by a tenth or two, or not at all; no graph loses",
        "universal-paired.md",
        _of_study("universal", "paired"),
    ),
    Claim(
        "λ by validation improves on plain training (the paper's one split)",
        "in part",
        "on CiteSeer and Cora; elsewhere three to ten runs a cell see little",
        "main-paper.md",
        _of_study("main", "paper"),
    ),
    Claim(
        "λ by validation improves on plain training (draws; the best of five values, one for all draws)",
        "holds",
        "three quarters on Cora and CiteSeer; Photo and Physics gain a quarter of a point or less, Squirrel before correction",
        "main-five-paired.md",
        _of_study("main-five", "paired"),
    ),
    Claim(
        "(not in the paper) λ by the validation nodes of each draw against a fixed 0.25",
        "on Cora",
        "PubMed gains before correction; on CS (GAT alone) a fixed 0.25 loses that tenth; nothing is lost",
        "../docs/evidence.md#what-tuning-λ-buys",
        lambda found, _: told(chosen_by_draw(found, "ts-0.25")),
    ),
    Claim(
        "it improves MLPs too (the paper's one split)",
        "not shown",
        "CiteSeer and PubMed gain before correction",
        "main-paper.md",
        _of_study("main", "paper", ("mlp",)),
    ),
    Claim(
        "without the labeled term it is worse",
        "no",
        "two splits were compared; on CiteSeer a few tenths are likely, clear before correction",
        "labeled-term-paired.md",
        _of_study("labeled-term", "paired"),
    ),
    Claim(
        "sharpening test nodes only is worse",
        "no",
        "two splits were compared",
        "test-only-paired.md",
        _of_study("test-only", "paired"),
    ),
    Claim(
        "Shannon's entropy does about as well as Gini's",
        "on average only",
        "worse on CiteSeer, better on Cora",
        "entropy-order-paired.md",
        _of_study("entropy-order", "paired"),
    ),
    Claim(
        "a meta-learned λ is worse than the tuned λ\\*",
        "no",
        "two splits were compared; worse on Cora, better on PubMed, where λ\\* does harm",
        "meta-lambda-paired.md",
        _of_study("meta-lambda", "paired"),
    ),
    Claim(
        "(not in the paper) a meta-learned λ against plain training",
        "a gain",
        "about that of λ = 0.25, without a grid",
        "meta-lambda-paired.md",
        lambda found, _: told(meta_against_plain(found)),
    ),
    Claim(
        "moving both weights by an offset does not help (one split)",
        "holds",
        "as far as seeds on one split can tell",
        "offset-paper.md",
        _of_study("offset", "paper"),
    ),
    Claim(
        "a negative λ is usually harmful (−0.5, one split)",
        "in part",
        "on Cora; most graphs lean that way, Squirrel does not",
        "lambda-curves-paper.md",
        _of_study("lambda-curves", "paper", contrast="ts--0.5 - baseline"),
    ),
    Claim(
        "sharpening does not replace message passing (MLP with it, GCN without; one split)",
        "holds",
        "",
        "main-paper.md",
        _message_passing,
    ),
    Claim(
        "the entropy gap is larger with sharpening",
        "holds",
        "the objective asks for it",
        "entropy-dynamics-paper.md",
        _entropies,
    ),
    Claim(
        "the overhead is negligible",
        "holds",
        "beside a graph convolution",
        "../docs/evidence.md#claims-of-the-text",
        _overhead,
    ),
    Claim(
        "Shannon's gradients are unbounded",
        "no",
        "not where a network is trained",
        "../docs/evidence.md#claims-of-the-text",
        _gradients,
    ),
    Claim(
        "retuning learning rate and dropout adds little (the best of nine settings; one split)",
        "holds",
        "on the cheaper half of the cells; the rest is not run",
        "retune-nine-paper.md",
        _of_study("retune-nine", "paper"),
    ),
)


def claims_table(found: Found, traces: Callable[[Outcome], Traces]) -> str:
    """Claim, paper, ours, verdict, what could have been seen."""
    rows: list[str] = []
    for claim in CLAIMS:
        paper, ours, seen = claim.numbers(found, traces)
        rows.append(f"| {claim.says} | {paper} | {'<br>'.join(ours)} | {claim.judged} | {seen} |")
    head = "| the paper says | paper | ours | verdict | could be seen |\n|:---|---:|:---|:---|:---|"
    return "\n".join([head, *rows])


def by_graph(found: Found) -> str:
    """Every comparison under the paired protocol, graph by graph."""
    parts = []
    for name in ("universal", "main-five", "labeled-term", "test-only", "entropy-order", "meta-lambda"):
        outcome = found(name, "paired")
        effects = graph_effects(outcome, outcome.study.compare[0].name)
        if effects:
            parts.append(to_markdown(_table(f"{outcome.study.title}: {outcome.study.compare[0].name}", effects)))
    for against, name in (("baseline", "plain training"), ("ts-0.25", "λ = 0.25")):
        if effects := chosen_by_draw(found, against):
            parts.append(to_markdown(_table(f"λ by the validation nodes of each draw - {name}", effects)))
    effects = meta_against_plain(found)
    if effects:
        parts.append(to_markdown(_table("Meta-learned λ: meta - baseline", effects)))
    return "\n\n".join(part.strip() for part in parts) or "Not run yet."


def overlapping_cells(found: Found) -> str:
    """Cells in which λ = 0.25 is clear after Holm's correction over cells, and their intervals for splits that overlap."""
    rows: list[tuple[Place, ...]] = []
    for cell, effect in found("universal", "paired").effects("ts-0.25 - baseline"):
        d = effect.difference
        if d is None or effect.corrected_p is None or effect.corrected_p >= 0.05:
            continue
        wider = [widened(d, overlap_factor(d.n, ratio)) for ratio in _ratios(cell.dataset)]
        ends = (None if each.t_interval is None else Value.interval(*each.t_interval) for each in wider)
        rows.append((cell_title(cell.dataset, cell.model), Value.gain(d.difference, d.t_interval, tell_n=False), *ends))
    if not rows:
        return "No cell is clear yet."
    columns = (
        Column("cell", "cell"),
        Column("ours", "λ = 0.25 − plain", "right"),
        Column("nb", "test / training nodes", "right", group="overlap"),
        Column("nodes", "share of nodes tested", "right", group="overlap"),
    )
    return to_markdown(
        Table("Cells that are clear after Holm's correction, for splits that overlap", columns, tuple(rows))
    )


def _table(title: str, effects: Sequence[GraphEffect]) -> Table:
    columns = (
        Column("graph", "graph"),
        Column("draws", "draws", "right"),
        Column("ours", "ours", "right"),
        Column("paper", "paper", "right"),
        Column("p", "p (Holm)", "right"),
        Column("seen", "seen (80 %)", "right"),
        Column("equal", "equal within", "right"),
        Column("nb", "test / training nodes", "right", group="overlap"),
        Column("nodes", "share of nodes tested", "right", group="overlap"),
    )
    rows: list[tuple[Place, ...]] = []
    for e in effects:
        seen = "" if e.detectable is None else f"{e.detectable:.2f}"
        equal = "±0.5" if e.within(0.5) else "±1" if e.within(1.0) else "–"
        wider = [widened(e.difference, overlap_factor(e.difference.n, ratio)) for ratio in _ratios(e.dataset)]
        rows.append(
            (
                dataset_title(e.dataset)
                + ("" if len(e.models) == 3 else f" ({', '.join(map(model_title, e.models))})"),
                str(e.difference.n),
                _gain(e),
                Value.number(e.published, sign=True),
                f"{e.corrected_p:.2g}" if e.corrected_p >= 0.001 else "< 0.001",
                seen,
                equal,
                *(None if d.t_interval is None else Value.interval(*d.t_interval) for d in wider),
            )
        )
    return Table(title.replace(" - ", " − "), columns, tuple(rows))


def _gain(effect: GraphEffect) -> Value:
    return Value.gain(effect.difference.difference, effect.difference.t_interval, tell_n=False)


def _ratios(dataset: str) -> tuple[float, float]:
    """Test by training nodes, and test nodes by all others."""
    info = CATALOG[dataset]
    if dataset in PLANETOID:
        return 1000 / (20 * info.classes), 1000 / (info.nodes - 1000)
    train, test = _GIVEN.get(dataset, (60, 20))
    return test / train, test / (100 - test)


def over_graphs(found: Found) -> str:
    """The ten graphs taken as a sample of graphs."""
    effects = graph_effects(found("universal", "paired"), "ts-0.25 - baseline")
    if len(effects) < 2:
        return "Not run yet."
    values = [e.difference.difference for e in effects]
    d = paired_difference(values, np.zeros(len(values)), resamples=0)
    return (
        f"Taken as a sample of graphs, the {d.n} gain {Value.gain(d.difference, d.t_interval, tell_n=False).text} on average (t "
        f"interval over graphs), {signed(float(np.median(values)))} in the median; {d.wins} of {d.n} lie above zero."
    )
