"""What commands print: JSON for programs; tables for people, on a terminal or as plain lines."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table


def print_json(content: Any) -> None:
    """Print what JSON can hold.

    >>> print_json({"λ": 0.25})
    {
      "λ": 0.25
    }
    """
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def teller(quiet: bool) -> Callable[[str], None]:
    """What is given a line about what happens on the way: it prints the line on standard error, unless it is to be quiet.

    >>> teller(quiet=True)("reading ...")
    """
    return lambda text: None if quiet else typer.echo(text, err=True)


def listing(*first: str, right: Sequence[str] = (), left: Sequence[str] = ()) -> Table:
    """An empty table: its first columns, then numbers that stand on the right, then words that may take several lines.

    >>> [column.header for column in listing("name", right=("nodes",), left=("source",)).columns]
    ['name', 'nodes', 'source']
    """
    terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in first:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in left:
        table.add_column(name, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table; in a file or a pipe one row is one line."""
    Console(width=None if sys.stdout.isatty() else 400, highlight=False).print(table)
