"""A study as data: which cells, which variants of a trial, what to compare, and what was published about it.

A study is one YAML file. Those of the paper's tables and figures are included (``paper/*.yaml``); yours has the same keys:

.. code-block:: yaml

    title: Does sharpening help on these three graphs?
    datasets: [cora, citeseer, digits]
    models: [gcn, sage]
    trial: {epochs: 200}                                  # fields of Trial that all variants share
    variants:
      baseline: {lam: 0}
      ts-{lam}: {lam: {from: 0.05, to: 0.5, step: 0.05}}  # ten variants: ts-0.05 … ts-0.5
      shannon: {lam: 0.25, q: 1}
      slower: {lam: {of: lambda_star}, lr: {of: lr, times: 0.5}}
    baseline: baseline
    choose:
      ts-tuned: [baseline, ts-*]                          # the one of these that validation prefers
    compare:
      - ts-tuned - baseline
      - shannon - ts-0.25

A value may be one, a list, a range ``{from, to, step}``, or relative: ``{of, times, plus}`` is ``of`` × ``times`` + ``plus``, where
``of`` names the paper's value for the cell (``lambda_star``, ``lr``, ``dropout``, …);
``times`` and ``plus`` may again be lists or ranges. A norm or a batching is a word, or a list of words. A ``configuration`` is a
number: 0 for the settings that a method's authors published, 1 and more for draws from their grid (:mod:`sharpen.studies.tuning`).
Where ``models`` is ``field``, they are all that have such settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sharpen.studies.field_values import Relative, Value
from sharpen.studies.protocol import one_of
from sharpen.studies.tuning import configuration
from sharpen.trial import Trial


@dataclass(frozen=True)
class Variant:
    """One way to train: the fields of :class:`sharpen.Trial` that it sets.

    >>> Variant("ts-0.25", {"lam": 0.25}).trial("cora", "gcn").lam
    0.25
    """

    name: str
    fields: Mapping[str, Value]
    template: str = field(default="", repr=False, compare=False)
    """The key that it stands under in its file: its name, with values of which there are several left open."""

    def trial(self, dataset: str, model: str) -> Trial:
        """The trial of a cell; split and seed are still open."""
        set_ = {k: v.of_cell(k, dataset, model) if isinstance(v, Relative) else v for k, v in self.fields.items()}
        if (which := set_.pop("configuration", None)) is not None:
            set_ = configuration(dataset, model, which) | set_  # type: ignore[arg-type]
        return Trial(model=model, dataset=dataset, **set_)  # type: ignore[arg-type]  # checked when it was read


class Contrast(NamedTuple):
    """Two variants (or choices) to compare: the first minus the second.

    >>> Contrast("ts-0.25", "baseline").name
    'ts-0.25 - baseline'
    """

    variant: str
    against: str

    @property
    def name(self) -> str:
        """As ``published.csv`` writes it."""
        return f"{self.variant} - {self.against}"


@dataclass(frozen=True)
class Study:
    """A declared set of trials and the comparisons to draw from them.

    Args:
        name: The file's name without its ending.
        title: A short name for people.
        about: What the table or figure is.
        leaves_open: What the paper leaves open about it, and how it is settled here.
        published: The name of its table in ``paper/published.csv``; None if there are no numbers.
        published_runs: By model, on how many runs those rest, where that is not what the paper's protocol says.
        datasets, models: The cells: every dataset with every model.
        protocols: Which of the protocols it can be run under; ``paper`` and ``paired`` unless it says otherwise.
        runs: By dataset, how many runs per cell, where they are not as many as the protocol says.
        traces: Whether what is traced per epoch is kept.
        variants: By name, in the order of the file, lists and ranges spread out.
        baseline: The variant that others are compared with; None in a study without variants.
        choose: By name: the variants among which the mean validation score of a cell picks one.
        compare: The comparisons to draw; each side is a variant or a choice.
        skip: Cells that are left out, and why.
        reads: The study whose records this one shows, if it has no trials of its own.

    >>> from sharpen.studies import load_study
    >>> study = load_study("labeled-term")
    >>> study.compare[0].name, dict(study.variants["no-labeled-term"].fields)
    ('no-labeled-term - ts-0.25', {'lam': 0.25, 'lam_labeled': 0})
    """

    name: str
    title: str
    about: str
    leaves_open: str
    published: str | None
    published_runs: Mapping[str, int]
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    protocols: tuple[str, ...]
    runs: Mapping[str, int]
    traces: bool
    variants: Mapping[str, Variant]
    baseline: str | None
    choose: Mapping[str, tuple[str, ...]]
    compare: tuple[Contrast, ...]
    skip: Mapping[tuple[str, str], str]
    reads: str | None

    def part(self, variants: Sequence[str] | None = None, runs: int | None = None) -> Study:
        """What of it to run now: some of its variants, the first so many runs of each cell; None: all.

        Trials keep their ids, so that what is left can follow later.

        >>> from sharpen.studies import load_study
        >>> part = load_study("label-rates").part(["ts-0.25", "plain"], runs=10)
        >>> list(part.variants), part.runs["cora"]
        (['plain', 'ts-0.25'], 10)
        """
        wanted = [one_of("variant", name, tuple(self.variants)) for name in variants or self.variants]
        kept = {name: variant for name, variant in self.variants.items() if name in wanted}
        return replace(self, variants=kept, runs=self.runs if runs is None else dict.fromkeys(self.datasets, runs))
