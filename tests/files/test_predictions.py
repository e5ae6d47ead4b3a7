"""Predictions appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sharpen.files import read_predictions, write_predictions
from sharpen.files.predictions import guard


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"predictions.{ending}"
    write_predictions(path, pd.DataFrame({"id": ["old"]}))

    class Unprintable:
        def __str__(self) -> str:
            raise KeyboardInterrupt

        __repr__ = __str__

    broken = pd.DataFrame({"id": ["new", Unprintable()]})
    with pytest.raises(BaseException):  # noqa: B017, PT011  (whatever stops the writing)
        write_predictions(path, broken)
    assert read_predictions(path)["id"].tolist() == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_numbers_keep_their_sign_and_text_does_not_begin_like_a_formula() -> None:
    for text in ("=1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "＝1", " =1", "\ufeff=1", "\u200b+1", "\xa0@x"):
        assert guard(text) == "'" + text
    for text in ("a=1", "1", "", "'", "it's", " x"):
        assert guard(text) == text


def test_the_file_is_readable_by_others_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_predictions(tmp_path / "p.csv", pd.DataFrame({"id": ["a"]}))
    assert (tmp_path / "p.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode
