"""The runner in one process: what it trains, what it leaves out, when it ends."""

import re
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sharpen
from sharpen.errors import InputError
from sharpen.store import Store, StoreError
from sharpen.studies import load_study, plan
from sharpen.studies import runner as runner_module
from sharpen.studies.cost import Costs
from sharpen.studies.runner import run
from sharpen.studies.status import progress
from sharpen.studies.work import Sizes, Work
from sharpen.training import full_batch
from sharpen.trial import Record, Trial


def rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in (folder / "records").glob("*.parquet"))


def test_everything_is_trained_once_and_is_what_train_gives(tmp_path, tiny):
    study, store, lines = load_study(tiny), Store(tmp_path / "store"), []
    summary = run(study, store, device="cpu", max_members=5, say=lines.append)
    assert (summary.wanted, summary.recorded, summary.trained, summary.left, summary.ended) == (24, 0, 24, 0, "done")
    assert rows(tmp_path / "store") == 24
    assert max(store.frame()["members"]) <= 5
    assert lines[0].startswith("tiny (paper): 24 trials, 0 recorded, 24 to train in 6 populations, about ")
    assert len(lines) == 7
    assert lines[1].startswith(("digits mlp: 4 runs in ", "digits gcn: 4 runs in "))
    trials = [trial for cell in plan(study, "paper") for each in cell.trials.values() for trial in each]
    frame = store.frame(trials)
    alone = sharpen.train(sharpen.load_dataset("digits"), trials[-2:], device="cpu", progress=False)
    assert frame["test"].tolist()[-2:] == pytest.approx([record.test for record in alone], abs=0.002)
    again = run(study, store, device="cpu", say=lines.append)
    assert (again.recorded, again.trained) == (24, 0)
    assert lines[-1].startswith("tiny (paper): 24 trials, 24 recorded, 0 to train in no populations")
    assert store.claims() == []


def test_every_population_is_kept_when_it_is_trained(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(full_batch, "population_size", lambda *arguments: 3)  # as memory or cache would divide them
    store, on_disk, real = Store(tmp_path / "store"), [], full_batch._train_population

    def spy(*arguments):
        on_disk.append(len(Store(tmp_path / "store").ids()))
        return real(*arguments)

    monkeypatch.setattr(full_batch, "_train_population", spy)
    summary = run(load_study(tiny), store, device="cpu", models=["gcn"], max_members=12)
    assert summary.trained == 12
    assert on_disk == [0, 3, 6, 9]
    assert set(store.frame()["members"]) == {3}


def test_a_store_that_fails_ends_the_run_and_blames_no_cell(tmp_path, tiny, monkeypatch):
    def full(*arguments, **options):
        raise StoreError("cannot write to the store (No space left on device); free space")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(StoreError, match="No space left"):
        run(load_study(tiny), Store(tmp_path / "store"), device="cpu")
    assert Store(tmp_path / "store").claims() == []


def test_a_store_that_cannot_be_written_is_said_before_training(tmp_path, tiny, monkeypatch):
    (tmp_path / "records").write_text("in the way")
    monkeypatch.setattr(runner_module, "train", lambda *arguments, **options: pytest.fail("trained"))
    with pytest.raises(StoreError, match="cannot write"):
        run(load_study(tiny), Store(tmp_path), device="cpu")


def test_records_of_another_precision_are_accepted_and_said(tmp_path, tiny):
    study, store, lines = load_study(tiny), Store(tmp_path / "store"), []
    run(study, store, device="cpu", models=["mlp"], precision="float64")
    summary = run(study, store, device="cpu", say=lines.append)
    assert (summary.recorded, summary.trained) == (12, 12)
    assert [line for line in lines if "float64" in line] == [
        "12 of the records are of float64 and count as they are; the report leaves pairs of two precisions out."
    ]


def test_studies_share_what_they_have_in_common(tmp_path, tiny):
    store, study = Store(tmp_path / "store"), load_study(tiny)
    other = replace(
        study, name="other", models=("gcn",), variants={"ts-0.5": study.variants["ts-0.5"]}, baseline="ts-0.5"
    )
    assert run(other, store, device="cpu").trained == 4
    both = run([study, other], store, device="cpu")
    assert (both.wanted, both.recorded, both.trained) == (24, 4, 20)
    assert rows(tmp_path / "store") == 24


def test_traces_are_kept_where_a_study_wants_them_and_made_up_for_later(tmp_path, tiny):
    store, study = Store(tmp_path / "store"), load_study(tiny)
    run(study, store, device="cpu", models=["gcn"])
    assert store.traced_ids() == set()
    before = store.frame()
    run(replace(study, traces=True), store, device="cpu", models=["gcn"])
    assert store.traced_ids() == store.ids()
    assert rows(tmp_path / "store") == 12
    assert store.frame().equals(before)
    traces = next(iter(store.traces(store.ids()).values()))
    for name in ("entropy_labeled", "entropy_unlabeled", "shannon_labeled", "shannon_unlabeled"):
        assert len(traces[name]) == 6


def test_a_run_that_is_made_again_for_its_trace_never_changes_a_score(tmp_path, tiny, monkeypatch):
    """On a GPU it gives other scores: the same trial among other members."""
    store, study, lines = Store(tmp_path / "store"), load_study(tiny), []
    score = 0.5

    def train(data, trials, *, on_records, **options):
        traces = {"loss": np.full(2, score, dtype=np.float32)}
        made = [Record(t, score, score, 1, "ok", 3.0, "cpu", "float32", traces=traces, members=12) for t in trials]
        on_records(made)
        return made

    monkeypatch.setattr(runner_module, "train", train)
    run(study, store, device="cpu", models=["gcn"])
    before, score = store.frame(), 0.75
    summary = run(replace(study, traces=True), store, device="cpu", models=["gcn"], say=lines.append)
    assert summary.trained == 12
    assert store.frame().equals(before)
    assert set(store.frame()["test"]) == {0.5}
    assert {float(traces["loss"][0]) for traces in store.traces(store.ids()).values()} == {0.75}
    assert store.runs()["seconds"].sum() == 2 * before["seconds"].sum()
    assert "12 of the trials are recorded without traces" in lines[0]
    again = run(replace(study, traces=True), store, device="cpu", models=["gcn"], say=lines.append)
    assert (again.recorded, again.trained) == (12, 0)


def test_what_cannot_be_run_is_left_out_with_its_reason_and_the_rest_goes_on(tmp_path, tiny, monkeypatch):
    real = runner_module.train

    def train(data, trials, **options):
        if trials[0].model == "mlp":
            raise InputError("one mlp does not fit in memory; use a smaller width")
        return real(data, trials, **options)

    monkeypatch.setattr(runner_module, "train", train)
    store = Store(tmp_path / "store")
    summary = run(load_study(tiny), store, device="cpu")
    assert summary.trained == 12
    assert {str(cell): reason for cell, reason in summary.skipped.items()} == {
        "digits mlp": "one mlp does not fit in memory; use a smaller width"
    }
    assert store.claims() == []


def test_data_that_is_not_at_hand_is_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    summary = run(load_study("universal"), Store(tmp_path / "store"), device="cpu", data=tmp_path, models=["gcn"])
    assert summary.trained == summary.left == 0
    assert len(summary.skipped) == 13
    assert all("not on this machine" in reason for reason in summary.skipped.values())
    monkeypatch.setenv("SHARPEN_DATA", str(tmp_path / "nowhere"))
    summary = run(load_study("arxiv"), Store(tmp_path / "store"), device="cpu")
    assert all("does not exist" in reason for reason in summary.skipped.values())


def test_a_cell_that_is_complete_needs_no_data(tmp_path, tiny, monkeypatch):
    store, study = Store(tmp_path / "store"), load_study(tiny)
    run(study, store, device="cpu", models=["mlp"])
    monkeypatch.setattr("sharpen.studies.work.why_no_data", lambda dataset, data: "it is gone")
    summary = run(study, store, device="cpu")
    assert {str(cell): reason for cell, reason in summary.skipped.items()} == {"digits gcn": "it is gone"}
    assert (summary.recorded, summary.trained) == (12, 0)


def test_what_other_runners_have_claimed_is_left_to_them(tmp_path, tiny):
    store, study = Store(tmp_path / "store"), load_study(tiny)
    (gcn,) = plan(study, "paper", models=["gcn"])
    claim = store.claim(gcn.trials["baseline"])
    assert claim is not None
    summary = run(study, store, device="cpu")
    assert (summary.trained, summary.elsewhere, summary.left) == (20, 4, 0)
    (cell,) = progress(study, "paper", store, Costs("cpu", "cpu", "float32"), models=["gcn"])
    assert (cell.done, cell.running, cell.missing) == (8, 4, 0)
    claim.release()
    assert run(study, store, device="cpu").trained == 4


def test_seconds_are_a_runners_share_of_the_machine(tmp_path, tiny, monkeypatch):
    took = []

    def timed(data, trials, **options):
        records = sharpen.train(data, trials, **{**options, "on_records": lambda records: None})
        took.extend(record.seconds for record in records)
        options["on_records"](records)
        return records

    monkeypatch.setattr(runner_module, "train", timed)
    monkeypatch.setattr(runner_module._Here, "_others", lambda here: 3)
    store = Store(tmp_path / "store")
    run(load_study(tiny), store, device="cpu")
    assert sorted(store.frame()["seconds"]) == pytest.approx(sorted(seconds / 4 for seconds in took))


def test_it_ends_after_the_population_in_flight(tmp_path, tiny):
    store, stop = Store(tmp_path / "store"), threading.Event()

    def say(line: str) -> None:
        if " runs in " in line:
            stop.set()

    summary = run(load_study(tiny), store, device="cpu", max_members=4, stop=stop, say=say)
    assert (summary.trained, summary.left, summary.ended) == (4, 20, "interrupted")
    assert rows(tmp_path / "store") == 4


def test_nothing_is_started_that_would_not_fit_into_the_time_limit(tmp_path, tiny):
    store = Store(tmp_path / "store")
    summary = run(load_study(tiny), store, device="cpu", time_limit=0.0)
    assert (summary.trained, summary.left, summary.ended) == (0, 24, "time")
    assert run(load_study(tiny), store, device="cpu", time_limit=3600.0).ended == "done"


def test_the_time_that_a_limit_is_said_to_need_is_enough(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(runner_module.time, "monotonic", lambda: 0.0)
    study, store = load_study(tiny), Store(tmp_path / "store")
    needed = run(study, store, device="cpu", time_limit=0.0).needed
    assert run(study, store, device="cpu", time_limit=0.9 * needed).trained == 0
    assert run(study, store, device="cpu", time_limit=1.01 * needed).trained > 0


def test_a_time_limit_counts_that_other_runners_have_the_machine_too(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(runner_module.time, "monotonic", lambda: 0.0)
    study, store = load_study(tiny), Store(tmp_path / "store")
    alone = run(study, store, device="cpu", time_limit=0.0).needed
    monkeypatch.setattr(runner_module._Here, "_others", lambda here: 3)
    assert run(study, store, device="cpu", time_limit=0.0).needed == pytest.approx(4 * alone)
    assert run(study, store, device="cpu", time_limit=2 * alone).trained == 0


def test_a_limit_that_let_something_be_trained_is_not_called_too_short(tmp_path, tiny, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(runner_module.time, "monotonic", lambda: clock[0])

    def say(line: str) -> None:
        clock[0] += 50.0 * (" runs in " in line)

    summary = run(load_study(tiny), Store(tmp_path / "store"), device="cpu", max_members=4, time_limit=60.0, say=say)
    assert (summary.trained, summary.ended) == (8, "time")
    assert summary.needed is None


def test_an_error_of_our_own_gives_the_claim_back(tmp_path, tiny, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(runner_module, "train", broken)
    store = Store(tmp_path / "store")
    with pytest.raises(RuntimeError):
        run(load_study(tiny), store, device="cpu")
    assert store.claims() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device is 'gpu'"),
        ({"device": "cpu", "precision": "half"}, "precision is 'half'"),
        ({"device": "cpu", "precision": "tf32"}, "on GPUs only"),
        ({"device": "cpu", "protocol": "pared"}, "did you mean 'paired'"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_done(tmp_path, tiny, options, message):
    with pytest.raises(InputError, match=message):
        run(load_study(tiny), Store(tmp_path / "store"), **options)
    assert not (tmp_path / "store").exists()


def test_the_cheapest_population_comes_first_and_none_is_too_large():
    work = Work([load_study("main")], "paper")
    costs = Costs("cuda", "NVIDIA H200", "tf32")
    populations = work.populations(work.trials.values(), costs, Sizes(costs))
    seconds = [costs.seconds(population) for population in populations]
    assert seconds == sorted(seconds)
    assert sum(map(len, populations)) == 9676
    assert max(map(len, populations)) == 205
    for population in populations:
        assert len({(trial.dataset, trial.model, trial.epochs) for trial in population}) == 1
    limited = work.populations(work.trials.values(), costs, Sizes(costs, time_limit=540.0))
    assert max(costs.seconds(population) for population in limited) <= 270
    assert len(limited) > len(populations)
    hardly_any_time = work.populations(work.trials.values(), costs, Sizes(costs, time_limit=10.0))
    assert sum(map(costs.seconds, hardly_any_time)) < 1.5 * sum(
        seconds
    )  # no crumbs, each of which would cost as much again


# Milliseconds per epoch of one member, from docs/performance.md.
MEASURED = [
    ("cuda", "tf32", "cora", "gcn", 0.126),
    ("cuda", "tf32", "pubmed", "sage", 1.599),
    ("cuda", "tf32", "physics", "gat", 1.606),
    ("cuda", "tf32", "minesweeper", "sage", 0.417),
    ("cuda", "float32", "squirrel", "gat", 1.976),
    ("cuda", "float32", "chameleon", "gcn", 0.233),
    ("cpu", "float32", "cora", "gcn", 115),
    ("cpu", "float32", "minesweeper", "gat", 412),
]


@pytest.mark.parametrize(("kind", "precision", "dataset", "model", "milliseconds"), MEASURED)
def test_the_formula_is_near_what_was_measured(kind, precision, dataset, model, milliseconds):
    costs, trial = Costs(kind, None, precision), Trial(model=model, dataset=dataset).resolve("s")
    more, less = costs.seconds([trial] * 200), costs.seconds([trial] * 100)
    each = 1000 * (more - less) / 100 / trial.epochs
    assert 0.66 < each / milliseconds < 1.5


def test_past_records_make_estimates_better(tmp_path):
    trial = Trial(model="gcn", dataset="cora").resolve("balanced-20-500-1000-seed123")
    other = Trial(model="gat", dataset="pubmed").resolve("balanced-20-500-1000-seed123")
    slow = sharpen.Record(trial, 0.8, 0.8, 3, "ok", seconds=10.0, device="slow card", precision="tf32")
    fresh = Costs("cuda", "slow card", "tf32")
    store = Store(tmp_path)
    slow = replace(slow, members=100)
    store.add([replace(slow, trial=replace(trial, seed=seed)) for seed in range(100)])
    known = Costs("cuda", "slow card", "tf32", store.frame())
    assert known.seconds([trial] * 100) == pytest.approx(1000, rel=0.01)
    assert known.seconds([other] * 100) > 20 * fresh.seconds([other] * 100)  # as much off as the cell that is known
    elsewhere = Costs("cuda", "other card", "tf32", store.frame())
    assert elsewhere.seconds([trial] * 100) == fresh.seconds([trial] * 100)
    fresh.learn([slow] * 100)
    assert fresh.seconds([trial] * 100) == pytest.approx(1000, rel=0.01)


def test_small_populations_teach_too_and_large_ones_more():
    trial = Trial(model="mlp", dataset="digits", epochs=60, hidden=32, layers=2).resolve("s")
    made = Record(trial, 0.8, 0.8, 3, "ok", seconds=0.2, device="cpu", precision="float32", members=4)
    costs = Costs("cpu", "cpu", "float32")
    costs.learn([replace(made, seconds=4.0)] * 4)  # the first of a process waits for what is loaded: it says nothing
    assert costs.seconds([trial] * 4) == Costs("cpu", "cpu", "float32").seconds([trial] * 4)
    for _ in range(3):
        costs.learn([made] * 4)
    assert costs.seconds([trial] * 4) == pytest.approx(0.8, rel=0.5)
    large = replace(made, seconds=0.05, members=200)
    costs.learn([large] * 200)
    assert costs.seconds([trial] * 200) == pytest.approx(10.0, rel=0.1)


def test_one_slow_population_does_not_mislead_for_long():
    trial = Trial(model="gcn", dataset="cora").resolve("s")
    made = Record(trial, 0.8, 0.8, 3, "ok", seconds=50.0, device="cpu", precision="float32")
    costs = Costs("cpu", "cpu", "float32")
    costs.learn([replace(made, seconds=500.0)])
    assert costs.seconds([trial]) > 400
    costs.learn([made])
    assert costs.seconds([trial]) == pytest.approx(50, rel=0.1)


def in_parts(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Populations that memory divides into parts of one run, each of which takes so long by the clock."""
    clock = [0.0]
    monkeypatch.setattr(runner_module.time, "monotonic", lambda: clock[0])

    def train(data, trials, *, on_records, **options):
        for trial in trials:
            clock[0] += seconds
            on_records([Record(trial, 0.5, 0.5, 1, "ok", seconds, "cpu", "float32")])

    monkeypatch.setattr(runner_module, "train", train)


def test_what_is_left_counts_the_population_in_flight_and_parts_are_told_now_and_then(tmp_path, tiny, monkeypatch):
    in_parts(monkeypatch, seconds=4.0)
    lines: list[str] = []
    run(load_study(tiny), Store(tmp_path / "store"), device="cpu", say=lines.append)
    pattern = r"digits (?:mlp|gcn): 3 runs in 12.0 s, best validation 50.00(?:; left: (\d+) runs, about (.*))?"
    left = [match.groups() for match in (re.fullmatch(pattern, line) for line in lines[1:]) if match is not None]
    assert [runs for runs, _ in left] == ["21", "18", "15", "12", "9", "6", "3", None]
    assert rows(tmp_path / "store") == 24
    assert len(list((tmp_path / "store" / "records").iterdir())) == 24  # and yet every part is kept at once
    assert [float(about.removesuffix(" s")) for _, about in left[-3:-1]] == pytest.approx([24, 12], rel=0.1)


def test_parts_of_a_population_that_fails_are_told_before_the_reason(tmp_path, tiny, monkeypatch):
    in_parts(monkeypatch, seconds=0.1)
    whole = runner_module.train

    def train(data, trials, **options):
        whole(data, trials[:2], **options)
        raise InputError("it does not fit; use a smaller width")

    monkeypatch.setattr(runner_module, "train", train)
    lines: list[str] = []
    summary = run(load_study(tiny), Store(tmp_path / "store"), device="cpu", models=["gcn"], say=lines.append)
    assert summary.trained == 2
    assert lines[1].startswith("digits gcn: 2 runs in 0.2 s")
    assert lines[2] == "digits gcn: left out: it does not fit; use a smaller width"


def test_where_workers_would_idle_the_longest_populations_are_shared_out():
    work = Work([load_study("main")], "paper", ["pubmed", "physics"], ["gat"])
    costs = Costs("cuda", None, "tf32")
    alone = work.populations(work.trials.values(), costs, Sizes(costs))
    assert [len(population) for population in alone] == [205, 123]
    shared = work.populations(work.trials.values(), costs, Sizes(costs), workers=8)
    assert len(shared) == 8
    assert {trial.id for population in shared for trial in population} == set(work.trials)
    seconds = [costs.seconds(population) for population in shared]
    assert seconds == sorted(seconds)
    assert seconds[-1] < costs.seconds(alone[-1]) / 4
    assert all(len({trial.dataset for trial in population}) == 1 for population in shared)
    # As workers take them up one by one, what is left for the others stays as large.
    left = [trial for population in shared[1:] for trial in population]
    assert len(work.populations(left, costs, Sizes(costs), workers=7)) == 7
    quick = Work([load_study("main")], "paper", ["cora"], ["gcn"], max_epochs=1)
    assert len(quick.populations(quick.trials.values(), costs, Sizes(costs), workers=8)) == 1


def test_what_is_known_of_another_kind_of_device_does_not_count(tmp_path):
    trial = Trial(model="gcn", dataset="cora").resolve("balanced-20-500-1000-seed123")
    store = Store(tmp_path)
    record = sharpen.Record(trial, 0.8, 0.8, 3, "ok", seconds=1000.0, device="cpu", precision="float32")
    store.add([replace(record, trial=replace(trial, seed=seed)) for seed in range(3)])
    fresh, known = (Costs("cuda", None, "float32", frame) for frame in (None, store.frame()))
    assert known.seconds([trial]) == fresh.seconds([trial])
    assert Costs("cpu", None, "float32", store.frame()).seconds([trial]) == pytest.approx(1000, rel=0.01)
