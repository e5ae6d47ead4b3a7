"""Protocols and plans: the paper's runs, twenty pairs, and trials whose ids are final; no data is needed."""

import pytest

from sharpen.datasets import list_datasets, load_dataset
from sharpen.datasets.catalog import DATASETS
from sharpen.errors import InputError
from sharpen.studies import load_study, plan, runs
from sharpen.training.trials import resolve
from sharpen.trial import Trial


def ids(study: str, protocol: str, dataset: str = "cora", model: str = "gcn") -> dict[str, list[str]]:
    (cell,) = plan(load_study(study), protocol, [dataset], [model])
    return {name: [trial.id for trial in trials] for name, trials in cell.trials.items()}


def test_every_dataset_has_a_protocol():
    assert all(runs(info.name, protocol) for info in list_datasets() for protocol in ("paper", "paired"))
    assert len({info.name for info in list_datasets()}) == len(DATASETS)


@pytest.mark.parametrize(
    ("dataset", "splits", "count"),
    [
        ("cora", 1, 5),
        ("physics", 1, 3),
        ("wikics", 3, 3),
        ("squirrel", 10, 10),
        ("minesweeper", 3, 3),
        ("ogbn-arxiv", 1, 5),
    ],
)
def test_the_papers_runs(dataset, splits, count):
    pairs = runs(dataset, "paper")
    assert len({split for split, _ in pairs}) == splits
    assert [seed for _, seed in pairs] == list(range(count))


@pytest.mark.parametrize("dataset", DATASETS)
def test_twenty_pairs_without_a_common_seed_each_split_equally_often(dataset):
    pairs = runs(dataset, "paired")
    names = [split for split, _ in pairs]
    assert [seed for _, seed in pairs] == list(range(20))
    assert len({names.count(name) for name in names}) == 1
    assert len(set(names)) == {"ogbn-arxiv": 1, "ogbn-products": 1}.get(
        dataset, 10 if "given" in names[0] and dataset != "wikics" else 20
    )


@pytest.mark.parametrize("dataset", ["digits", "cora", "photo", "chameleon", "minesweeper"])
def test_the_names_are_those_of_the_data(dataset, data_root):
    splits = load_dataset(dataset, data_root).splits
    assert [split for split, _ in runs(dataset, "paper")][: len(splits.paper)] == list(splits.paper)[
        : len(runs(dataset, "paper"))
    ]
    assert list(dict.fromkeys(split for split, _ in runs(dataset, "paired"))) == list(splits.paired_names(20))
    for split, _ in runs(dataset, "paper") + runs(dataset, "paired"):
        assert splits[split].train.numel()


def test_trials_are_complete_so_that_training_changes_nothing_about_them():
    digits = load_dataset("digits")
    mine = load_study("universal")
    (cell,) = plan(mine, "paper", ["cora"], ["sage"])
    for trial in (trial for trials in cell.trials.values() for trial in trials):
        assert None not in [
            value for name, value in vars(trial).items() if name not in ("lam_max", "batching", "model_args", "prior")
        ]
    open_ = Trial(model="gcn", lam=0.25).resolve(*runs("digits", "paper")[0][:1], dataset="digits")
    assert resolve(open_, digits).id == open_.id


def test_studies_share_trials():
    main, universal, dynamics = ids("main", "paper"), ids("universal", "paper"), ids("entropy-dynamics", "paper")
    assert universal["baseline"] == main["baseline"] == dynamics["baseline"]
    assert universal["ts-0.25"] == main["ts-0.25"] == ids("labeled-term", "paper")["ts-0.25"]
    assert ids("offset", "paper")["ts-tuned"] == main["ts-1.35"] == ids("meta-lambda", "paper")["ts-tuned"]
    assert set(main["baseline"]).isdisjoint(ids("main", "paired")["baseline"])


def test_variants_of_a_cell_run_on_the_same_pairs():
    for cell in plan(load_study("entropy-order"), "paired", ["squirrel"]):
        pairs = [[(trial.split, trial.seed) for trial in trials] for trials in cell.trials.values()]
        assert pairs[0] == pairs[1] == runs("squirrel", "paired")


def test_cells_can_be_chosen_and_those_left_out_say_why():
    cells = plan(load_study("offset"), "paper", ["cs"])
    assert [(str(cell.cell), bool(cell.trials), cell.reason) for cell in cells] == [
        ("cs gcn", True, None),
        ("cs sage", True, None),
        ("cs gat", False, "λ* is 0 in this cell"),
    ]
    assert plan(load_study("comparison"), "paper") == []
    assert plan(load_study("main"), "paper", ["ogbn-arxiv"]) == []


def test_fewer_epochs_are_other_trials():
    (cell,) = plan(load_study("universal"), "paper", ["cora"], ["gcn"], max_epochs=5)
    assert {trial.epochs for trials in cell.trials.values() for trial in trials} == {5}
    assert set(ids("universal", "paper")["baseline"]).isdisjoint(trial.id for trial in cell.trials["baseline"])
    (whole,) = plan(load_study("universal"), "paper", ["cora"], ["gcn"], max_epochs=10_000)
    assert whole.trials["baseline"][0].id == ids("universal", "paper")["baseline"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "pared"}, "did you mean 'paired'"),
        ({"protocol": "paper", "datasets": ["coral"]}, "did you mean 'cora'"),
        ({"protocol": "paper", "models": ["gnc"]}, "did you mean 'gcn'"),
        ({"protocol": "paper", "max_epochs": 0}, "max_epochs is 0"),
    ],
)
def test_a_misspelt_name_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        plan(load_study("main"), **arguments)


def test_draws_with_a_number_of_labels_are_there():
    """What the catalog says of a graph's size is enough to name splits that can be drawn."""
    digits = load_dataset("digits")
    for number in (1, 5, 50):
        ((name, seed),) = runs("digits", f"few-{number}", 1)
        split = digits.splits[name]
        assert seed == 0
        assert len(split.train) == number * 10
        assert len(split.test) == 2 * len(split.val)
    assert runs("cora", "few-5", 2) == [("balanced-5-500-1000-seed0", 0), ("balanced-5-500-1000-seed1", 1)]
    assert runs("squirrel", "share-50", 1) == [("stratified-50-20-30-seed0", 0)]


def test_all_protocols_of_a_study_are_planned_one_after_the_other():
    study = load_study("label-rates")
    cells = plan(study, "all", ["cora", "squirrel"], ["gcn"])
    assert [str(cell.cell) for cell in cells] == ["cora gcn"] * 7 + ["squirrel gcn"] * 3
    trials = {trial.id for cell in cells for own in cell.trials.values() for trial in own}
    assert len(trials) == 10 * 30 * len(study.variants)
    oracle = cells[0].trials["true-prior"][0]
    assert (oracle.prior, oracle.balance) == ("oracle", 0.25)
