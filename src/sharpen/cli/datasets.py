"""``sharpen datasets``: what can be loaded, and from where."""

import json
import sys
from dataclasses import asdict

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sharpen.cli.options import DataFolder, JsonFlag

_COUNTS = ("nodes", "edges", "features", "classes")


def datasets(
    data: DataFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """List the datasets and where they are.

    A dataset that is not on this machine is downloaded to the per-user cache on first use.
    """
    from sharpen.datasets import find_dataset, list_datasets  # not above: it imports torch, and help should not wait

    found = {info.name: find_dataset(info.name, data) for info in list_datasets()}
    if as_json:
        rows = [
            {key: value for key, value in asdict(info).items() if key not in ("reader", "splits")}
            | {"folder": None if found[info.name] is None else str(found[info.name])}
            for info in list_datasets()
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    for name in _COUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("metric", "licence", "source", "on this machine"):
        table.add_column(name, overflow="fold")
    for info in list_datasets():
        counts = (f"{getattr(info, name):,}" for name in _COUNTS)
        table.add_row(info.name, *counts, info.metric, info.licence, info.source, str(found[info.name] or "no"))
    # In a file or a pipe one dataset is one line.
    Console(width=None if terminal else 400).print(table)
