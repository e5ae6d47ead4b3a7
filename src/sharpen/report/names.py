"""How datasets and models are written for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharpen.studies.curves import Band

DATASET_TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "computer": "Computer",
    "photo": "Photo",
    "cs": "CS",
    "physics": "Physics",
    "wikics": "WikiCS",
    "squirrel": "Squirrel",
    "chameleon": "Chameleon",
    "amazon-ratings": "Amazon-Ratings",
    "roman-empire": "Roman-Empire",
    "minesweeper": "Minesweeper",
    "ogbn-arxiv": "ogbn-arxiv",
    "digits": "Digits",
}
MODEL_TITLES = {"mlp": "MLP", "gcn": "GCN", "sage": "SAGE", "gat": "GAT"}
METRIC_TITLES = {"accuracy": "accuracy", "roc-auc": "ROC-AUC"}


def dataset_title(name: str) -> str:
    """A dataset as tables and figures write it.

    >>> dataset_title("citeseer"), dataset_title("mine")
    ('CiteSeer', 'mine')
    """
    return DATASET_TITLES.get(name, name)


def model_title(name: str) -> str:
    """A model as tables and figures write it.

    >>> model_title("gcn")
    'GCN'
    """
    return MODEL_TITLES.get(name, name)


def cell_title(dataset: str, model: str) -> str:
    """A dataset with a model.

    >>> cell_title("cora", "gcn")
    'Cora GCN'
    """
    return f"{dataset_title(dataset)} {model_title(model)}"


def band_title(band: Band) -> str:
    """A model with the number of datasets its band over λ is made of.

    >>> from sharpen.studies.curves import Band
    >>> ends = ((0.0, 0.5),) * 4
    >>> band_title(Band("gcn", *ends, ("cora", "photo", "cs", "physics")))
    'GCN (4 datasets)'
    >>> few = Band("gcn", *((-0.5, 0.0),) * 4, ("cora", "photo", "cs"))
    >>> band_title(Band("gcn", *ends, ("cora", "photo", "cs", "physics"), (few,)))
    'GCN (4 datasets; 3 below λ = 0)'
    """
    counts = [f"{len(band.datasets)} {plural('dataset', len(band.datasets))}"]
    for stretch in band.stretches:
        if stretch.lams[0] < band.lams[0]:
            where = f"below λ = {band.lams[0]:g}"
        elif stretch.lams[-1] > band.lams[-1]:
            where = f"above λ = {band.lams[-1]:g}"
        else:
            where = f"between λ = {stretch.lams[0]:g} and {stretch.lams[-1]:g}"
        counts.append(f"{len(stretch.datasets)} {where}")
    return f"{model_title(band.model)} ({'; '.join(counts).replace('-', '−')})"


def plural(word: str, count: int) -> str:
    """A word as it is after a number.

    >>> plural("cell", 1), plural("cell", 2)
    ('cell', 'cells')
    """
    return word if count == 1 else f"{word}s"
