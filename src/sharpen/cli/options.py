"""Options that several commands share: the files of a graph, what their columns mean, and how predictions are written."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sharpen.cli.completion import DEVICES, offer
from sharpen.errors import InputError

of_columns = partial(typer.Option, rich_help_panel="Columns (guessed from their names, and the guess is printed)")

NodesFile = Annotated[
    Path,
    typer.Argument(help="Table of nodes: CSV, TSV, Parquet, JSON lines; or a graph: .npz, GraphML, GEXF, PyG Data."),
]
EdgesFile = Annotated[Path | None, typer.Argument(help="Table of edges; none if NODES holds them, or there are none.")]
IdColumn = Annotated[str | None, of_columns("--id", help="Column that names the nodes.")]
LabelColumn = Annotated[str | None, of_columns("--label", help="Column of labels, blank where unknown.")]
SourceColumn = Annotated[str | None, of_columns("--source", help="Edge column of the one end.")]
TargetColumn = Annotated[str | None, of_columns("--target", help="Edge column of the other end.")]
WeightColumn = Annotated[
    str | None, of_columns("--weight", help="Edge column of weights; edges of weight 0 are left out.")
]
Abstain = Annotated[float | None, typer.Option(help="Leave the label blank where its probability is lower than this.")]
EveryClass = Annotated[bool, typer.Option("--every-class", help="Add a column with the probability of each class.")]
On = Annotated[
    str,
    typer.Option(
        help="here; ray (the cluster of $RAY_ADDRESS, else one on this machine); or ray://HOST:PORT.",
        autocompletion=offer("here", "ray"),
    ),
]
Batching = Annotated[
    str,
    typer.Option(
        help="auto (in batches if the whole graph does not fit in memory), full, clusters, neighbors; or exactly, as clusters-64-4."
    ),
]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda.", autocompletion=offer(*DEVICES))]


def check_abstain(abstain: float | None) -> None:
    """Refuses what is no probability.

    >>> check_abstain(2.0)
    Traceback (most recent call last):
    sharpen.errors.InputError: --abstain is 2.0; give a probability from 0 to 1
    """
    if abstain is not None and not 0 <= abstain <= 1:
        raise InputError(f"--abstain is {abstain}; give a probability from 0 to 1")


def parse_model_args(text: str | None) -> dict[str, Any] | None:
    """The value of ``--model-args``: names with values, or JSON.

    >>> parse_model_args("hops=5,alpha=0.2,norm=layer"), parse_model_args('{"widths": [8, 8]}')
    ({'hops': 5, 'alpha': 0.2, 'norm': 'layer'}, {'widths': [8, 8]})
    >>> parse_model_args("5")
    Traceback (most recent call last):
    sharpen.errors.InputError: --model-args is '5'; give names with values, as hops=5,alpha=0.2, or JSON
    """
    if text is None:
        return None
    try:
        if text.lstrip().startswith("{"):
            return dict(json.loads(text))
        pairs = (part.split("=", 1) for part in text.split(","))
        return {name.strip(): yaml.safe_load(value) for name, value in pairs}
    except (ValueError, yaml.YAMLError):
        raise InputError(f"--model-args is {text!r}; give names with values, as hops=5,alpha=0.2, or JSON") from None
