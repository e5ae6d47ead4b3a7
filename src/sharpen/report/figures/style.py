"""One look for all figures: the colours of the palette, a shape beside every colour, quiet axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sharpen.errors import InputError
from sharpen.report.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEUTRAL = "#8A8A8A"

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "figure.titlesize": 11,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": "#555555",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "savefig.dpi": 130,
    "svg.hashsalt": "sharpen",  # the same figure gives the same file
    "svg.fonttype": "none",  # text stays text: smaller, and can be searched
}


@contextmanager
def styled() -> Iterator[None]:
    """Within it, or in a function that it decorates, all is drawn in this style; without matplotlib it says how to have it.

    >>> with styled():
    ...     new_figure(3, 2).get_size_inches().tolist()
    [3.0, 2.0]
    """
    try:
        import matplotlib as mpl
    except ImportError:
        problem = "figures need matplotlib, which is not installed; pip install 'graph-sharpen[figures]'"
        raise InputError(problem) from None
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]  # its stubs list every key by name
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches, whose parts make room for each other; no window, no global state.

    >>> new_figure(4, 3).axes
    []
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@styled()
def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure in the format that the path's ending says; the same figure gives the same bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(new_figure(2, 1), Path(folder, "empty.svg"))
    ...     Path(folder, "empty.svg").read_text().startswith("<?xml")
    True
    """
    metadata = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
    figure.savefig(path, metadata=metadata.get(path.suffix))  # None leaves an entry out


def ink(color: str) -> str:
    """A colour of the palette on white.

    >>> ink("blue")
    '#0072B2'
    """
    return PALETTE[color][0]


def zero_line(axes: Axes, *, vertical: bool = False) -> None:
    """A thin line at no difference."""
    (axes.axvline if vertical else axes.axhline)(0, color="#333333", linewidth=0.9, zorder=1.5)


def caption(figure: Figure, text: str) -> None:
    """What a reader must know, below the figure and wrapped to its width."""
    import textwrap

    width = int(figure.get_size_inches()[0] * 17)
    figure.supxlabel("\n".join(textwrap.wrap(text, width)), fontsize=8, color="#444444", x=0.01, ha="left")
