"""How a command ends before its time: by a signal, as by Ctrl-C; and that it does not, when nobody reads what it prints."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

INTERRUPTED = 128 + signal.SIGINT
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_received: list[int] = []


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end a command as Ctrl-C does: what is finished is kept, nothing half-written is left.

    One that the starter of the process had ignored, as ``nohup`` does, stays ignored.
    """
    _received.clear()
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        raise KeyboardInterrupt

    with handling(interrupt):
        yield


@contextmanager
def handling(handler: Any) -> Iterator[None]:
    """Has one function called on SIGINT, SIGTERM and SIGHUP, for the time of the block."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, old in before.items():
        if old is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def note_signal(number: int) -> None:
    """Remembers the signal that a command ends for."""
    _received.append(number)


def tell_at_once(line: str) -> None:
    """Writes a line to stderr past its buffer, which a signal may have found in the middle of a write."""
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), f"{line}\n".encode())


def interrupted_code() -> int:
    """The exit code of a command that was interrupted: 130 by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.

    >>> interrupted_code()
    130
    """
    return 128 + _received[0] if _received else INTERRUPTED


class _Pipe(io.FileIO):
    """A file descriptor to write to; once nobody reads at its other end, what is written is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), self.fileno())
            return len(data)


@contextmanager
def unbroken_streams() -> Iterator[None]:
    """Lets a command go on when its output goes nowhere (``sharpen study run main | head -1``).

    A character that the terminal does not have is shown as a question mark.
    """
    before = sys.stdout, sys.stderr
    for name, stream, own in (("stdout", sys.stdout, sys.__stdout__), ("stderr", sys.stderr, sys.__stderr__)):
        if stream is not own or stream is None:  # not the process's own: whoever put it there knows what is wanted
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
            continue
        with suppress(OSError, ValueError):
            stream.flush()
            buffered = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
            line_by_line = name == "stderr" or stream.isatty()
            wrapped = io.TextIOWrapper(buffered, stream.encoding, "replace", line_buffering=line_by_line)
            setattr(sys, name, wrapped)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        sys.stdout, sys.stderr = before
