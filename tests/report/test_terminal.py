"""The headline and the table say what the numbers say, and no more."""

import io
import math
import re

import pandas as pd
import pytest
from rich.console import Console

from sharpen.evaluation import Comparison, compare_lams
from sharpen.report import headline, print_comparison

PLAIN = [0.80, 0.70, 0.60, 0.75]


def records(gains: list[float], val: float = 0.8, splits: int | None = None) -> pd.DataFrame:
    """Runs that gain so many points on four plain ones."""
    each = len(gains) // (splits or len(gains))
    return pd.DataFrame(
        {
            "dataset": "cora",
            "model": "sage",
            "split": [f"s{i // each}" for i in range(len(gains))],
            "seed": range(len(gains)),
            "val": val,
            "test": [plain + gain / 100 for plain, gain in zip(PLAIN, gains, strict=False)],
        }
    )


def compared(*gains: list[float], choose: bool = False, val: float = 0.8, splits: int | None = None) -> Comparison:
    variants = {0.25 * (i + 1): records(each, val, splits) for i, each in enumerate(gains)}
    return compare_lams(records([0.0] * len(gains[0]), splits=splits), variants, choose=choose)


def printed(comparison: Comparison, *, terminal: bool = False, width: int = 120, notes: tuple[str, ...] = ()) -> str:
    file = io.StringIO()
    print_comparison(comparison, Console(file=file, force_terminal=terminal, width=width), notes)
    return file.getvalue()


def test_a_clear_gain() -> None:
    # Differences 1, 2, 3, 2: mean 2, standard error 0.408, t(3) = 3.182: 2 ± 1.30.
    assert headline(compared([1, 2, 3, 2])) == (
        "Sharpening (λ = 0.25) gains +2.00 points on cora with GraphSAGE, 95 % CI [+0.70, +3.30], 4 paired splits."
    )


def test_a_clear_loss() -> None:
    assert headline(compared([-1, -2, -3, -2])) == (
        "Sharpening (λ = 0.25) loses 2.00 points on cora with GraphSAGE, 95 % CI [-3.30, -0.70], 4 paired splits."
    )


def test_an_interval_that_includes_zero_claims_nothing() -> None:
    text = headline(compared([3, -1, 2, 0]))
    assert text.startswith(
        "Sharpening (λ = 0.25) makes no clear difference on cora with GraphSAGE: +1.00 points, 95 % CI"
    )
    assert "gain" not in text


def test_one_pair_claims_nothing() -> None:
    assert headline(compared([3])) == (
        "Sharpening (λ = 0.25) changes the score by +3.00 points on cora with GraphSAGE, 1 paired split; "
        "one pair has no spread: take at least two splits or seeds."
    )


def test_seeds_are_not_sold_as_splits() -> None:
    assert headline(compared([1, 2, 3, 2], splits=1)).endswith("4 paired seeds on one split.")
    assert headline(compared([1, 2, 3, 2], splits=2)).endswith("2 paired splits of 2 seeds each.")


def test_a_chosen_lam_says_how_it_was_chosen() -> None:
    chosen = compared([1, 2, 3, 2], [3, -1, 2, 0], choose=True, val=0.9)
    assert headline(chosen).startswith("Sharpening (λ = 0.25, chosen by validation) gains +2.00 points")
    lines = printed(chosen).splitlines()
    assert [line.split("  ")[0] for line in lines[3:6]] == ["baseline", "0.25 *", "0.5"]
    assert "* chosen by mean validation score among these; test scores had no part in it." in lines


def test_sharpening_that_is_not_chosen() -> None:
    rejected = compared([1, 2, 3, 2], choose=True, val=0.7)
    assert headline(rejected) == (
        "Validation chooses λ = 0 on cora with GraphSAGE: sharpening is not chosen, 4 paired splits."
    )
    assert re.search(r"^baseline \*", printed(rejected), re.MULTILINE)


def test_several_lams_are_judged_together() -> None:
    several = compared([1, 2, 3, 2], [-10, -11, -10.5, -10], [3, -1, 2, 0])
    assert headline(several).startswith(
        "Of 3 values of λ on cora with GraphSAGE, 1 gain, 1 lose, 1 without a clear difference"
    )
    header = printed(several).splitlines()[2]
    assert "p (Holm)" in header


def test_the_row_of_a_lam() -> None:
    lines = printed(compared([1, 2, 3, 2]), notes=("A note.",)).splitlines()
    assert re.split(r"\s{2,}", lines[2].strip()) == ["λ", "val", "test", "gain", "95 % CI", "win/tie/loss", "p"]
    assert re.split(r"\s{2,}", lines[3].strip()) == ["baseline", "80.00", "71.25 ± 8.54"]
    assert re.split(r"\s{2,}", lines[4].strip()) == [
        "0.25", "80.00", "73.25 ± 7.76", "+2.00", "[+0.70, +3.30]", "4/0/0", "0.0163",
    ]  # fmt: skip
    assert lines[-1] == "A note."
    assert any("Wilcoxon signed-rank p = 0.1250" in line for line in lines)


@pytest.mark.parametrize("terminal", [False, True])
def test_the_table_fits_a_terminal_of_80_columns(terminal: bool) -> None:
    text = printed(compared([1, 2, 3, 2], [3, -1, 2, 0]), terminal=terminal, width=80)
    assert "…" not in text
    assert "[+0.70, +3.30]" in text


def test_plain_text_where_there_is_no_terminal() -> None:
    plain, colored = printed(compared([1, 2, 3, 2])), printed(compared([1, 2, 3, 2]), terminal=True)
    assert "\x1b" not in plain
    assert "─" not in plain
    assert "\x1b" in colored
    # One sentence, one line: scripts may read the first.
    narrow = printed(compared([1, 2, 3, 2]), width=80)
    assert narrow.splitlines()[0] == headline(compared([1, 2, 3, 2]))


def test_diverged_runs_are_reported() -> None:
    nan = math.nan
    text = printed(compared([1, nan, 3, 2], [nan] * 4))
    assert "Diverged, of 4 runs each: 1 of λ = 0.25, 4 of λ = 0.5; a pair with such a run is left out." in text
    assert re.search(r"^0\.5 .*diverged", text, re.MULTILINE)
    assert "1 pair of runs left out because one diverged" in headline(compared([1, nan, 3, 2]))
    assert headline(compared([nan] * 4)).startswith("Sharpening cannot be judged on cora with GraphSAGE")
