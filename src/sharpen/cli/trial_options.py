"""The fields of a trial as options of a command: one for each that :data:`sharpen.trial.OPTIONS` names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, get_args, get_type_hints

import typer

from sharpen.cli.completion import offer
from sharpen.trial import NORMS, OBJECTIVE, OPTIONS, Trial

_MODEL_PANEL = "Model and optimizer"
_OBJECTIVE_PANEL = "Objective of the sharpened runs"


def trial_options(command: Callable[..., Any], defaults: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """Lets a command that takes ``**settings`` have an option for every field of a trial that commands offer.

    A new field of :class:`sharpen.Trial` becomes an option by its line in :data:`sharpen.trial.OPTIONS`.

    Args:
        defaults: The fields to offer, with what they are unless given. None: all of them, with the paper's settings.

    >>> def command(**settings: object) -> None: ...
    >>> list(inspect.signature(trial_options(command)).parameters)[:3]
    ['layers', 'hidden', 'dropout']
    """
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    own = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    panel = _MODEL_PANEL if defaults else f"{_MODEL_PANEL} (by default the paper's for the dataset)"
    offered = defaults or {f.name: f.default for f in fields(Trial) if f.name in OPTIONS}
    more = [_option(name, value, _OBJECTIVE_PANEL if name in OBJECTIVE else panel) for name, value in offered.items()]
    command.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*own, *more)}
    return command


def _option(name: str, default: Any, panel: str) -> inspect.Parameter:
    hint = get_type_hints(Trial)[name]
    kind = next(iter(get_args(hint)), hint)
    flag = name.replace("_", "-")
    declared = (f"--{flag}/--no-{flag}",) if kind is bool else (f"--{flag}",)
    complete = offer(*NORMS) if name == "norm" else None
    option = typer.Option(*declared, help=OPTIONS[name], rich_help_panel=panel, autocompletion=complete)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind | None, option]
    )
