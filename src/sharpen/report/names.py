"""How datasets, models and metrics are written and drawn for people: the one place of a report that knows it."""

from collections.abc import Collection

from sharpen.datasets.catalog import CATALOG
from sharpen.models.registry import model_info

_METRIC_TITLES = {"accuracy": "accuracy", "roc-auc": "ROC-AUC"}
# Of a name that is too long to be one, so much is shown.
_LONGEST_NAME = 120


def dataset_title(name: str) -> str:
    """A dataset as tables and figures write it.

    >>> dataset_title("citeseer"), dataset_title("mine")
    ('CiteSeer', 'mine')
    """
    return CATALOG[name].title if name in CATALOG else name


def model_title(name: str) -> str:
    """A model as tables and figures write it.

    >>> model_title("sage"), model_title("my_net.py:MyNet")
    ('SAGE', 'MyNet')
    """
    return model_info(name).title


def metric_title(name: str) -> str:
    """A metric as tables and figures write it.

    >>> metric_title("roc-auc")
    'ROC-AUC'
    """
    return _METRIC_TITLES.get(name, name)


def shortened(name: str) -> str:
    """A name as it can be shown: not without end.

    >>> len(shortened("x" * 10_000))
    120
    """
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def minus(name: str) -> str:
    """A comparison's name with a real minus sign between its sides.

    >>> minus("ts-0.25 - baseline")
    'ts-0.25 − baseline'
    """
    return name.replace(" - ", " − ")


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


def span(counts: Collection[int]) -> str:
    """Numbers from the least to the largest, the one that they all are, or that there are none.

    >>> span([5, 10, 7]), span([5, 5]), span([])
    ('5 to 10', '5', 'no')
    """
    ends = sorted({*counts})
    return "no" if not ends else f"{ends[0]}" if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"


def plural(word: str, count: int) -> str:
    """A word as it is after a number.

    >>> plural("cell", 1), plural("cell", 2)
    ('cell', 'cells')
    """
    return word if count == 1 else f"{word}s"
