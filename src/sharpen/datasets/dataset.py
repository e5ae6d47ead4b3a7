"""A graph together with how it is scored and the splits it is scored on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sharpen.checks import Array
from sharpen.datasets.catalog import CATALOG
from sharpen.errors import InputError, check_word
from sharpen.graph import Graph
from sharpen.graph.splits import Split, draw_split

_METRICS = ("accuracy", "balanced-accuracy", "roc-auc")


class NoSuchSplit(InputError, KeyError):
    """A name that is neither given nor can be drawn; a KeyError too, so that ``name in splits`` and ``get`` work.

    >>> Splits().get("public") is None
    True
    """

    __str__ = Exception.__str__  # KeyError would print the quotes of a repr


class Splits(Mapping[str, Split]):
    """The splits of one graph by name: those that are given, and any that :func:`sharpen.splits.draw_split` can draw.

    A split is drawn when it is first asked for, and kept. Iteration goes over the names that are known beforehand: the
    given ones, then the paper's.

    Args:
        given: Splits that exist as such, by name or as a plain list.
        y: Classes to draw from, −1 for unknown. None: nothing is drawn.
        paper: Names of the splits that the paper uses, in order. None: the given ones.
        paired: What to draw for paired comparisons, with ``{seed}`` for the seed. None: the given ones, else
            ``stratified-60-20-20-seed{seed}``.

    >>> splits = Splits([Split("mine", [0], [1], [2])], y=[0, 1] * 5)
    >>> list(splits), splits["ratio-50-30-20-seed4"]
    (['mine'], Split('ratio-50-30-20-seed4', train=5, val=3, test=2))
    >>> splits.given, splits.paper
    (('mine',), ('mine',))
    >>> splits["yours"]
    Traceback (most recent call last):
    sharpen.datasets.dataset.NoSuchSplit: split 'yours' cannot be drawn; write it like 'balanced-20-500-1000-seed0' or
    'ratio-60-20-20-seed0' or 'stratified-60-20-20-seed0' (given splits: mine)
    """

    def __init__(
        self,
        given: Mapping[str, Split] | Iterable[Split] = (),
        y: Array | None = None,
        *,
        paper: Sequence[str] | None = None,
        paired: str | None = None,
    ) -> None:
        named = list(given.items()) if isinstance(given, Mapping) else [(split.name, split) for split in given]
        self._given = dict(named)
        if len(self._given) < len(named):
            names = [name for name, _ in named]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two of the given splits are called {twice!r}; give every split its own name")
        self._y = y
        self._paper = tuple(self._given if paper is None else paper)
        self._paired = paired if paired is not None or self._given else "stratified-60-20-20-seed{seed}"
        self._drawn: dict[str, Split] = {}

    @classmethod
    def known(cls, name: str, y: Array, given: Iterable[Split] = ()) -> Splits:
        """The splits of a dataset that the catalog knows, as it calls them.

        >>> Splits.known("digits", [0, 1] * 5).paper
        ('balanced-5-500-1000-seed0',)
        """
        names = CATALOG[name].splits
        return cls(given, y, paper=names.paper, paired=names.paired)

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the given splits, in order."""
        return tuple(self._given)

    @property
    def paper(self) -> tuple[str, ...]:
        """The names of the paper's splits, in order."""
        return self._paper

    def paired(self, n: int = 10) -> tuple[Split, ...]:
        """n splits for a paired comparison; fewer if there are only fewer, and none can be drawn.

        >>> Splits(y=[0, 1] * 5).paired(2)[1]
        Split('stratified-60-20-20-seed1', train=6, val=2, test=2)
        >>> len(Splits(y=[0, 1] * 5).paired())
        10
        """
        return tuple(self[name] for name in self.paired_names(n))

    def paired_names(self, n: int) -> tuple[str, ...]:
        """Their names; nothing is drawn.

        >>> Splits(y=[0, 1] * 5).paired_names(2)
        ('stratified-60-20-20-seed0', 'stratified-60-20-20-seed1')
        >>> Splits([Split("mine", [0], [1], [2])]).paired_names(2)
        ('mine',)
        """
        if n < 1:
            raise InputError(f"is {n}; give 1 or more splits", field="n")
        if self._paired is None:
            return self.given[:n]
        return tuple(self._paired.format(seed=seed) for seed in range(n))

    def __getitem__(self, name: str) -> Split:
        if name in self._given:
            return self._given[name]
        if name not in self._drawn:
            given = f" (given splits: {', '.join(self._given) or 'none'})"
            if self._y is None:
                raise NoSuchSplit(f"split {name!r} is not given, and there are no labels to draw it; give y{given}")
            try:
                self._drawn[name] = draw_split(name, self._y)
            except InputError as error:
                raise NoSuchSplit(f"{error}{given}") from error
        return self._drawn[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._given, *self._paper)))

    def __len__(self) -> int:
        return len(set(self._given) | set(self._paper))

    def __repr__(self) -> str:
        return f"Splits({', '.join(self)})"


@dataclass(frozen=True, eq=False, init=False)
class Dataset:
    """A graph, its metric and its splits: what a comparison runs on.

    Args:
        name: What to call it; the name of a registered dataset stands for the paper's settings on it.
        graph: The graph.
        metric: ``"accuracy"``; ``"balanced-accuracy"``, in which every class counts the same; or ``"roc-auc"`` of the
            probability of class 1 (two classes).
        splits: None: none is given, all that its labels allow can be drawn.

    >>> graph = Graph(x=[[1.0], [2.0], [3.0], [4.0]], edge_index=[[0, 1, 2], [1, 2, 3]], y=[0, 1, 0, 1])
    >>> Dataset("mine", graph).splits["ratio-50-25-25-seed0"]
    Split('ratio-50-25-25-seed0', train=2, val=1, test=1)
    >>> Dataset("mine", graph, splits=Splits([Split("mine", [0, 1], [2], [9])]))
    Traceback (most recent call last):
    sharpen.errors.InputError: split 'mine' holds node 9, but there are only 4 nodes; give a split of this graph, with
    nodes from 0 to 3
    """

    name: str
    graph: Graph
    metric: str
    splits: Splits

    def __init__(self, name: str, graph: Graph, metric: str = "accuracy", splits: Splits | None = None) -> None:
        check_word("metric", metric, _METRICS)
        if metric == "roc-auc" and graph.num_classes != 2:
            why = f"is 'roc-auc', which needs two classes, but {name} has {graph.num_classes}"
            raise InputError(why, field="metric", hint="give metric='accuracy'")
        if splits is None:
            splits = Splits(y=graph.y)
        for given in splits.given:  # one whose class is unknown could neither be learnt from nor scored
            for part, mask in zip(("train", "val", "test"), splits[given].masks(graph.num_nodes), strict=True):
                for node in (mask & (graph.y < 0)).nonzero()[:1, 0].tolist():
                    what = f"split {given!r} has node {node} in {part}, but its class is unknown"
                    raise InputError(f"{what}; take it out of the split, or give its class in y")
        for field, value in (("name", name), ("graph", graph), ("metric", metric), ("splits", splits)):
            object.__setattr__(self, field, value)
