"""Which column is which: named by the user, or guessed from the names that people give."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sharpen.errors import InputError, as_given, called

IDS = ("id", "node_id", "nodeid", "node", "paper_id", "user_id", "item_id", "key", "uid", "uuid", "identifier", "name")
LABELS = ("label", "labels", "class", "classes", "y", "target", "class_label", "category", "subject", "topic")
ENDS = (
    ("source", "target"), ("src", "dst"), ("source_id", "target_id"), ("src_id", "dst_id"), ("from", "to"),
    ("from_id", "to_id"), ("from_node", "to_node"), ("u", "v"), ("head", "tail"), ("citing", "cited"),
    ("node1", "node2"), ("id1", "id2"), ("id_1", "id_2"), ("node_1", "node_2"), ("start", "end"), ("source", "dest"),
    ("i", "j"), ("a", "b"), ("von", "nach"),
)  # fmt: skip
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
WEIGHTS = ("weight", "edge_weight")


@dataclass(frozen=True)
class Columns:
    """What the columns of a node and an edge table mean; None is guessed from the names.

    Args:
        id: The node column that names the nodes.
        label: The node column that holds the classes, blank where unknown. ``""``: there is none, and none is guessed.
        source, target: The edge columns that name the two ends.
        weight: The edge column of weights.
        features: The node columns to learn from. None: all others.
        ignore: Node columns to leave out.
        decimal_commas: Node columns whose numbers had decimal commas when a model was fitted, to be read so again wherever
            the file can hold them; others are found.
        weight_comma: Whether the weights had.
        unknown_labels: Labels that mean that the class is not known. None: common words for it, such as ``n/a``; empty: none,
            so that every word is a class.
        strict: Whether an edge with an end that is no node is refused; otherwise it is left out, and a note says so.

    >>> Columns(id="paper_id").id
    'paper_id'
    """

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    decimal_commas: Sequence[str] = ()
    weight_comma: bool = False
    unknown_labels: Sequence[str] | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        for field in ("features", "ignore", "unknown_labels"):
            value = getattr(self, field)
            if isinstance(value, str):
                raise InputError(f"is one text, {value!r}; give a list of column names", field=field)
        for field in ("id", "source", "target", "weight"):  # an empty shell variable is no name
            if getattr(self, field) == "":
                raise InputError("is empty; name a column, or leave it out", field=field)


def id_by_name(names: Sequence[str]) -> str | None:
    """The column that names the nodes, by what it is called; None if there is none.

    >>> id_by_name(["title", "Paper_ID"]), id_by_name(["title", "year"])
    ('Paper_ID', None)
    """
    return _first(names, IDS) or next((n for n in names if re.search(r"(_|\b)id$|[a-z]Id$|[a-z]ID$", n, re.I)), None)


def no_id(file: str, names: Sequence[str], *, label_missing: bool = False) -> InputError:
    """The error for a table of which no column can be told to name the nodes; nor, if ``label_missing``, their classes.

    >>> raise no_id("nodes.csv", ["title", "year"])
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv: no column looks like the id of a node (it has title, year); name it with id=...
    """
    what, hint = "the id of a node", f"name it with {as_given('id')}"
    if label_missing:
        what = "the id of a node, and none like a label"
        hint = f"name them with {as_given('id')} and {as_given('label')}"
    has = f"(it has {listed(names)}){_perhaps(names)}"
    return InputError(f"no column looks like {what} {has}", place=file, hint=hint)


def guess_label(names: Sequence[str], taken: str) -> str | None:
    """The column that holds the classes, by its name; None if there is none.

    >>> guess_label(["id", "Class"], taken="id"), guess_label(["id", "age"], taken="id")
    ('Class', None)
    """
    return _first([name for name in names if name != taken], LABELS)


def guess_ends(names: Sequence[str]) -> tuple[str, str] | None:
    """The columns of the two ends of an edge, by their names; None if there are none.

    >>> guess_ends(["weight", "src", "dst"]), guess_ends(["age", "height"])
    (('src', 'dst'), None)
    """
    found = ((_first(names, (source,)), _first(names, (target,))) for source, target in ENDS)
    return next(((source, target) for source, target in found if source and target), None)


def choose_ends(
    file: str,
    names: Sequence[str],
    columns: Columns,
    share_of_ids: Callable[[str], float] = lambda name: 0.0,
) -> tuple[str, str, bool]:
    """The columns of the two ends of an edge, and whether they were guessed: from names, otherwise from what they hold.

    Args:
        share_of_ids: The share of a column's cells that name a node.

    >>> choose_ends("edges.csv", ["src", "dst", "w"], Columns())
    ('src', 'dst', True)
    >>> choose_ends("edges.csv", ["one", "two", "three"], Columns(), {"one": 1.0, "two": 1.0, "three": 0.0}.__getitem__)
    ('one', 'two', True)
    >>> choose_ends("edges.csv", ["one", "two", "three"], Columns(source="one"))
    Traceback (most recent call last):
    sharpen.errors.InputError: edges.csv: source is 'one', but the other end is not clear (it has one, two, three); ...
    """
    source = None if columns.source is None else find(file, names, columns.source, "source")
    target = None if columns.target is None else find(file, names, columns.target, "target")
    if source and target:
        if source == target:
            both = f"and {called('target')} are both {source!r}"
            raise InputError(f"{both}; name two columns", field="source", place=file)
        return source, target, False
    if len(names) < 2:
        one = f"{file} has one column, {names[0]!r}, but an edge has two ends"
        raise InputError(f"{one}; separate the cells with comma, tab, semicolon or bar")
    guess = guess_ends(names)
    given = source or target
    if given is None:
        ends: Sequence[str] = guess or names
        if len(ends) != 2:  # the two that hold mostly ids of nodes, as some ends may be unknown
            others = [name for name in names if name not in (columns.weight, guess_weight(names))]
            ends = [name for name in others if share_of_ids(name) > 0.5]
        if len(ends) != 2:
            what = f"no two columns look like the ends of an edge (it has {listed(names)}){_perhaps(names)}"
            raise InputError(what, place=file, hint=f"name them with {as_given('source')} and {as_given('target')}")
        return ends[0], ends[1], True
    rest = [name for name in (guess if guess and given in guess else names) if name != given]
    if len(rest) != 1:
        field, other = ("source", "target") if source else ("target", "source")
        what = f"is {given!r}, but the other end is not clear (it has {listed(names)})"
        raise InputError(what, field=field, place=file, hint=f"name it with {as_given(other)}")
    return (given, rest[0], True) if source else (rest[0], given, True)


def guess_weight(names: Sequence[str]) -> str | None:
    """The column of edge weights, by its name; None if there is none.

    >>> guess_weight(["source", "target", "Weight"])
    'Weight'
    """
    return _first(names, WEIGHTS)


def names_nodes(name: str) -> bool:
    """Whether a column of that name holds ids, of a node, an edge or an end of one.

    >>> names_nodes("dst"), names_nodes("Id"), names_nodes("similarity")
    (True, True, False)
    """
    return _first([name], [*IDS, *(end for pair in ENDS for end in pair)]) is not None


def find(file: str, names: Sequence[str], wanted: str, field: str) -> str:
    """The column that the user named, or an InputError with the nearest name there is.

    >>> find("nodes.csv", ["id", "label"], "lable", "label")
    Traceback (most recent call last):
    sharpen.errors.InputError: nodes.csv has no column 'lable' (label=...); did you mean 'label'?
    """
    if wanted in names:
        return wanted
    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), lower, n=1, cutoff=0.5)
    hint = f"did you mean {lower[near[0]]!r}?" if near else f"it has {listed(names)}"
    raise InputError(f"{file} has no column {wanted!r} ({as_given(field)})", hint=hint)


def is_number(text: str) -> bool:
    """Whether text is a plain decimal number.

    >>> is_number("-1.5e3"), is_number("1a")
    (True, False)
    """
    return re.fullmatch(NUMBER, text.strip()) is not None


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a row, the first few.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(name if len(name) <= 40 else name[:37] + "..." for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _first(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    lower: dict[str, str] = {}
    for name in names:
        lower.setdefault(name.lower().replace(" ", "_").lstrip("~:"), name)
    return next((lower[name] for name in wanted if name in lower), None)


def _perhaps(names: Sequence[str]) -> str:
    if len(names) == 1 and re.search(r"\W", names[0]):
        return ", perhaps because its cells are not separated by comma, tab, semicolon or bar"
    return ", perhaps because line 1 is data and not a header" if all(is_number(name) for name in names) else ""
