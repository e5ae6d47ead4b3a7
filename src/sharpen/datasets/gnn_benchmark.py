"""Amazon Computers and Photo (goods bought together), Coauthor CS and Physics (authors who wrote together).

From https://github.com/shchur/gnn-benchmark. Every feature says whether a word occurs; rows are divided by their sum,
as PyG's ``NormalizeFeatures`` does. PyG's own readers make the features dense, which takes 1.1 GB for Physics; here
they are never dense. The one fixed 60/20/20 split of each graph is from https://github.com/LUOyk1999/tunedGNN.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from sharpen.datasets.arrays import both_directions, read_arrays
from sharpen.datasets.dataset import Dataset, Splits
from sharpen.datasets.download import WAY_OUT, Folder, RemoteFile, get_file
from sharpen.errors import told_as
from sharpen.graph import Graph
from sharpen.graph.split_files import load_split

_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_SPLITS_URL = (
    "https://raw.githubusercontent.com/LUOyk1999/tunedGNN/23f9604e8b13a9a6d3faa2f691cd844006979153/medium_graph/data"
)

_ARRAYS = (
    *(f"{matrix}_{part}" for matrix in ("attr", "adj") for part in ("data", "indices", "indptr", "shape")),
    "labels",
)

# No checksums here: copies without the pickled arrays beside the graph are about, and as good.
GRAPHS = {
    "computer": "amazon/Computers/raw/amazon_electronics_computers.npz",
    "photo": "amazon/Photo/raw/amazon_electronics_photo.npz",
    "cs": "coauthor/CS/raw/ms_academic_cs.npz",
    "physics": "coauthor/Physics/raw/ms_academic_phy.npz",
}

_SPLITS = {
    "computer": ("amazon-computer", "dff698aba1dd30b8bd7d1dca65c60b1f8d9027d950e07a23e86dcbf16c539f24"),
    "photo": ("amazon-photo", "0609f6ab15ddabfe33a34f10d960d09499e634472f72104abb1f3be858127432"),
    "cs": ("coauthor-cs", "b8c46a38d93b1f9d6b8b8ab944d870e8d44ccdde0639188681e0d38212480ec5"),
    "physics": ("coauthor-physics", "2034eb90f5ff80eee0e371cc05b20690a16786fb085924b9166c83361fbbcb39"),
}

# Written here, because some copies of the files hold them only as a pickle.
CLASS_NAMES = {
    "computer": (
        "Desktops", "Data Storage", "Laptops", "Monitors", "Computer Components", "Video Projectors", "Routers",
        "Tablets", "Networking Products", "Webcams",
    ),
    "photo": (
        "Film Photography", "Digital Cameras", "Binoculars & Scopes", "Lenses", "Tripods & Monopods",
        "Video Surveillance", "Lighting & Studio", "Flashes",
    ),
    "cs": (
        "bioinformatics", "machine_learning", "computer_vision", "NLP", "graphics", "networks", "security",
        "databases", "data_mining", "game_theory", "HCI", "information_theory", "medical_informatics", "robotics",
        "theoretical_cs",
    ),
    "physics": ("phys rev d", "phys rev a", "phys rev b", "phys rev c", "phys rev e"),
}  # fmt: skip


def files(name: str) -> tuple[RemoteFile, ...]:
    """The graph, and its split.

    >>> [file.path for file in files("cs")]
    ['coauthor/CS/raw/ms_academic_cs.npz', 'splits/cs.npz']
    """
    upstream, sha256 = _SPLITS[name]
    return (
        RemoteFile(GRAPHS[name], f"{_URL}/{Path(GRAPHS[name]).name}", holds=tuple(f"{array}.npy" for array in _ARRAYS)),
        RemoteFile(f"splits/{name}.npz", f"{_SPLITS_URL}/{upstream}_split.npz", sha256),
    )


def load(name: str, root: Folder = None) -> Dataset:
    """One of the four graphs with its fixed split; features row-normalised and sparse."""
    graph_file, split_file = (get_file(file, root) for file in files(name))
    arrays = read_arrays(graph_file, _ARRAYS)
    words, edges = _matrix(graph_file, arrays, "attr"), _matrix(graph_file, arrays, "adj")
    words.sum_duplicates()
    words.eliminate_zeros()
    words.data = np.ones(words.nnz, dtype=np.float32)
    counts = np.diff(words.indptr)
    words.data /= np.repeat(counts, counts).astype(np.float32)
    row, col = edges.nonzero()
    apart = row != col
    edge_index = torch.from_numpy(np.stack([row[apart], col[apart]]).astype(np.int64))
    graph = Graph(
        x=words,
        edge_index=both_directions(edge_index),
        y=arrays["labels"],
        class_names=CLASS_NAMES[name],
        name=name,
    )
    return Dataset(name, graph, splits=Splits.known(name, graph.y, [load_split(split_file, name="given-0")]))


def _matrix(path: Path, arrays: dict[str, np.ndarray], prefix: str) -> scipy.sparse.csr_array:
    parts = tuple(arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    with told_as(f"{path}: {prefix}_data, {prefix}_indices and {prefix}_indptr make no matrix", WAY_OUT):
        return scipy.sparse.csr_array(parts, shape=tuple(arrays[f"{prefix}_shape"].tolist()))
