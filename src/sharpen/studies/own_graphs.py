"""Graphs of the user's own in a study: an entry of ``datasets`` that names files.

.. code-block:: yaml

    datasets:
      - cora
      - {nodes: people.csv, edges: friends.csv, label: party, ignore: [name], metric: balanced-accuracy}

Paths are relative to the study's file. The graph is read when the study is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sharpen.datasets.catalog import CATALOG
from sharpen.errors import InputError
from sharpen.studies.protocol import one_of
from sharpen.studies.yaml_source import Source, Where, shown

_COLUMNS = ("id", "label", "source", "target", "weight", "features", "ignore", "unknown_labels", "strict")
_KEYS = ("name", "nodes", "edges", "metric", "splits", *_COLUMNS)


def dataset_names(source: Source, where: Where, given: Any) -> tuple[str, ...]:
    """The datasets of a study by name; graphs of the user's own are read, and have a name from then on."""
    if isinstance(given, list):
        given = [_added(source, (*where, i), one) if isinstance(one, dict) else one for i, one in enumerate(given)]
    return source.words(where, given, tuple(CATALOG), "dataset")


def _added(source: Source, where: Where, entry: dict[str, Any]) -> str:
    # Not above: what a study declares can be looked at without torch.
    from sharpen.datasets import Dataset, Splits
    from sharpen.datasets.registry import add_dataset
    from sharpen.files import Columns
    from sharpen.files.dataset import read_dataset

    entry = source.mapping(where, entry)
    source.keys(where, entry, _KEYS)
    if "nodes" not in entry:
        problem = "a graph of your own has a file of nodes; give it as {nodes: nodes.csv, edges: edges.csv}"
        raise source.fail(where, problem)
    folder = Path(source.name).parent
    paths = {key: folder / source.text((*where, key), entry[key]) for key in ("nodes", "edges") if key in entry}
    columns = Columns(**{key: _column(source, (*where, key), entry[key]) for key in _COLUMNS if key in entry})
    try:
        dataset = read_dataset(paths["nodes"], paths.get("edges"), columns, entry.get("metric", "accuracy"))
    except InputError as error:
        raise source.fail(where, str(error)) from error
    name, splits = dataset.name, dataset.splits
    if "name" in entry:
        name = source.text((*where, "name"), entry["name"])
        if name in CATALOG:
            raise source.fail((*where, "name"), f"name is {name!r}, which is a dataset of its own; give another")
    if "splits" in entry:
        pattern = f"{source.text((*where, 'splits'), entry['splits'])}-seed{{seed}}"
        splits = Splits(y=dataset.graph.y, paired=pattern)
        try:
            splits.paired(1)
        except InputError as error:
            raise source.fail((*where, "splits"), str(error)) from error
    return add_dataset(Dataset(name, dataset.graph, dataset.metric, splits))


def _column(source: Source, where: Where, value: Any) -> Any:
    """A name of a column, or a list of them."""
    if where[-1] == "strict":
        return source.flag(where, value)
    if where[-1] in ("features", "ignore", "unknown_labels"):
        right, wanted = isinstance(value, list) and all(isinstance(word, str) for word in value), "a list of names"
    else:
        right, wanted = isinstance(value, str) and bool(value), "the name of a column"
    if not right:
        raise source.fail(where, f"{where[-1]} is {shown(value)}; give {wanted}")
    return value


def known_as(word: str) -> str:
    """The name of the dataset that a word stands for: the name itself, or what a study calls a graph of the user's own.

    >>> known_as("cora")
    'cora'
    """
    own = [info.name for info in CATALOG.values() if not info.reader and info.title == word]
    return own[-1] if word not in CATALOG and own else one_of("dataset", word, tuple(CATALOG))
