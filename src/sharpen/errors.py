"""The one exception for mistakes a user can fix, and words for its messages."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType


class InputError(ValueError):
    """Something given to sharpen cannot be used.

    The message says what was wrong, where, and what to do about it. The command line prints it without a traceback and
    ends with exit code 2; there, parameters are called by their options (:func:`options_named`).

    Args:
        problem: What is wrong, and what to do about it unless ``hint`` says so.
        field: The parameter that is wrong: the sentence begins with it.
        place: Where it was found, such as a file with its line.
        hint: The way out.

    >>> raise InputError("is nan", field="lam", hint="give a finite number such as 0.25")
    Traceback (most recent call last):
    sharpen.errors.InputError: lam is nan; give a finite number such as 0.25
    >>> print(InputError("2 rows have one id", place="nodes.csv", hint="give every node its own"))
    nodes.csv: 2 rows have one id; give every node its own
    """

    def __init__(
        self, problem: str = "", *, field: str | None = None, place: str | None = None, hint: str | None = None
    ) -> None:
        text = problem if field is None else f"{called(field)} {problem}"
        super().__init__((f"{place}: " if place else "") + text + (f"; {hint}" if hint else ""))
        self.field, self.place, self.hint = field, place, hint


_options: Mapping[str, str] = {}


@contextmanager
def options_named(options: Mapping[str, str]) -> Iterator[None]:
    """Within the block, messages call parameters by options: the command line's way to have its own words in them.

    >>> with options_named({"lam": "--lam"}):
    ...     print(InputError("is nan", field="lam"), "|", as_given("ignore", ["age"]))
    --lam is nan | ignore=['age']
    """
    global _options
    before, _options = _options, options
    try:
        yield
    finally:
        _options = before


def called(field: str) -> str:
    """What the user calls a parameter.

    >>> called("unknown_labels")
    'unknown_labels'
    """
    return _options.get(field, field)


def as_given(field: str, value: str | Sequence[str] | None = None) -> str:
    """How the user gives a parameter, for the way out of a mistake.

    >>> as_given("id"), as_given("ignore", ["the age"])
    ('id=...', "ignore=['the age']")
    >>> with options_named({"id": "--id", "ignore": "--ignore"}):
    ...     as_given("id"), as_given("ignore", ["the age"])
    ('--id', "--ignore 'the age'")
    """
    if field not in _options:
        return f"{field}={'...' if value is None else repr(value)}"
    if value is None:
        return _options[field]
    return f"{_options[field]} {shlex.quote(value if isinstance(value, str) else ','.join(value))}"


class Problems:
    """Mistakes that are independent of each other, told together when the block ends.

    >>> with Problems() as problems:
    ...     with problems.collected():
    ...         raise InputError("lam is nan; give a number")
    ...     with problems.collected():
    ...         raise InputError("q is 1; give a number above 1")
    Traceback (most recent call last):
    sharpen.errors.InputError: 2 problems:
      1. lam is nan; give a number
      2. q is 1; give a number above 1
    """

    def __init__(self) -> None:
        self.found: list[InputError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keeps the InputError of a block, which ends there."""
        try:
            yield
        except InputError as error:
            self.found.append(error)

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            self.found.append(error)
        elif error is not None:
            return
        found = list({str(each): each for each in self.found}.values())
        if len(found) == 1:
            raise found[0] from None
        if found:
            listed = "".join(f"\n  {number}. {each}" for number, each in enumerate(found, start=1))
            raise InputError(f"{len(found)} problems:{listed}") from None


@contextmanager
def told_as(
    problem: str, hint: str, kinds: type[Exception] | tuple[type[Exception], ...] = Exception
) -> Iterator[None]:
    """Tells an error of a block as an InputError; without ``kinds``, whatever it is: damaged bytes lead to many kinds.

    >>> with told_as("graph.npz cannot be read", "check that you may read it", OSError):
    ...     raise OSError("no such device")
    Traceback (most recent call last):
    sharpen.errors.InputError: graph.npz cannot be read (no such device); check that you may read it
    """
    try:
        yield
    except InputError:
        raise
    except kinds as error:
        raise InputError(f"{problem} ({reason(error)})", hint=hint) from error


def check_word(field: str, value: object, allowed: Sequence[str]) -> None:
    """Refuses a value that is none of the words it may be.

    >>> check_word("norm", "lyer", ["none", "layer"])
    Traceback (most recent call last):
    sharpen.errors.InputError: norm is 'lyer'; did you mean 'layer'? Choose one of none, layer
    """
    if value not in allowed:
        near = did_you_mean(value, allowed)
        choose = f"{near}{'Choose' if near else 'choose'} one of {', '.join(allowed)}"
        raise InputError(f"is {value!r}", field=field, hint=choose)


def did_you_mean(word: object, allowed: Iterable[str]) -> str:
    """The part of a message that names the word which was probably meant; empty if none is near.

    >>> did_you_mean("Amazon_Ratings", ["amazon-ratings", "cora"])
    "did you mean 'amazon-ratings'? "
    >>> did_you_mean("x", ["cora"])
    ''
    """
    words, lower = list(allowed), str(word).lower()
    near = difflib.get_close_matches(lower.replace("_", "-"), words, n=1, cutoff=0.5)
    near = near or difflib.get_close_matches(lower, words, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}? " if near else ""


def printable(text: str) -> str:
    """Text that does nothing to a terminal but appear.

    >>> printable("a\\x1b[1mb")
    'a [1mb'
    """
    return "".join(c if c.isprintable() else " " for c in text)


def short(value: object, most: int = 60) -> str:
    """A value in a message, but not at length.

    >>> short("a" * 100)[-5:]
    'aa...'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits
        return "without end"
    return text if len(text) <= most else text[: most - 3] + "..."


def reason(error: BaseException) -> str:
    """The first line of an error, short and printable: bytes of a damaged file may end up in it.

    >>> reason(OSError("no\\x1b[1m\\nmore"))
    'no [1m'
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return printable(lines[0][:160])
