"""The command as a whole: help, version, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sharpen.cli import main
from sharpen.cli.app import app
from sharpen.cli.lazy import COMMANDS, load_command
from sharpen.datasets import list_datasets


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["sharpen", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_a_users_mistake_is_one_clean_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "compare", "corra") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("sharpen: there is no dataset 'corra'; did you mean 'cora'?")


def test_an_unknown_option_is_exit_code_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "compare", "--lamb", "1") == 2
    assert "--lam" in capsys.readouterr().err


def test_an_interrupt_is_exit_code_130_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sharpen.comparison.train", interrupted)
    for out in (tmp_path, tmp_path / "new" / "folder"):
        assert call(monkeypatch, "compare", "--out", str(out)) == 130
        assert "Interrupted: finished runs are kept" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


def test_an_interrupted_fit_leaves_nothing_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sharpen.estimator.search", interrupted)
    karate = Path(__file__).parents[2] / "examples" / "karate"
    files = [str(karate / "members.csv"), str(karate / "friendships.csv")]
    assert call(monkeypatch, "fit", *files, "--out", str(tmp_path / "new" / "folder")) == 130
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_the_version_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("sharpen ")


def test_help_shows_examples_and_exit_codes() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert "sharpen compare cora --model gcn --lam 0.25" in text
    assert "130" in text
    assert "--install-completion" in text


def test_options_of_compare_are_the_words_of_trial() -> None:
    text = CliRunner().invoke(app, ["compare", "--help"], env={"COLUMNS": "200"}).stdout
    words = "model layers hidden dropout norm residual input_linear lr weight_decay epochs lam lam_labeled q balance"
    for word in words.split():
        assert f"--{word.replace('_', '-')} " in text


def test_datasets_are_listed_one_per_line() -> None:
    lines = CliRunner().invoke(app, ["datasets"]).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [info.name for info in list_datasets()]
    assert "2,708" in next(line for line in lines if line.startswith("cora "))


def test_datasets_as_json_say_where_they_are(data_root: Path) -> None:
    rows = json.loads(CliRunner().invoke(app, ["datasets", "--json", "--data", str(data_root)]).stdout)
    assert next(row for row in rows if row["name"] == "cora")["folder"] == str(data_root)


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sharpen", "compare", "--splits", "none"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("sharpen: --splits is 'none'")


def test_help_and_the_list_of_commands_import_nothing_heavy() -> None:
    program = (
        "import sys\nsys.argv = ['sharpen', '--help']\nfrom sharpen.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print([m for m in ('numpy', 'pandas', 'torch', 'pyarrow') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for name in COMMANDS:
        assert name in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_list_says_of_a_command_is_what_the_command_says(name: str) -> None:
    command = load_command(name)
    assert command.help.split("\n\n")[0].replace("\n", " ") == COMMANDS[name]


@pytest.mark.parametrize("command", ["", "fit", "predict", "serve", "compare", "study run"])
def test_what_is_there_or_not_names_no_type(command: str) -> None:
    text = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"}).stdout
    assert "--help" in text
    assert "bool" not in text.lower().replace("boolean", "")


def test_a_misspelled_command_is_answered_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "fti") == 2
    assert "fit" in capsys.readouterr().err
