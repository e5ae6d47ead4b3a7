"""A YAML file as plain values that know their lines, so that a mistake is named with its place.

No study needs more than ``_MOST_BYTES`` of text, ``_MOST_VALUES`` values or ``_MOST_LEVELS`` of lists in lists. Values are
counted while they are read, and once more as often as they are referred to: a few lines of aliases can stand for more than any
memory holds. So whatever stands in a file, it is refused in a second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from sharpen.errors import InputError, printable, reason
from sharpen.studies.protocol import one_of

Where = tuple[str | int, ...]

_MOST_BYTES = 2**17
_MOST_VALUES = 10_000
_MOST_LEVELS = 20
_MOST_DIGITS = 100
_MOST_WORDS = 2_000


def shown(value: Any) -> str:
    """A value in a message: as Python writes it, but not at length.

    >>> shown("lam"), shown(10**5000), len(shown("x" * 1000))
    ("'lam'", 'a number of thousands of digits', 83)
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a number of thousands of digits" if isinstance(value, int) else "something without end"
    return text if len(text) <= 80 else text[:80] + "..."


class _Loader(yaml.SafeLoader):
    """Reads no more than a study can hold."""

    def __init__(self, text: str, name: str) -> None:
        self._file, self._count, self._level = name, 0, 0
        super().__init__(text)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._count += 1
        self._level += 1
        _check_extent(self._file, self._count, self._level)
        node = super().compose_node(parent, index)
        self._level -= 1
        return node


def _check_extent(name: str, count: int, level: int) -> None:
    if level > _MOST_LEVELS:  # an alias inside its own anchor never ends
        raise InputError(f"{name}: values are nested more than {_MOST_LEVELS} deep; a study has four levels")
    if count > _MOST_VALUES:
        raise InputError(f"{name}: it stands for more than {_MOST_VALUES:,} values; give ranges in place of lists")


class Source:
    """What a file says, and on which line it says it.

    Args:
        text: YAML, a mapping at its top.
        name: What to call the file in messages.

    >>> source = Source("title: Mine\\nmodels: [gcn]\\n", "mine.yaml")
    >>> source.content, source.place(("models", 0))
    ({'title': 'Mine', 'models': ['gcn']}, 'mine.yaml, line 2')
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines: dict[Where, int] = {}
        try:
            loader = _Loader(text, name)
            root = loader.get_single_node()
            if root is not None:
                self._note(root, ())
            content = None if root is None else loader.construct_document(root)
        except InputError:
            raise
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark is not None else ""
            problem = printable((getattr(error, "problem", None) or str(error).splitlines()[0])[:160])
            way = "indent with spaces, not with tabs" if "'\\t'" in problem else "compare it with a study that is"
            raise InputError(f"{name}{line}: this is not YAML ({problem}); {way}") from error
        except Exception as error:  # what a date or a tag that is none makes of the constructors is not documented
            raise InputError(f"{name}: a value cannot be read ({reason(error)}); write it in quotes") from error
        if not isinstance(content, dict):
            raise InputError(f"{name}: a study is a mapping of keys to values, such as 'title: My study'; write it so")
        self.content: dict[str, Any] = content

    def _note(self, node: yaml.Node, path: Where) -> None:
        self._lines[path] = node.start_mark.line + 1
        _check_extent(self.name, len(self._lines), len(path))
        if isinstance(node, yaml.ScalarNode):
            self._check_scalar(node, path)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                line = key.start_mark.line + 1
                here = f"{self.name}, line {line}"
                if not isinstance(key, yaml.ScalarNode):
                    raise InputError(f"{here}: a list stands where a name belongs; write a word")
                self._check_scalar(key, path)
                word = str(key.value)
                if (known := self._lines.get((*path, word))) is not None:
                    raise InputError(f"{here}: {word!r} stands on line {known} already; write every key once")
                self._note(value, (*path, word))
                self._lines[*path, word] = line
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self._note(value, (*path, index))

    def _check_scalar(self, node: yaml.ScalarNode, path: Where) -> None:
        number = node.tag.endswith((":int", ":float"))
        if number and len(node.value) > _MOST_DIGITS:  # 1:1:1:... takes a time that grows with the square of its length
            raise self.fail(path, f"a number has {len(node.value):,} digits; give at most {_MOST_DIGITS}")
        if any("\ud800" <= character <= "\udfff" for character in node.value):
            raise self.fail(path, f"{shown(node.value)} holds half a character; write the whole one")

    def place(self, path: Where = ()) -> str:
        """The file and line of a value."""
        while path and path not in self._lines:
            path = path[:-1]
        return f"{self.name}, line {self._lines[path]}" if path else self.name

    def fail(self, path: Where, problem: str) -> InputError:
        """An error that says where."""
        return InputError(problem, place=self.place(path))

    def one_of(self, path: Where, what: str, value: Any, allowed: Sequence[str]) -> str:
        """A value that must be one of those allowed."""
        return one_of(what, value, allowed, where=self.place(path))

    def keys(self, path: Where, found: dict[str, Any], allowed: tuple[str, ...], what: str = "key") -> None:
        """Complain about a key that is not among those allowed."""
        for key in found:
            self.one_of((*path, str(key)), what, key, allowed)

    def words(self, path: Where, value: Any, allowed: tuple[str, ...] | None, what: str) -> tuple[str, ...]:
        """A list of different words, each among those allowed."""
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            example = what if allowed is None else allowed[0]
            raise self.fail(path, f"{path[-1]} is {shown(value)}; give a list of names, such as [{example}, …]")
        if len(value) > _MOST_WORDS:
            raise self.fail(path, f"{path[-1]} has {len(value):,} entries; give at most {_MOST_WORDS:,}")
        for index, word in enumerate(value):
            if allowed is not None:
                self.one_of((*path, index), what, word, allowed)
            if word in value[:index]:
                raise self.fail((*path, index), f"{word!r} stands in {path[-1]} twice; write it once")
        return tuple(value)

    def text(self, path: Where, value: Any) -> str:
        """A text, its line breaks taken as spaces."""
        if not isinstance(value, str) or not value.strip():
            raise self.fail(path, f"{path[-1]} is {shown(value)}; give a text")
        return " ".join(value.split())

    def flag(self, path: Where, value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.fail(path, f"{path[-1]} is {shown(value)}; give true or false")
        return value

    def mapping(self, path: Where, value: Any) -> dict[str, Any]:
        """A mapping whose keys are words."""
        if not isinstance(value, dict):
            problem = f"{path[-1]} is {shown(value)}; give a mapping of names to values, such as {{lam: 0.25}}"
            raise self.fail(path, problem)
        for key in value:
            if not isinstance(key, str):
                raise self.fail((*path, str(key)), f"the name {key!r} is not a text; write it in quotes, as '{key}'")
        return value

    def number(self, path: Where, value: Any) -> float:
        """A finite number; YAML takes 5e-4 for a text, we do not."""
        if isinstance(value, str) and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            # A value in a list has the list's name.
            name = next(word for word in reversed(path) if isinstance(word, str))
            raise self.fail(path, f"{name} is {shown(value)}; give a number{', or a list of them' * (value == [])}")
        return value


def read(path: Path) -> Source:
    """The content of a YAML file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mine.yaml").write_text("title: Mine")
    ...     read(Path(folder, "mine.yaml")).content
    {'title': 'Mine'}
    """
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} has {path.stat().st_size:,} bytes; a study has at most {_MOST_BYTES:,}")
        return Source(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text in UTF-8 ({error.reason}); save it as such") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); give the path of a study's YAML file") from error
