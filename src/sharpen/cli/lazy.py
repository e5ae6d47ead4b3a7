"""Subcommands that are imported when they are called: help and the Tab key do not wait for NumPy and pandas."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from sharpen.errors import options_named

# What the help of each begins with; a command has a module and a function of its own name.
COMMANDS = {
    "fit": "Label the unlabeled nodes of a graph of your own.",
    "predict": (
        "Label a graph with a model saved by `sharpen fit`: the same graph, a larger one, or another with the same columns."
    ),
    "evaluate": "Score predictions against labels that became known later.",
    "serve": "Serve predictions over HTTP from a model saved by `sharpen fit`.",
    "compare": "Compare sharpened with plain training on the same splits and seeds.",
    "study": "Run and report the paper's tables and figures, or your own studies; runs resume.",
    "recipe": "Train on large graphs with tested settings; cluster recipes resume and run under torchrun.",
    "models": "List the models.",
    "datasets": "List the datasets and where they are.",
    "bench": "Time per epoch of one run: in a plain PyG loop, and in a population of runs trained as one batch.",
}
# What the library calls otherwise than an option.
_ALSO = {"prior": "class_prior", "unknown_labels": "unknown_label", "folder": "data"}


class LazyGroup(TyperGroup):
    """A group whose subcommands are listed without being imported."""

    listing = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Stand-ins with a name and a help text; among them the nearest to a misspelled one is looked for.
        self.commands = {
            name: TyperCommand(name=name, help=text, rich_markup_mode="rich") for name, text in COMMANDS.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        return self.commands[cmd_name] if self.listing else load_command(cmd_name)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        self.listing = True
        try:
            return list(super().shell_complete(ctx, incomplete))
        finally:
            self.listing = False


def load_command(name: str) -> Any:
    """The subcommand of a name, imported.

    >>> load_command("predict").name
    'predict'
    """
    found = getattr(import_module(f"sharpen.cli.{name}"), name)
    if isinstance(found, typer.Typer):
        group = found
        group._add_completion = False
    else:
        group = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich", add_completion=False)
        group.command(name)(found)
    command = typer.main.get_command(group)
    command.name = name
    for each in (command, *getattr(command, "commands", {}).values()):
        each.get_params = lambda ctx, own=each.get_params: _without_type(own(ctx))
        each.invoke = _in_options(each)
    return command


def _in_options(command: Any) -> Callable[[Any], Any]:
    """The command's function, with its parameters called by their options in every message."""
    options = {name.lstrip("-").replace("-", "_"): name for param in command.params for name in param.opts}
    options = {field: name for field, name in options.items() if name.startswith("--")}
    options |= {field: options[same] for field, same in _ALSO.items() if same in options}
    invoke = command.invoke

    def named(ctx: Any) -> Any:
        with options_named(options):
            return invoke(ctx)

    return named


def _without_type(params: list[Any]) -> list[Any]:
    """Options that are there or not take no value, so their help names no type of one."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params
