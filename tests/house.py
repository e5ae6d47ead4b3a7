"""How large the package is and how it hangs together, counted from its source; ``python tests/house.py`` prints it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src" / "sharpen"
# What is called by way of another name: the entry point, and what every reader of datasets has.
_CALLED = {"main", "files", "load"}


class Function(NamedTuple):
    """A function or method with the lines it takes, from ``def`` to its end."""

    path: str
    name: str
    lines: int


def modules() -> dict[str, str]:
    """The text of every module, by its path in the package."""
    return {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def code_lines(text: str) -> int:
    """Lines with code: without blanks, comments and docstrings."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    docs = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped and token.type != tokenize.ENDMARKER:
            found |= set(range(token.start[0], token.end[0] + 1))
    return len(found - docs)


def functions() -> list[Function]:
    """All functions of the package; a docstring counts half a function's idea and none of its length."""
    found = []
    for path, text in modules().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(Function(path, node.name, (node.end_lineno or 0) - node.lineno + 1 - _docstring(node)))
    return found


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or 0) - first.lineno + 1
    return 0


def lonely_names() -> list[tuple[str, str]]:
    """Public functions and constants that nothing but their own module uses; a class is the type of what others hold.

    Those who use a name import it, take it from its module, or name it in full, in the package, its tests, scripts or documents.
    """
    root = SOURCE.parents[1]
    folders = ("src", "tests", "benchmarks", "docs", "results", "examples")
    files = [path for folder in folders for ending in ("py", "md") for path in (root / folder).rglob(f"*.{ending}")]
    texts = {path: path.read_text("utf-8") for path in [*files, root / "README.md"]}
    # A command is imported by its name, from the module of that name.
    commands = re.findall(r'^    "(\w+)": ', texts[SOURCE / "cli" / "lazy.py"], re.M)
    used = {(f"sharpen.cli.{name}", name) for name in commands}
    for path, text in texts.items():
        used |= _taken(text, path)
    every = "\n".join(texts.values())
    found = []
    for path, text in modules().items():
        if path.endswith("__init__.py"):
            continue
        module = "sharpen." + path.removesuffix(".py").replace("/", ".")
        for name in _public(ast.parse(text)):
            named = f"{module}.{name}" in every or f"{module}:{name}" in every
            if (module, name) not in used and not named and name not in _CALLED:
                found.append((path, name))
    return found


def _taken(text: str, path: Path) -> set[tuple[str, str]]:
    """What a file takes from the modules of the package: (module, name)."""
    found = {
        (module, name.strip().split(" as ")[0])
        for module, names in re.findall(r"from (sharpen[\w.]*) import (\([^)]*\)|[^\n(]*)", text)
        for name in names.strip("()").replace("\n", " ").split(",")
    }
    # Modules that are imported whole, and what is taken from them by a dot.
    whole = {f"{module}.{name}" for module, name in found} | set(re.findall(r"^import (sharpen[\w.]*)", text, re.M))
    by_dot = set(re.findall(r"\.([A-Za-z_]\w*)|setattr\(\w+, \"(\w+)\"", text))
    return found | {(module, name) for module in whole for names in by_dot for name in names}


def _public(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef):
            names = (
                []
                if any(word in ast.dump(each) for each in node.decorator_list for word in ("command", "callback"))
                else [node.name]
            )
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        yield from (name for name in names if not name.startswith("_"))


def flags() -> list[str]:
    """Options of the command line that a text outside ``cli/`` names; docstrings and calls of git are not shown to a user."""
    found = []
    for path, text in modules().items():
        if path.startswith("cli/") or path == "revision.py":
            continue
        tree = ast.parse(text)
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                found += [f"{path}:{node.lineno} {flag}" for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", node.value)]
    return found


def imports() -> Iterator[tuple[str, str]]:
    """Which folder, or module of the top, imports which, when it is loaded; what only a type checker reads is left out."""
    for path, text in modules().items():
        for node in _loaded(ast.parse(text)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                parts = name.split(".")
                if parts[0] == "sharpen" and len(parts) > 1:
                    yield path.split("/")[0].removesuffix(".py"), parts[1]


def _loaded(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        else:
            yield from _loaded(node)


def main() -> None:
    """Print the counts, and what is largest."""
    texts = modules()
    print(
        f"{sum(len(text.splitlines()) for text in texts.values()):,} lines, {sum(map(code_lines, texts.values())):,} of code"
    )
    for path, text in sorted(texts.items(), key=lambda item: -len(item[1].splitlines())):
        if len(text.splitlines()) > 400:
            print(f"  module {path}: {len(text.splitlines())}")
    for function in sorted(functions(), key=lambda function: -function.lines):
        if function.lines > 80:
            print(f"  function {function.path}:{function.name}: {function.lines}")
    for path, name in lonely_names():
        print(f"  only its own module uses {path}:{name}")
    for pair in sorted(set(imports())):
        print("  ", *pair)


if __name__ == "__main__":
    main()
