"""Trials: the paper's settings, validation, identity."""

import dataclasses

import pytest

from sharpen import InputError, Trial
from sharpen.paper import setting


def test_a_trial_that_names_only_a_model_takes_the_papers_setting():
    trial = Trial(model="sage").resolve("given-0", "physics")
    assert (trial.layers, trial.hidden, trial.dropout, trial.norm, trial.residual) == (2, 64, 0.7, "batch", True)
    assert (trial.lr, trial.weight_decay, trial.epochs) == (0.001, 5e-4, 1500)
    assert (trial.dataset, trial.split, trial.lam_labeled) == ("physics", "given-0", 0.0)


def test_what_is_said_is_kept():
    trial = Trial(model="gcn", dataset="cora", hidden=16, residual=True, lam=0.5, lam_labeled=0.0, split="mine")
    resolved = trial.resolve("other")
    assert (resolved.hidden, resolved.residual, resolved.lam_labeled, resolved.split) == (16, True, 0.0, "mine")
    assert resolved.layers == 3


def test_every_cell_of_the_paper_has_a_setting():
    datasets = "cora citeseer pubmed computer photo cs physics wikics squirrel chameleon amazon-ratings roman-empire minesweeper"
    for dataset in datasets.split():
        assert setting(dataset, "mlp")["hidden"] == 512
        for model in ("gcn", "sage", "gat"):
            assert setting(dataset, model)["epochs"] >= 200
    assert setting("roman-empire", "gcn")["input_linear"] is True
    assert setting("ogbn-arxiv", "sage") == setting("ogbn-arxiv", "gcn") | {"layers": 4, "hidden": 256}


def test_identity_is_that_of_the_description():
    a = Trial(model="gcn", dataset="cora", lam=0.25).resolve("s")
    assert a.id == Trial(model="gcn", dataset="cora", lam=0.25, layers=3).resolve("s").id
    for change in ({"seed": 1}, {"lam": 0.3}, {"split": "t"}, {"model": "gat"}, {"sharpen_val": False}):
        assert dataclasses.replace(a, **change).id != a.id
    learned = [Trial(dataset="cora", lam_max=m).resolve("s") for m in (None, 1, 1.0, 2.0)]
    assert learned[1] == learned[2]
    assert len({trial.id for trial in learned}) == 3
    assert Trial(lam=1).id == Trial(lam=1.0).id
    assert Trial(lam_labeled=-0.0).id == Trial(lam_labeled=0.0).id
    assert Trial(residual=1).id == Trial(residual=True).id


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"model": "gnc"}, "did you mean 'gcn'"),
        ({"norm": "bach"}, "did you mean 'batch'"),
        ({"layers": 0}, "layers is 0"),
        ({"hidden": 2.5}, "hidden is 2.5"),
        ({"epochs": -1}, "epochs is -1"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"lr": -0.1}, "lr is -0.1"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"lam": float("nan")}, "lam is nan"),
        ({"balance": float("inf")}, "balance is inf"),
        ({"q": 0}, "q is 0"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"lam_max": 0}, "lam_max is 0; give a number above 0"),
        ({"lam_max": float("inf")}, "lam_max is inf"),
        ({"lam_max": 1.0, "lam": 0.25}, "lam is 0.25, but lam_max is given"),
        ({"lam_max": 1.0, "lam_labeled": -0.5}, "lam_labeled is -0.5, but lam_max is given"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(bad, message):
    with pytest.raises(InputError, match=message):
        Trial(**bad)


def test_an_id_is_for_ever() -> None:
    """Stores name trials by it: this id may not change, whatever fields are added."""
    trial = Trial(model="gcn", dataset="cora", lam=0.25, seed=3).resolve("balanced-20-500-1000-seed123")
    assert trial.id == "e4cf0065d201ca574abf2947"


def test_a_field_that_comes_later_is_none_by_default():
    """Else the ids of all records and traces there are would change."""
    assert {f.name for f in dataclasses.fields(Trial) if f.default is not None} == {
        "model",
        "lam",
        "q",
        "balance",
        "sharpen_val",
        "seed",
    }
