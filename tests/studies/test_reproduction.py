"""The protocol ``published``: each method on the split that its mean was published on."""

from __future__ import annotations

from dataclasses import replace

from sharpen.models.registry import REGISTRY
from sharpen.models.zoo.settings import settings_of
from sharpen.paper import published, setting
from sharpen.studies import load_study, plan
from sharpen.studies.protocol import runs
from sharpen.studies.reproduction import target


def cells():
    return {tuple(cell.cell): cell.trials["published"] for cell in plan(load_study("field-published"), "published")}


def test_every_pair_with_a_published_setting_and_mean_is_run_as_it_was_published():
    planned = cells()
    for (dataset, model), trials in planned.items():
        known = target(dataset, model)
        cited = published("comparison").get((dataset, REGISTRY[model].title, "published"))
        assert known.mean == (cited.mean if cited is not None else settings_of(model).scores[dataset]["mean"])
        splits = {trial.split for trial in trials}
        if known.split == "public":
            assert splits == {"public"}
        else:
            assert splits <= {split for split, _ in runs(dataset, "paper", 10)}
        assert len(splits) in (1, 10)
        assert len(trials) == (10 if len(splits) == 10 else 5)
        given = setting(dataset, model) | settings_of(model).of(dataset)
        for name in ("lr", "weight_decay", "epochs"):
            assert getattr(trials[0], name) == given[name], (dataset, model, name)
        assert trials[0].lam == 0
    assert len(planned) > 100


def test_what_cannot_be_made_is_left_out():
    planned = cells()
    assert ("cora", "fsgnn") not in planned  # ten splits of its own that we have not
    assert ("cora", "h2gcn") not in planned  # no setting of its own
    assert ("photo", "elugcn") not in planned  # a setting, but no mean
    assert ("cora", "appnp") not in planned
    assert planned["cora", "normprop"][0].split == "public"
    assert planned["cora", "sgformer"][0].split == "balanced-20-500-1000-seed123"


def test_the_networks_of_the_paper_share_its_own_runs():
    main = plan(load_study("main"), "paper", ["cora"], ["gcn"])[0].trials["baseline"]
    assert [trial.id for trial in cells()["cora", "gcn"]] == [trial.id for trial in main]


def test_given_splits_share_the_runs_of_the_field():
    field = load_study("field-tuning").variants["configuration-0"].trial("squirrel", "sgformer")
    drawn = runs("squirrel", "paired", 10)
    own = [trial.id for trial in cells()["squirrel", "sgformer"]]
    assert own == [replace(field.resolve(split), split=split, seed=seed).id for split, seed in drawn]
