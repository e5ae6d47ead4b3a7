"""The one exception for mistakes a user can fix, and words for its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
