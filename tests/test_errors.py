"""A mistake is data: the parameter, the place, the way out; each user reads it in the words of the door they came in by."""

import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sharpen
from sharpen.cli.app import app
from sharpen.errors import InputError, Problems, called
from sharpen.files import Columns
from sharpen.files.dataset import read_graph


def told(*words: str) -> str:
    result = CliRunner().invoke(app, [*words])
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text("id,age\na,1\nb,2\n")
    return path


def test_a_parameter_is_called_by_its_option_on_the_command_line_only() -> None:
    with pytest.raises(InputError, match=r"^lam is 0, ") as caught:
        sharpen.compare("digits", lam=0.0, progress=False)
    assert caught.value.field == "lam"
    assert told("compare", "--lam", "0").startswith("--lam is 0, ")
    assert told("fit", "n.csv", "--balance", "much").startswith("--balance has 'much'")
    assert told("fit", "n.csv", "--class-weight", "even").startswith("--class-weight is 'even'")
    assert called("lam") == "lam", "the command is over"


def test_a_column_to_be_named_is_asked_for_in_the_words_of_the_user(nodes: Path) -> None:
    with pytest.raises(InputError, match=r"label=\.\.\.$") as caught:
        read_graph(nodes, None, Columns(), print)
    assert (caught.value.place, caught.value.hint) == (str(nodes), "name the column of classes with label=...")
    assert told("fit", str(nodes)).endswith("name the column of classes with --label")


def test_a_setting_that_there_is_not_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no setting 'hiden'; did you mean 'hidden'\?"):
        sharpen.compare("digits", hiden=8, progress=False)


def test_an_error_comes_back_from_another_process_as_it_was() -> None:
    error = InputError("is 2; give 1", field="layers", place="a.yaml, line 3", hint="or leave it out")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a.yaml, line 3: layers is 2; give 1; or leave it out"
    assert (again.field, again.place, again.hint) == (error.field, error.place, error.hint)


def test_one_problem_keeps_its_data_and_several_are_listed() -> None:
    with pytest.raises(InputError) as caught, Problems() as problems, problems.collected():
        raise InputError("is nan", field="lam")
    assert caught.value.field == "lam"
