"""ogbn-arxiv: papers on computer science, the mean word vector of each, and who cites whom. ogbn-products: goods bought together.

Through the optional package ``ogb``, for what it knows about its own format: its reader for a folder of raw files. Its
dataset classes are not used: they write beside the files, may ask questions on the terminal, and do not load with
torch 2.6 or newer what they wrote (https://github.com/snap-stanford/ogb/issues/497).
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from sharpen.datasets.arrays import both_directions
from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import WAY_OUT, Folder, RemoteFile, get_file
from sharpen.errors import InputError, told_as
from sharpen.graph import Graph
from sharpen.graph.splits import Split

_URL = "https://snap.stanford.edu/ogb/data/nodeproppred"
_RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")
_PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class _Archive:
    """One published archive: its name, the folder of its split, its table of class names, and its checksum where that is known."""

    name: str
    split: str
    class_names: str
    sha256: str | None
    most: int

    @property
    def members(self) -> tuple[str, ...]:
        parts = (f"split/{self.split}/{part}.csv.gz" for part in _PARTS)
        return (*(f"raw/{part}.csv.gz" for part in _RAW), *parts, self.class_names)


_ARCHIVES = {
    "ogbn-arxiv": _Archive(
        "arxiv",
        "time",
        "mapping/labelidx2arxivcategeory.csv.gz",  # as upstream spells it
        "49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276",
        200 * 2**20,
    ),
    "ogbn-products": _Archive("products", "sales_ranking", "mapping/labelidx2productcategory.csv.gz", None, 2 * 2**30),
}


def files(name: str) -> tuple[RemoteFile, ...]:
    """The one archive, as published.

    >>> files("ogbn-arxiv")[0].path
    'ogb/arxiv.zip'
    """
    archive = _ARCHIVES[name]
    members = tuple(f"{archive.name}/{member}" for member in archive.members)
    place, url = f"ogb/{archive.name}.zip", f"{_URL}/{archive.name}.zip"
    return (RemoteFile(place, url, archive.sha256, members, archive.most),)


def load(name: str, root: Folder = None) -> Dataset:
    """The graph, its edges in both directions, with its own split."""
    with told_as(f"{name} needs the package ogb", 'pip install "graph-sharpen[ogb]"', ImportError):
        from ogb.io.read_graph_raw import read_csv_graph_raw
    known, archive = _ARCHIVES[name], get_file(files(name)[0], root)
    with tempfile.TemporaryDirectory() as unpacked:
        folder = Path(unpacked) / known.name
        try:
            with zipfile.ZipFile(archive) as members:
                for member in known.members:
                    members.extract(f"{known.name}/{member}", unpacked)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # it chats
                raw = read_csv_graph_raw(str(folder / "raw"))[0]
            y = _read(folder / "raw/node-label.csv.gz")[0].to_numpy()
            split = Split(
                "given-0", *(_read(folder / f"split/{known.split}/{part}.csv.gz")[0].to_numpy() for part in _PARTS)
            )
            categories = _read(folder / known.class_names, header=0).iloc[:, 1]  # the row number is the class
        except (OSError, EOFError, LookupError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(
                f"{archive} is not the archive of {name} ({type(error).__name__}: {error}); {WAY_OUT}"
            ) from error
    graph = Graph(
        x=raw["node_feat"],
        edge_index=both_directions(torch.from_numpy(raw["edge_index"])),
        y=y,
        class_names=_class_names(categories),
        name=name,
    )
    return Dataset(name, graph, splits=Splits([split], y=graph.y))


def _read(path: Path, header: int | None = None) -> pd.DataFrame:
    return pd.read_csv(path, header=header)


def _class_names(categories: pd.Series) -> list[str]:
    """Names as people write them; a class whose category is missing, or another's too, is called by its number.

    >>> _class_names(pd.Series(["arxiv cs na", "Toys & Games", "Toys & Games", None]))
    ['cs.NA', 'Toys & Games', 'class 2', 'class 3']
    """
    names: list[str] = []
    for number, category in enumerate(categories):
        name = str(category) if isinstance(category, str) and category else f"class {number}"
        if name.startswith("arxiv "):  # "arxiv cs na" is cs.NA to its authors
            *_, archive, subject = name.split()
            name = f"{archive}.{subject.upper()}"
        names.append(f"class {number}" if name in names else name)
    return names
