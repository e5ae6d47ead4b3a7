"""The Tab key: what it offers is what there is, and it does not wait for torch."""

import os
import subprocess
import sys

import pytest

from sharpen.cli import completion
from sharpen.datasets import list_datasets
from sharpen.fitting.evidence import METRICS

PROGRAM = (
    "import sys, atexit; atexit.register(lambda: print('torch' in sys.modules)); from sharpen.cli import main; main()"
)


def complete(words: str, shell: str) -> tuple[list[str], str]:
    """What a shell would be told when Tab is pressed after these words, and whether torch was imported."""
    place = str(len(words.split(" ")) - 1)
    variables = {"COMP_WORDS": words, "COMP_CWORD": place, "_TYPER_COMPLETE_ARGS": words, "_SHARPEN_COMPLETE": f"complete_{shell}",
                 "_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_WORD_TO_COMPLETE": words.split(" ")[-1]}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    *lines, torch = done.stdout.splitlines()
    return lines, torch


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sharpen ev", ["evaluate"]),
        ("sharpen compare ci", ["citeseer"]),
        ("sharpen compare cora --model gp", ["gprgnn"]),
        ("sharpen compare --device cu", ["cuda"]),
        ("sharpen fit a.csv --lam", ["--lam"]),
        ("sharpen fit a.csv --metric b", ["balanced-accuracy"]),
    ],
)
def test_bash_is_offered_what_fits(words: str, offered: list[str]) -> None:
    lines, torch = complete(words, "bash")
    assert lines == offered
    assert torch == "False"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_too(shell: str) -> None:
    assert "citeseer" in "\n".join(complete("sharpen compare ci", shell)[0])


def test_the_words_offered_are_those_there_are() -> None:
    assert tuple(info.name for info in list_datasets()) == completion.DATASETS
    assert completion.METRICS == METRICS
