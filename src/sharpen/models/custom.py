"""Models of one's own, by name: a class, a function that makes a module, or a module, from Python, a file or a package.

A name says where the code is: ``my_net.py:MyNet`` a file, ``package.module:MyNet`` an installed package. **Naming a model is what
runs its code**: :func:`load_custom` imports the file or the package, as ``python my_net.py`` would. It is called for a name that
somebody typed, on the command line, in Python or in a study's file, when something is about to be trained or predicted with it.
Nothing calls it for a name that was read from a store, a saved model or a report.

What is given from Python is known by the name and a digest of its source, ``@1f0c9a3b:MyNet``, for as long as the process lives.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from sharpen.errors import InputError, did_you_mean


class Custom(NamedTuple):
    """A model of one's own: the class, the function, or the module itself; and a digest of its source, of a whole file if known."""

    thing: Any
    digest: str


_KNOWN: dict[str, Custom] = {}


def register(thing: object) -> str:
    """The name under which a class, a function or a module given from Python is known from now on.

    >>> class MyNet:
    ...     pass
    >>> register(MyNet) == register(MyNet)
    True
    """
    named = thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(thing)
    title = getattr(named, "__name__", type(thing).__name__).replace("<lambda>", "lambda")
    digest = _digest(named, thing)
    name = f"@{digest[:8]}:{title}"
    if name not in _KNOWN or _KNOWN[name].thing is not thing:
        _KNOWN[name] = Custom(thing, digest)
    return name


def _digest(named: Any, thing: object) -> str:
    """Of the source, and of what a module or a function was made with beside it."""
    try:
        text = inspect.getsource(named)
    except (OSError, TypeError):  # typed at a prompt: what it was compiled to
        code = getattr(named, "__code__", None)
        parts = [code.co_code.hex(), repr(code.co_consts)] if code else sorted(map(repr, vars(named)))
        text = "\n".join(parts)
    if named is not thing:
        text += f"\n{thing!r}"  # a module shows its parts and their widths
    for cell in getattr(thing, "__closure__", None) or ():
        text += f"\n{cell.cell_contents!r}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def load_custom(name: str) -> Custom:
    """The model that a name stands for; imports the file or package that it names.

    >>> load_custom("torch.nn:Bilinea")
    Traceback (most recent call last):
    sharpen.errors.InputError: model is 'torch.nn:Bilinea', but torch.nn has no Bilinea; did you mean 'Bilinear'?
    """
    if name in _KNOWN:
        return _KNOWN[name]
    place, _, attribute = name.rpartition(":")
    if place.startswith("@"):
        raise InputError(
            f"is {name!r}, which was given from Python, but not in this process; give the class or function itself",
            field="model",
        )
    module, source = _from_file(name, place) if place.endswith(".py") else _from_package(name, place)
    thing = getattr(module, attribute, None)
    if thing is None:
        there = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        classes = [
            key for key in there if inspect.isclass(made := getattr(module, key)) and made.__module__ == module.__name__
        ]
        own = f"it has {', '.join(classes[:5])}" if classes else "it defines no class"
        near = did_you_mean(attribute, there) or own
        raise InputError(f"is {name!r}, but {place} has no {attribute}; {near}".rstrip("; "), field="model")
    if not callable(thing):
        raise InputError(
            f"is {name!r}, but {attribute} is a {type(thing).__name__}; name a torch.nn.Module, or a function that makes one",
            field="model",
        )
    _KNOWN[name] = Custom(thing, hashlib.sha256(source).hexdigest()[:16])
    return _KNOWN[name]


def _from_file(name: str, place: str) -> tuple[Any, bytes]:
    path = Path(place)
    if not path.is_file():
        why = f"there is no file {place} in {Path.cwd()}; name it by its path"
        raise InputError(f"is {name!r}, but {why}", field="model")
    source = path.read_bytes()
    try:
        ast.parse(source, place)
    except (SyntaxError, ValueError) as error:
        where = f"{place}, line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else place
        raise InputError(f"{where} is no Python: {getattr(error, 'msg', error)}") from None
    unique = f"_sharpen_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    loader = SourceFileLoader(unique, str(path))
    spec = importlib.util.spec_from_file_location(unique, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # what lies beside the file can be imported, as in a program
    sys.modules[unique] = module
    _run(lambda: loader.exec_module(module), place, str(path))
    return module, source


def _from_package(name: str, place: str) -> tuple[Any, bytes]:
    try:
        spec = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise InputError(
            f"is {name!r}, but Python finds no package {place}; install it, or name a file, as my_net.py:MyNet",
            field="model",
        )
    module = _run(lambda: importlib.import_module(place), place, spec.origin or "")
    source = Path(spec.origin).read_bytes() if spec.origin and Path(spec.origin).is_file() else place.encode()
    return module, source


def _run(load: Callable[[], Any], place: str, path: str) -> Any:
    """Imports, or says in one sentence why that failed, and in which line."""
    try:
        return load()
    except Exception as error:
        where = place_of(error, Path(importlib.__file__).parent, Path(__file__)).replace(f"{Path(path).name}, ", "")
        raise InputError(f"{place} could not be imported{where}: {type(error).__name__}: {error}") from None


def place_of(error: BaseException, *others: Path) -> str:
    """The file and line of somebody's own code that an error comes from; empty where all of it lies in these other folders."""
    every, strange = traceback.extract_tb(error.__traceback__), ("<", *map(str, others))
    frames = [frame for frame in every if not frame.filename.startswith(strange)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
