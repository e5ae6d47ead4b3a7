"""ogbn-arxiv: papers on computer science, the mean word vector of each, and who cites whom.

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
from pathlib import Path

import pandas as pd
import torch

from sharpen.datasets.arrays import both_directions
from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import Folder, RemoteFile, get_file
from sharpen.errors import InputError
from sharpen.graph import Graph
from sharpen.splits import Split

URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
SHA256 = "49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276"

RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")
CLASS_NAMES = "mapping/labelidx2arxivcategeory.csv.gz"  # as upstream spells it
PARTS = ("train", "valid", "test")
MEMBERS = (*(f"raw/{part}.csv.gz" for part in RAW), *(f"split/time/{part}.csv.gz" for part in PARTS), CLASS_NAMES)


def files(name: str) -> tuple[RemoteFile, ...]:
    """The one archive, as published.

    >>> files("ogbn-arxiv")[0].path
    'ogb/arxiv.zip'
    """
    return (RemoteFile("ogb/arxiv.zip", URL, SHA256),)


def load(name: str, root: Folder = None) -> Dataset:
    """The graph, its citations in both directions, with its split by year."""
    try:
        from ogb.io.read_graph_raw import read_csv_graph_raw
    except ImportError as error:
        raise InputError(f'{name} needs the package ogb ({error}); pip install "graph-sharpen[ogb]"') from error
    archive = get_file(files(name)[0], root)
    with tempfile.TemporaryDirectory() as unpacked:
        folder = Path(unpacked) / "arxiv"
        try:
            with zipfile.ZipFile(archive) as members:
                for member in MEMBERS:
                    members.extract(f"arxiv/{member}", unpacked)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # it chats
                raw = read_csv_graph_raw(str(folder / "raw"))[0]
            y = _read(folder / "raw/node-label.csv.gz")[0].to_numpy()
            split = Split("given-0", *(_read(folder / f"split/time/{part}.csv.gz")[0].to_numpy() for part in PARTS))
            categories = _read(folder / CLASS_NAMES, header=0).iloc[:, 1]  # the row number is the class
        except (OSError, EOFError, LookupError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(
                f"{archive} is not the archive of ogbn-arxiv ({type(error).__name__}: {error}); "
                "put the published file in its place, or remove it to have it downloaded"
            ) from error
    graph = Graph(
        x=raw["node_feat"],
        edge_index=both_directions(torch.from_numpy(raw["edge_index"])),
        y=y,
        class_names=[_class_name(category) for category in categories],
        name=name,
    )
    return Dataset(name, graph, splits=Splits([split], y=graph.y))


def _read(path: Path, header: int | None = None) -> pd.DataFrame:
    return pd.read_csv(path, header=header)


def _class_name(category: str) -> str:
    """``"arxiv cs na"`` as arXiv writes it, ``"cs.NA"``."""
    *_, archive, subject = category.split()
    return f"{archive}.{subject.upper()}"
