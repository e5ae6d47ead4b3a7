"""Options, variables, studies and claims that cannot be meant: one sentence each, and exit code 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sharpen.cli.app import main
from sharpen.errors import InputError
from sharpen.store import Store
from sharpen.store.claims import claim, claims, this_host
from sharpen.studies import load_study
from sharpen.trial import Trial
from tests.attack.flips import small_records
from tests.cli.test_fit import write_club

STUDY = """\
title: Mine
datasets: [digits]
models: [gcn]
variants:
  baseline: {lam: 0}
baseline: baseline
"""
ALIASES = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (STUDY + f"runs: {'9' * 5000}", "a number has 5,000 digits"),
        (STUDY + f"runs: 0x{'f' * 5000}", "a number has 5,002 digits"),
        (STUDY + f"runs: 1{':1' * 50_000}", "a number has 100,001 digits"),
        (STUDY + "runs: 1000000000", "from 1 to 10,000"),
        (STUDY + "runs: " + "[" * 5000 + "]" * 5000, "nested more than 20 deep"),
        (STUDY + "about: 2001-99-99", "cannot be read"),
        (STUDY + ALIASES, "more than 10,000 values"),
        (STUDY + ALIASES + "\n? *a11\n: 1", "more than 10,000 values"),
        (STUDY + "? [a, b]\n: 1", "where a name belongs"),
        (STUDY + "skip: [" + "1, " * 30_000 + "]", "more than 10,000 values"),
        (STUDY + "about: !!timestamp x", "cannot be read"),
        (STUDY + 'about: "\\ud800"', "half a character"),
        (STUDY.replace("{lam: 0}", "{lam: {from: 0, to: 1, step: 1.0e-9}}"), "do not lead from"),
        (STUDY.replace("baseline: {lam: 0}", "x-{lam}: {lam: {from: 0, to: 1e308, step: 1e-308}}", 1), "give a number"),
        (
            STUDY.replace(
                "  baseline: {lam: 0}",
                "  baseline: {lam: 0}\n  x-{lam}-{q}-{balance}: {" + ", ".join(
                    f"{name}: {{from: 1, to: 2000, step: 1}}" for name in ("lam", "q", "balance", "weight_decay")
                ) + "}",
            ),
            "more than 2,000 variants",
        ),
        (STUDY.replace("{lam: 0}", "{lam: [" + ", ".join(["{from: 0, to: 2000, step: 1}"] * 1200) + "]}"), "more than 2,000"),
        (STUDY + "about: " + "x" * 2**21, "a study has at most"),
        (STUDY + "choose: {best: [" + ", ".join(f"v{i}" for i in range(5000)) + "]}", "give at most 2,000"),
        (STUDY.replace("{lam: 0}", "{lam: 0, hidden: 1000000}"), "at most 65536"),
        (
            STUDY.replace("{lam: 0}", "{lam: 0}\n  x-{lam}: {lam: {from: 1, to: 1000, step: 1}}", 1) + "runs: 10000",
            "10,010,000 trials; give at most 200,000",
        ),
    ],
    ids=lambda value: None if "\n" in value else value,
)  # fmt: skip
def test_a_study_without_end_is_refused_with_its_name(tmp_path, text, says):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "content",
    [
        {"pid": 10**30},
        {"pid": -1},
        {"pid": 0},
        {"pid": 1e300},
        {"pid": True},
        {"pid": "1"},
        {"ids": "abc"},
        {"ids": [1, 2]},
        {"ids": [[]]},
        {"host": 7},
        {"host": None},
        {"token": {}},
        {"process_start": 5},
        {"process_start": []},
    ],
)
def test_a_claim_with_absurd_values_does_not_count(tmp_path, content):
    good = {"host": this_host(), "pid": 1, "process_start": None, "token": "t", "ids": ["a"]}
    (tmp_path / "x.json").write_text(json.dumps(good))
    assert [found.pid for found in claims(tmp_path)] == [1]
    (tmp_path / "x.json").write_text(json.dumps(good | content))
    assert claims(tmp_path) == []
    assert claim(tmp_path, "y", ["a"]) is not None


@pytest.mark.parametrize(
    "text", ["[" * 10_000, '{"pid": ' + "9" * 5000 + "}", "", "null", "[]", '"x"', '{"ids": NaN}', "\ufeff{}"]
)
def test_a_claim_that_is_none_does_not_count(tmp_path, text):
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert claims(tmp_path) == []
    assert claim(tmp_path, "y", ["a"]) is not None
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), -1.0, 8e34])
def test_a_time_that_no_training_takes_is_damage(tmp_path, seconds):
    from dataclasses import replace

    Store(tmp_path).add([replace(record, seconds=seconds) for record in small_records()])
    (problem,) = Store(tmp_path).problems()
    assert "seconds" in problem.reason
    assert Store(tmp_path).ids() == set()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--weight", ""), "--weight is empty"),
        (("--id", ""), "--id is empty"),
        (("--seed", "-1"), "--seed is -1; give a whole number from 0"),
        (("--seed", "99999999999999999999"), "--seed is"),
        (("--hidden", "1000000"), "--hidden is 1000000; give a whole number of at most 65536"),
        (("--layers", "1000000"), "--layers is 1000000; give a whole number of at most 1000"),
        (("--hidden", "65536", "--layers", "9"), "the weights of one run"),
    ],
)
def test_an_option_that_cannot_be_is_one_sentence(tmp_path, monkeypatch, capsys, options, says):
    nodes, edges, _ = write_club(tmp_path)
    ids = () if "--id" in options else ("--id", "member")
    command = [
        "sharpen",
        "fit",
        str(nodes),
        str(edges),
        *ids,
        "--label",
        "side",
        "--quiet",
        "--out",
        str(tmp_path / "out"),
    ]
    assert ended(monkeypatch, [*command, *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sharpen: ")
    assert says in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", [("fit", "nodes.csv", "edges.csv", "--id", "member"), ("compare", "--splits", "1")])
@pytest.mark.parametrize("value", ["abc", "-1", "1e3", "9" * 50])
def test_a_world_size_that_is_no_number_is_one_sentence(tmp_path, monkeypatch, capsys, command, value):
    write_club(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", value)
    assert ended(monkeypatch, ["sharpen", *command]) == 2
    assert "WORLD_SIZE" in capsys.readouterr().err.splitlines()[-1]


def ended(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> int:
    """The exit code of the command itself."""
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


@pytest.mark.parametrize(
    "text",
    [
        "a=" + "[" * 900,
        '{"a": ' + "[" * 900,
        "a=!!timestamp x",
        "a=1" + ":1" * 400,
        "a=&a [*a]",
        "=",
        "a=" + "9" * 2000,
    ],
    ids=lambda text: text[:12],
)
def test_arguments_of_a_model_that_cannot_be_are_one_sentence(monkeypatch, capsys, text):
    assert ended(monkeypatch, ["sharpen", "compare", "digits", "--model", "appnp", "--model-args", text]) == 2
    *_, line = (
        capsys.readouterr().err.splitlines()
    )  # a text of which only the model can say that it is none comes later
    assert line.startswith("sharpen: ")
    assert len(line) < 400


@pytest.mark.parametrize("value", [[10**5000], {"b": {1, 2}}, float("nan"), "[" * 9000], ids=range(4))
def test_arguments_of_a_model_that_no_text_can_hold_are_refused(value):
    with pytest.raises(InputError) as caught:
        Trial(model="appnp", model_args={"a": value} if not isinstance(value, str) else value)
    assert len(str(caught.value)) < 400


def test_lone_surrogates_in_ids_are_refused_by_line(tmp_path: Path) -> None:
    from sharpen.files import read_nodes_and_edges

    path = tmp_path / "nodes.jsonl"
    path.write_bytes(b'{"id": "a"}\n{"id": "\\ud800"}\n')
    with pytest.raises(InputError, match=r"nodes\.jsonl line \d, column 'id' cannot be kept"):
        read_nodes_and_edges(path)
