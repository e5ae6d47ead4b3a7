"""Sharpened training against plain training on one graph, paired on the same splits and seeds: ``sharpen.compare``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sharpen.comparison_plan import advised, checked_lams, few_pairs, plan_pairs
from sharpen.datasets import Dataset, load_dataset
from sharpen.errors import InputError, did_you_mean
from sharpen.evaluation import compare_lams
from sharpen.evaluation.collapse import collapse_note
from sharpen.evaluation.comparison import Comparison
from sharpen.files import Columns
from sharpen.files.dataset import graph_from_paths
from sharpen.report import headline, print_comparison
from sharpen.training import train
from sharpen.training.checkpoint import (
    checkpoint_folder,
    keep_records,
    kept_records,
    read_decision,
    write_decision,
)
from sharpen.training.device import arithmetic_type, resolve_device
from sharpen.training.memory import choose_batching
from sharpen.training.ranks import joined
from sharpen.training.records import way_note
from sharpen.training.trials import as_dataset, blueprint_of, resolve
from sharpen.trial import OBJECTIVE, Record, Trial, to_frame
from sharpen.whole import json_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from sharpen.graph import Split
    from sharpen.models.blueprint import Blueprint
    from sharpen.report.page.document import Page


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult:
    """What :func:`compare` found: printed, it is the table; in a notebook, too.

    Args:
        comparison: Differences with their intervals, in percent.
        dataset: What was compared on.
        records: Every run: the plain ones, then those of each λ, in the order of ``pairs``.
        lams: The λ, in the order of the records.
        pairs: The (split, seed) of every pair.
        notes: What a reader should know.
        settings: What all runs share, in the words of :class:`sharpen.Trial`.
        precision, seconds: How it was computed, and how long that took.
        kept: Where finished runs were kept meanwhile; to be removed once the result is written.
        command: The command that does the same, if there was one.
    """

    comparison: Comparison
    dataset: Dataset = field(repr=False)
    records: Sequence[Record]
    lams: Sequence[float]
    pairs: Sequence[tuple[str, int]]
    notes: Sequence[str]
    settings: Mapping[str, Any]
    precision: str
    seconds: float
    kept: Path | None = None
    command: str = ""

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return headline(self.comparison)

    @property
    def plain(self) -> Sequence[Record]:
        """The runs of the baseline."""
        return self.records[: len(self.pairs)]

    @property
    def sharp(self) -> dict[float, Sequence[Record]]:
        """The runs of each λ."""
        size = len(self.pairs)
        return {lam: self.records[size * (i + 1) : size * (i + 2)] for i, lam in enumerate(self.lams)}

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All of it, ready for JSON: what ``comparison.json`` holds."""
        first = self.records[0]
        return {
            "headline": self.headline,
            "comparison": asdict(self.comparison),
            "notes": list(self.notes),
            "settings": dict(self.settings),
            "pairs": [{"split": split, "seed": seed} for split, seed in self.pairs],
            "split_ids": {split: self.dataset.splits[split].id for split, _ in self.pairs},
            "fingerprint": self.dataset.graph.fingerprint,
            "device": first.device,
            "precision": self.precision,
            "way": first.way,
            "model_digest": first.model_digest,
            "seconds": round(self.seconds, 3),
            "versions": first.versions,
            "command": self.command,
        }

    def page(self) -> Page:
        """Everything there is to see, as one HTML file: :func:`sharpen.report.page.write_page` writes it."""
        from sharpen.report.page import comparison_page

        return comparison_page(self.comparison, self.dataset, self.plain, self.sharp, result=self.summary)

    def files(self, page: bool = True) -> dict[str, Callable[[Path], object]]:
        """The files of a results folder by name, each with what writes it."""
        from sharpen.report.page import write_page

        files: dict[str, Callable[[Path], object]] = {
            "records.parquet": to_frame(self.records).to_parquet,
            "traces.npz": partial(_write_traces, records=self.records),
            "comparison.json": lambda path: path.write_bytes(json_bytes(self.summary)),
        }
        return files | ({"page.html": partial(write_page, self.page())} if page else {})

    def _printed(self, html: bool) -> Console:
        from rich.console import Console

        console = Console(file=StringIO(), width=120, record=True, force_terminal=html, highlight=False)
        print_comparison(self.comparison, console, tuple(self.notes))
        return console

    def __repr__(self) -> str:
        return self._printed(html=False).export_text().rstrip()

    def _repr_html_(self) -> str:
        return self._printed(html=True).export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def compare(
    data: Any = "digits",
    model: Any = "gcn",
    lam: float | str | Sequence[float] | None = None,
    *,
    splits: int | str | Mapping[str, Split] | Sequence[Split] = 10,
    seeds: int | None = None,
    device: str = "auto",
    precision: str = "float32",
    batching: str = "auto",
    folder: str | Path | None = None,
    columns: Columns | None = None,
    keep: Path | None = None,
    progress: bool = True,
    tell: Callable[[str], None] = lambda text: None,
    **settings: Any,
) -> ComparisonResult:
    """Trains plain and sharpened runs on the same splits from the same first weights, and compares them pair by pair.

    Args:
        data: The name of a dataset, or a dataset; a graph of your own: a :class:`sharpen.Graph`, a PyG ``Data``, the path of
            a file that holds it, or those of its nodes and its edges, ``("nodes.csv", "edges.csv")``.
        model: As in :class:`sharpen.Trial`: a name, or a model of your own.
        lam: λ: a number, several, or ``auto``: the one with the best mean validation score, 0 among them; None: what goes with the
            number of labels (:func:`sharpen.first_choice`). With ``auto`` and None so does the balance, unless it is given.
        splits: How many random splits; ``paper``: the paper's own; or splits of your own.
        seeds: How many seeds on each split; None: one, or on the paper's splits enough for ten pairs.
        device, precision: As for :func:`sharpen.train`.
        batching: How a graph is cut that does not fit in memory (:mod:`sharpen.batching`).
        folder: Where benchmark files are; None: ``$SHARPEN_DATA`` or the cache.
        columns: What the columns of your files mean, where that cannot be guessed (:class:`sharpen.files.Columns`).
        keep: A folder in which finished runs are kept until the comparison is whole: the same call goes on after them.
        progress: Whether to draw a progress bar on a terminal.
        tell: Is given a line of text before training starts.
        settings: Further fields of :class:`sharpen.Trial`. Those of the objective are the sharpened runs' alone.

    >>> result = compare("digits", lam=0.5, splits=2, hidden=8, epochs=5, device="cpu", progress=False)
    >>> result.headline
    'Sharpening (λ = 0.5) ... on digits with a GCN: ..., 2 paired splits.'
    >>> len(result.records)
    4
    """
    resolve_device(device)  # before anything that takes time
    objective = {name: settings.pop(name) for name in OBJECTIVE if name in settings}
    for name in settings.keys() - Trial.__dataclass_fields__:
        near = did_you_mean(name, Trial.__dataclass_fields__)
        raise InputError(f"there is no setting {name!r}; {near}the settings are the fields of sharpen.Trial")
    plain = Trial(model=model, **settings)
    sharp = replace(plain, **objective)
    chosen_by_validation = isinstance(lam, str)
    lams = checked_lams(lam, zero_is_plain=not sharp.balance and not sharp.lam_labeled) if lam is not None else ()
    if seeds is not None and seeds < 1:
        raise InputError(f"is {seeds}; give a number of at least 1", field="seeds")
    number = splits if isinstance(splits, int) and not isinstance(splits, bool) else None
    if splits != "paper" and (isinstance(splits, str | bool) or (number is not None and number < 1)):
        way_out = "give a number of at least 1, or paper for the paper's own splits"
        raise InputError(f"is {splits!r}", field="splits", hint=way_out)
    own = None if isinstance(splits, int | str) else splits
    data = graph_from_paths(data, columns, tell)
    dataset = load_dataset(data, folder) if isinstance(data, str) else as_dataset(data, own)
    if own is not None and isinstance(data, str | Dataset):
        raise InputError("splits of your own go with a graph of your own; give dataset.graph with them")
    pairs, notes = plan_pairs(dataset, number, seeds)
    notes += few_pairs(pairs)
    if lam is None or chosen_by_validation:
        sharp, lams, told = advised(sharp, lams, dataset, pairs, "balance" in objective)
        notes += told
    blueprint = blueprint_of(dataset.graph.num_features, dataset.graph.num_classes, resolve(plain, dataset))
    variants = [plain, *(replace(sharp, lam=value) for value in lams)]
    trials = [replace(variant, split=split, seed=seed) for variant in variants for split, seed in pairs]
    kept = None if keep is None else checkpoint_folder(keep, [replace(each, dataset=dataset.name) for each in trials])
    start = time.perf_counter()
    with joined(device) as (ranks, where):
        decide = partial(_cut, batching, blueprint, dataset, where, precision, ranks.world, kept)
        cut, note = ranks.decided(decide)
        notes += [f"{note[0].upper()}{note[1:]}."] if note else []
        tell(f"Training {len(trials)} runs on {dataset.name}: {len(pairs)} pairs, {len(lams)} λ ...")
        if note:
            tell(note)
        if cut and batching == "auto" and ranks.writes and kept is not None:
            write_decision(kept / "batching.json", [cut, note])
        trials = [resolve(replace(each, batching=cut), dataset) for each in trials]
        records = _trained(dataset, trials, blueprint, kept, where, precision, progress and ranks.writes, tell)
    notes += [f"{text[0].upper()}{text[1:]}." for text in dict.fromkeys(map(way_note, records)) if text]
    size = len(pairs)
    shared = {key: value for key, value in asdict(records[size].trial).items() if key not in ("split", "seed")}
    frames = [to_frame(records[i : i + size]) for i in range(0, len(records), size)]
    used = [own["class_use_last"].tolist() for own in frames]
    collapsed = (collapse_note(f"λ = {lam:g}", own, used[0]) for lam, own in zip(lams, used[1:], strict=True))
    notes += [note for note in collapsed if note]
    return ComparisonResult(
        comparison=compare_lams(
            frames[0], dict(zip(lams, frames[1:], strict=True)), metric=dataset.metric, choose=chosen_by_validation
        ),
        dataset=dataset,
        records=records,
        lams=lams,
        pairs=pairs,
        notes=notes,
        # What all runs share; a lam_labeled of None means -lam.
        settings=shared | {"lam": list(lams), "lam_labeled": sharp.lam_labeled},
        precision=precision,
        seconds=time.perf_counter() - start,
        kept=kept,
    )


def _trained(
    dataset: Dataset,
    trials: Sequence[Trial],
    blueprint: Blueprint,
    kept: Path | None,
    device: str,
    precision: str,
    progress: bool,
    tell: Callable[[str], None],
) -> list[Record]:
    """The records of all trials; those that were kept are not trained again."""
    about = {
        "fingerprint": dataset.graph.fingerprint,
        "splits": {name: dataset.splits[name].id for name in {str(trial.split) for trial in trials}},
        "metric": dataset.metric,
        "precision": precision,
        "model_digest": blueprint.digest,
    }
    done = {} if kept is None else kept_records(kept, about)
    left = [trial for trial in trials if trial.id not in done]
    if len(left) < len(trials):
        tell(f"{len(trials) - len(left)} of them are done already ({kept})")
    new = train(
        dataset,
        left,
        device=device,
        precision=precision,
        progress=progress,
        checkpoints=kept,
        on_records=lambda records: None if kept is None else keep_records(kept, records, about),
    )
    done |= {record.trial.id: record for record in new}
    return [done[trial.id] for trial in trials]


def _cut(
    batching: str, blueprint: Blueprint, dataset: Dataset, device: str, precision: str, world: int, kept: Path | None
) -> tuple[str | None, str]:
    """How the graph is cut, None for not at all; and a sentence about it."""
    # What was chosen by the memory that was free stays chosen until the runs are done.
    before = read_decision(kept / "batching.json") if batching == "auto" and kept is not None else None
    if before:
        return before[0], before[1]
    if blueprint.network is None:
        if batching not in ("auto", "full"):
            why = f"is {batching!r}, but {blueprint.title} sees the whole graph at once"
            raise InputError(why, field="batching", hint="leave it out")
        return None, ""
    where = resolve_device(device)
    return choose_batching(batching, blueprint.network, dataset.graph, where, arithmetic_type(precision), world)


def _write_traces(path: Path, records: Sequence[Record]) -> None:
    """The traces of all records: one array [runs, epochs] per name, its rows in the order of the records.

    >>> import tempfile
    >>> record = Record(Trial(), 0.8, 0.7, 1, "ok", 0.5, "cpu", "float32", traces={"loss": np.array([0.9, 0.5])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _write_traces(Path(folder, "traces.npz"), [record, record])
    ...     np.load(Path(folder, "traces.npz"))["loss"].shape
    (2, 2)
    """
    arrays = {name: np.stack([record.traces[name] for record in records]) for name in records[0].traces}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]  # the stubs mix the names up with its own options
