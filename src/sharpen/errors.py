"""The one exception for mistakes a user can fix, and words for its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType


class InputError(ValueError):
    """Something given to sharpen cannot be used.

    The message says what was wrong, where, and what to do about it. The command line prints it without a traceback and
    ends with exit code 2.

    Args:
        message: One sentence. Where it begins with the name of a parameter, that is the ``field``.
        field: The parameter that is wrong; the command line calls it by its option.

    >>> raise InputError("lam is nan; give a finite number such as 0.25")
    Traceback (most recent call last):
    sharpen.errors.InputError: lam is nan; give a finite number such as 0.25
    """

    def __init__(self, message: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    def as_option(self) -> InputError:
        """The same error in the words of the command line.

        >>> print(InputError("lam is 0; give another", field="lam").as_option())
        --lam is 0; give another
        """
        text, name = str(self), self.field
        if name is None or not text.startswith(name):
            return self
        return InputError(f"--{name.replace('_', '-')}{text[len(name) :]}")


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
        self.found: list[str] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keeps the InputError of a block, which ends there."""
        try:
            yield
        except InputError as error:
            self.found.append(str(error))

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            self.found.append(str(error))
        elif error is not None:
            return
        found = list(dict.fromkeys(self.found))
        if len(found) == 1:
            raise InputError(found[0]) from None
        if found:
            listed = "".join(f"\n  {number}. {message}" for number, message in enumerate(found, start=1))
            raise InputError(f"{len(found)} problems:{listed}") from None


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


def reason(error: BaseException) -> str:
    """The first line of an error, short and printable: bytes of a damaged file may end up in it.

    >>> reason(OSError("no\\x1b[1m\\nmore"))
    'no [1m'
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return printable(lines[0][:160])
