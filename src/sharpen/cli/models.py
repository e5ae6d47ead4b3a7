"""``sharpen models``: what can be trained, by name."""

import json
import sys
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sharpen.models.registry import REGISTRY

_COLUMNS = {
    "name": "name",
    "about": "what it computes",
    "reference": "from",
    "cost": "cost",
}


def models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the models.

    All of them can be named wherever a model is: compare, fit, bench, studies. The cost is the time of a run, a GCN's of the same
    size being 1. A model of your own is named by its file: my_net.py:MyNet.
    """
    rows = [{field: getattr(model, field) for field in ("title", *_COLUMNS)} for model in REGISTRY.values()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, padding=(0, 2, 0, 0))
    for field, title in _COLUMNS.items():
        table.add_column(title, no_wrap=field == "name", justify="right" if field == "cost" else "left")
    for row in rows:
        table.add_row(*(f"{row[field]:g}" if field == "cost" else row[field] for field in _COLUMNS))
    # In a file or a pipe one model is one line.
    Console(width=None if terminal else 400).print(table)
