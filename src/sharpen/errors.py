"""The one exception for mistakes a user can mend."""


class InputError(ValueError):
    """Something given to sharpen cannot be used.

    The message says what was wrong, where, and what to do about it. The command line prints it without a traceback and
    ends with exit code 2.

    >>> raise InputError("lam is nan; give a finite number such as 0.25")
    Traceback (most recent call last):
    sharpen.errors.InputError: lam is nan; give a finite number such as 0.25
    """
