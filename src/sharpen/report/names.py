"""How datasets and models are written for people."""

from sharpen.models.registry import model_info

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
    return model_info(name).title


def cell_title(dataset: str, model: str) -> str:
    """A dataset with a model.

    >>> cell_title("cora", "gcn")
    'Cora GCN'
    """
    return f"{dataset_title(dataset)} {model_title(model)}"


def counted_model(name: str, datasets: int) -> str:
    """A model with the number of datasets that something is told of.

    >>> counted_model("gcn", 10), counted_model("gcn", 1)
    ('GCN (10 datasets)', 'GCN (1 dataset)')
    """
    return f"{model_title(name)} ({datasets} {plural('dataset', datasets)})"


def with_every_lambda(datasets: int) -> str:
    """The datasets whose curves over λ are complete, where those of others are not.

    >>> with_every_lambda(6)
    '6 with every λ'
    """
    return f"{datasets} with every λ"


def plural(word: str, count: int) -> str:
    """A word as it is after a number.

    >>> plural("cell", 1), plural("cell", 2)
    ('cell', 'cells')
    """
    return word if count == 1 else f"{word}s"
