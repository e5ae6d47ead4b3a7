"""Options that several commands share: the files of a graph, what their columns mean, and how predictions are written."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sharpen.cli.completion import DEVICES, PRECISIONS, offer
from sharpen.errors import InputError

_MOST_MODEL_ARGS = 1_000

of_columns = partial(
    typer.Option, rich_help_panel="Columns (guessed from their values and names; the guess is printed)"
)

NodesFile = Annotated[
    Path,
    typer.Argument(help="Node table (CSV, TSV, Parquet, JSON lines) or a graph (.npz, GraphML, GEXF, PyG Data)."),
]
EdgesFile = Annotated[
    Path | None, typer.Argument(help="Edge table; leave out if NODES has the edges, or there are none.")
]
IdColumn = Annotated[str | None, of_columns("--id", help="Column with node IDs.")]
LabelColumn = Annotated[str | None, of_columns("--label", help="Column with labels, blank where unknown.")]
SourceColumn = Annotated[str | None, of_columns("--source", help="Column with the source node.")]
TargetColumn = Annotated[str | None, of_columns("--target", help="Column with the target node.")]
WeightColumn = Annotated[
    str | None, of_columns("--weight", help="Column with edge weights; edges of weight 0 are dropped.")
]
UnknownLabel = Annotated[
    str | None,
    of_columns(
        "--unknown-label",
        help="Labels that mean unknown, as a,b; '' for none, so that each is a class.",
        show_default="n/a, none, unknown, tbd and the like",
    ),
]
Strict = Annotated[
    bool, of_columns("--strict", help="Refuse edges to unknown IDs instead of dropping them with a note.")
]
Abstain = Annotated[float | None, typer.Option(help="Leave the label blank below this probability.")]
EveryClass = Annotated[bool, typer.Option("--every-class", help="Add one probability column per class.")]
On = Annotated[
    str,
    typer.Option(
        help="Where to train: here; ray (the cluster at $RAY_ADDRESS, or a local one); or ray://HOST:PORT.",
        autocompletion=offer("here", "ray"),
    ),
]
Batching = Annotated[
    str,
    typer.Option(
        help="auto (mini-batches if the graph does not fit in memory), full, clusters, neighbors, or exactly, e.g. clusters-64-4."
    ),
]
Device = Annotated[str, typer.Option(help="auto (a GPU if available), cpu, cuda.", autocompletion=offer(*DEVICES))]

Precision = Annotated[str, typer.Option(help="float32, tf32 (on GPUs), float64.", autocompletion=offer(*PRECISIONS))]
DataFolder = Annotated[
    Path | None,
    typer.Option(help="Folder of benchmark files.", show_default="$SHARPEN_DATA", exists=True, file_okay=False),
]
Parquet = Annotated[bool, typer.Option("--parquet", help="Write predictions.parquet instead of .csv.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PageOption = Annotated[bool, typer.Option("--page/--no-page", help="Write an HTML report, page.html.")]
ModelArgs = Annotated[str | None, typer.Option(help="Further arguments of the model, as hops=5,alpha=0.2.")]


def split_names(text: str | None, needs: str | None = None) -> list[str] | None:
    """Names as a,b,c; none at all is refused where an option needs some.

    >>> split_names("a, b"), split_names(""), split_names(None)
    (['a', 'b'], [], None)
    """
    names = None if text is None else [name.strip() for name in text.split(",") if name.strip()]
    if needs and names == []:  # an empty shell variable must not start everything
        raise InputError(f"{needs} is empty; name some, or leave it out for all of the study")
    return names


def check_abstain(abstain: float | None) -> None:
    """Refuses what is no probability.

    >>> check_abstain(2.0)
    Traceback (most recent call last):
    sharpen.errors.InputError: abstain is 2.0; give a probability from 0 to 1
    """
    if abstain is not None and not 0 <= abstain <= 1:
        raise InputError(f"is {abstain}; give a probability from 0 to 1", field="abstain")


def parse_model_args(text: str | None) -> dict[str, Any] | None:
    """The value of ``--model-args``: names with values, or JSON.

    >>> parse_model_args("hops=5,alpha=0.2,norm=layer"), parse_model_args('{"widths": [8, 8]}')
    ({'hops': 5, 'alpha': 0.2, 'norm': 'layer'}, {'widths': [8, 8]})
    >>> parse_model_args("5")
    Traceback (most recent call last):
    sharpen.errors.InputError: model_args is '5'; give names with values, as hops=5,alpha=0.2, or JSON
    """
    if text is None:
        return None
    if len(text) > _MOST_MODEL_ARGS:
        raise InputError(f"has {len(text):,} characters; give at most {_MOST_MODEL_ARGS:,}", field="model_args")
    try:
        if text.lstrip().startswith("{"):
            return dict(json.loads(text))
        pairs = (part.split("=", 1) for part in text.split(","))
        return {name.strip(): yaml.safe_load(value) for name, value in pairs}
    except Exception:  # what a value that is none makes of YAML's constructors is not documented
        raise InputError(
            f"is {text[:80]!r}; give names with values, as hops=5,alpha=0.2, or JSON", field="model_args"
        ) from None
