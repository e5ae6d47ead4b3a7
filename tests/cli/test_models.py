"""``sharpen models`` lists every model, with and without a terminal; and the names are completed where a model is asked for."""

import json

from typer.testing import CliRunner

from sharpen.cli.app import app
from sharpen.models.registry import REGISTRY


def test_every_model_is_one_line_with_a_reference_and_a_cost():
    out = CliRunner().invoke(app, ["models"])
    assert out.exit_code == 0, out.output
    for model in REGISTRY.values():
        (line,) = [line for line in out.output.splitlines() if line.split()[:1] == [model.name]]
        assert model.about in line
        assert model.reference in line
        assert f"{model.cost:g}" in line


def test_as_json():
    rows = json.loads(CliRunner().invoke(app, ["models", "--json"]).output)
    assert [row["name"] for row in rows] == list(REGISTRY)
    assert all(row["about"] and row["cost"] > 0 for row in rows)


def test_a_name_that_is_none_points_to_the_list():
    out = CliRunner().invoke(app, ["compare", "digits", "--model", "h2gnc", "--splits", "1"])
    assert out.exit_code != 0
    told = " ".join((out.output + str(out.exception)).split())
    assert "did you mean 'h2gcn'" in told
    assert "sharpen models" in told
