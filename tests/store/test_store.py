"""The store: what is added is there, whole, once; what cannot be trusted is named and set aside."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharpen.errors import InputError
from sharpen.revision import PACKAGE, revision, tree_hash
from sharpen.store import Store, StoreError, part, record_files
from sharpen.trial import Record, Trial, to_frame


def records(count: int, first: int = 0, **fields: object) -> list[Record]:
    trials = [
        Trial(dataset="toy", **fields).resolve("mine")
        for fields in ({"seed": first + i} | fields for i in range(count))
    ]
    return [
        Record(
            trial=trial,
            val=0.5 + trial.seed / 1000,
            test=0.25,
            best_epoch=trial.seed,
            status="ok",
            seconds=0.5,
            device="cpu",
            precision="float32",
            members=count,
            versions={"torch": "2"},
            traces={"loss": np.linspace(1, 0, 5, dtype=np.float32), "val": np.full(3, trial.seed, dtype=np.float32)},
        )
        for trial in trials
    ]


def only_file(folder: Path) -> Path:
    (path,) = (folder / "records").iterdir()
    return path


def test_what_is_added_is_there(tmp_path):
    kept, some = Store(tmp_path), records(3)
    kept.add(some)
    frame = Store(tmp_path).frame()
    expected = to_frame(some)
    pd.testing.assert_frame_equal(
        frame[list(expected.columns)].sort_values("seed", ignore_index=True), expected, check_dtype=False
    )
    assert list(frame.columns) == ["id", *expected.columns, "versions", "revision", "created", "members", "rerun"]
    assert set(frame["rerun"]) == {0}
    assert set(frame["id"]) == kept.ids() == {record.trial.id for record in some}
    assert set(frame["members"]) == {3}
    assert json.loads(frame["versions"][0]) == {"torch": "2"}
    assert set(frame["revision"]) == {revision()}
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", frame["created"][0])
    for record in some:  # a row gives back its trial
        row = frame[frame["id"] == record.trial.id].iloc[0]
        fields = {name: None if pd.isna(row[name]) else row[name] for name in vars(record.trial) if name != "id"}
        assert Trial(**fields).id == record.trial.id


def test_an_empty_store_is_a_table_without_rows_and_makes_no_folder(tmp_path):
    kept = Store(tmp_path / "none")
    assert kept.ids() == set()
    assert list(kept.frame().columns)[:3] == ["id", "model", "dataset"]
    assert kept.traces(["a"]) == {}
    assert kept.claims() == kept.problems() == []
    assert not (tmp_path / "none").exists()


def test_rows_come_in_the_order_of_the_trials_that_are_asked_for(tmp_path):
    kept, some = Store(tmp_path), records(4)
    kept.add(some[:2])
    kept.add(some[2:])
    wanted = [some[3].trial, some[0].trial, replace(some[0].trial, seed=99)]
    assert kept.frame(wanted)["seed"].tolist() == [3, 0]


def test_a_trial_that_is_recorded_is_not_recorded_again(tmp_path):
    kept = Store(tmp_path)
    kept.add(records(3))
    before = only_file(tmp_path).read_bytes()
    kept.add([replace(record, val=0.9) for record in records(3)])
    assert only_file(tmp_path).read_bytes() == before
    kept.add([replace(record, val=0.9) for record in records(4)])  # one of four is new
    assert len(list((tmp_path / "records").iterdir())) == 2
    frame = kept.frame().sort_values("seed")
    assert frame["seed"].tolist() == [0, 1, 2, 3]
    assert frame["val"].tolist() == [0.5, 0.501, 0.502, 0.9]
    assert sum(pq.read_metadata(path).num_rows for path in (tmp_path / "records").iterdir()) == 4


def merged(tmp_path: Path, *parts: Path) -> Store:
    """A store with the files of several."""
    for source in parts:
        for path in source.glob("*/*.parquet"):
            target = tmp_path / "merged" / path.parent.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return Store(tmp_path / "merged")


def set_clock(monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    class Wrong(record_files.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(year, 1, 1, tzinfo=tz)

    monkeypatch.setattr(record_files, "datetime", Wrong)


@pytest.mark.parametrize("years", [(2000, 2040), (2040, 2000), (2026, 2026)])
def test_which_of_two_first_records_counts_does_not_depend_on_clocks(tmp_path, monkeypatch, years):
    """As after two machines whose clocks disagree have trained the same trials, and their stores were merged."""
    for name, year, score in zip("ab", years, (0.7, 0.9), strict=True):
        set_clock(monkeypatch, year)
        Store(tmp_path / name).add([replace(record, val=score) for record in records(3)], keep_traces=True)
    kept = merged(tmp_path, tmp_path / "a", tmp_path / "b")
    chosen = kept.frame().sort_values("seed")["val"].tolist()
    expected = [
        min((0.7, 0.9), key=lambda score, r=record: record_files.run_of(replace(r, val=score))) for record in records(3)
    ]
    assert chosen == expected
    assert len(kept.runs()) == 6
    runs = kept.runs().drop_duplicates("id")
    assert runs["traced"].all()  # the traces are those of the run whose scores count


@pytest.mark.parametrize("years", [(2000, 2040), (2040, 2000)])
def test_a_run_that_was_made_again_never_counts_as_the_first_whatever_the_clocks_say(tmp_path, monkeypatch, years):
    kept, first = Store(tmp_path), records(2)
    set_clock(monkeypatch, years[0])
    kept.add(first)
    set_clock(monkeypatch, years[1])
    kept.add(again(first, 0.9), keep_traces=True)
    fresh = Store(tmp_path)
    assert fresh.frame()["val"].tolist() == [0.5, 0.501]
    assert fresh.runs()["rerun"].tolist() == [0, 0, 1, 1]
    assert fresh.runs()["traced"].tolist() == [False, False, True, True]


def test_records_of_before_reruns_were_marked_are_told_apart_by_their_time(tmp_path, monkeypatch):
    first = records(2)
    for name, year, some in (("a", 2021, again(first, 0.9)), ("b", 2020, first)):
        set_clock(monkeypatch, year)
        Store(tmp_path / name).add(some)
        path = only_file(tmp_path / name)
        pq.write_table(pq.read_table(path).drop_columns(["rerun"]), path.with_name("new"))
        path.with_name("new").rename(before_checksums(path).with_name(f"{name}-toy-gcn-{path.name[-24:]}"))
        for old in (tmp_path / name / "records").glob("toy*"):
            old.unlink()
    assert merged(tmp_path, tmp_path / "a", tmp_path / "b").frame()["val"].tolist() == [0.5, 0.501]


def test_traces_are_kept_when_asked_for_and_can_be_added_later(tmp_path):
    kept, some = Store(tmp_path), records(3)
    kept.add(some)
    assert kept.traced_ids() == set()
    before = only_file(tmp_path).read_bytes()
    kept.add(some, keep_traces=True)
    assert only_file(tmp_path).read_bytes() == before
    found = Store(tmp_path).traces([some[1].trial.id, some[2].trial.id, "unknown"])
    assert set(found) == {some[1].trial.id, some[2].trial.id}
    for record in some[1:]:
        for name, values in record.traces.items():
            np.testing.assert_array_equal(found[record.trial.id][name], values)


def test_records_of_two_cells_are_not_one_population(tmp_path):
    with pytest.raises(InputError, match="2 cells"):
        Store(tmp_path).add(records(1) + records(1, model="gat"))


def settle(path: Path) -> None:
    """Makes a file older than one that may still be on its way in."""
    then = time.time() - part.SETTLED_SECONDS - 1
    os.utime(path, (then, then))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    """One bit of the middle, where values are."""
    content = bytearray(path.read_bytes())
    content[len(content) // 5] ^= 4
    path.write_bytes(content)


def rename(path: Path) -> None:
    path.rename(path.with_name("toy-gcn-0123456789abcdef.parquet"))


def foreign(path: Path) -> None:
    write(path, pa.table({"a": [1]}))


def before_checksums(path: Path) -> Path:
    """Takes the checksum out of a file's name, as the names of earlier versions are."""
    return path.rename(path.with_name(re.sub("-sha[0-9a-f]{16}", "", path.name)))


def write(path: Path, table: pa.Table) -> Path:
    """Writes a table in place of a file, as one that has the checksum that its name says."""
    path.unlink()
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    content = buffer.getvalue().to_pybytes()
    checksum = hashlib.sha256(content).hexdigest()[:16]
    path = path.with_name(re.sub("-sha[0-9a-f]{16}", f"-sha{checksum}", path.name))
    path.write_bytes(content)
    return path


def drop(path: Path) -> None:
    write(path, pq.read_table(path).drop_columns(["val"]))


def text(path: Path) -> None:
    path.rename(path.with_name("notes.txt"))


def wrong_type(path: Path) -> None:
    table = pq.read_table(path)
    place = table.column_names.index("val")
    write(path, table.set_column(place, "val", pa.array(["much"] * len(table))))


def rewritten(path: Path, **columns: list[object]) -> None:
    """The same trials by their ids, with other columns."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values, table[name].type))
    write(path, table)


def other_description(path: Path) -> None:
    rewritten(path, lam=[7.0] * 20, split=["nonsense"] * 20)


def one_other_seed(path: Path) -> None:
    rewritten(path, seed=[*range(19), 25])


def swapped(path: Path) -> None:
    """Every id is there, every description too, but not beside each other."""
    rewritten(path, seed=list(reversed(range(20))))


def doubled(path: Path) -> None:
    table = pq.read_table(path)
    write(path, pa.concat_tables([table, table]))


def without_an_id(path: Path) -> None:
    rewritten(path, id=[None] * 20)


def too_good(path: Path) -> None:
    rewritten(path, val=[0.5] * 19 + [5.0])


def negative(path: Path) -> None:
    rewritten(path, test=[0.5] * 19 + [-0.01])


def no_score(path: Path) -> None:
    rewritten(path, test=[0.5] * 19 + [float("nan")])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (other_description, "20 of its 20 trials are not those of their ids"),
        (one_other_seed, "1 of its 20 trials are not those of their ids"),
        (swapped, "20 of its 20 trials are not those of their ids"),
        (doubled, "it holds a trial twice"),
        (without_an_id, "does not hold the trials that its name says"),
        (too_good, "a val score that is not from 0 to 1"),
        (negative, "a test score that is not from 0 to 1"),
        (no_score, "a test score that is not from 0 to 1"),
        (cut, "cut off or damaged"),
        (empty, "cut off or damaged"),
        (flip, "cut off or damaged"),
        (rename, "does not hold the trials that its name says"),
        (foreign, "does not hold records"),
        (drop, "without val"),
        (text, "not a Parquet file"),
        (wrong_type, "its values are not those of records"),
    ],
)
def test_what_cannot_be_trusted_is_named_set_aside_and_kept(tmp_path, damage, reason):
    kept = Store(tmp_path)
    kept.add(records(20))
    damage(only_file(tmp_path))
    damaged = only_file(tmp_path)
    content = damaged.read_bytes()
    kept = Store(tmp_path)
    kept.add(records(2, first=50))
    assert kept.ids() == {record.trial.id for record in records(2, first=50)}
    (problem,) = kept.problems()
    assert reason in problem.reason
    assert problem.path == damaged
    (young,) = kept.set_aside()
    assert young.path == damaged
    assert damaged.exists()
    settle(damaged)
    (moved,) = kept.set_aside()
    assert moved.path.parent == tmp_path / "set-aside"
    assert moved.path.read_bytes() == content
    assert kept.problems() == []
    kept.add(records(20))
    assert len(kept.ids()) == 22


def test_a_run_that_diverged_has_no_scores_and_is_trusted(tmp_path):
    kept, nan = Store(tmp_path), float("nan")
    some = records(3)
    kept.add([*some[:2], replace(some[2], val=nan, test=nan, best_epoch=-1, status="diverged")])
    assert kept.problems() == []
    assert kept.frame()["val"].isna().sum() == 1


@pytest.mark.parametrize("fields", [{"lam_max": 1.0}, {"batching": "clusters-64-4"}, {"lam": 1, "q": np.float32(1.5)}])
def test_descriptions_of_all_kinds_come_back_as_their_ids_say(tmp_path, fields):
    kept, some = Store(tmp_path), records(2, **fields)
    kept.add(some)
    assert Store(tmp_path).problems() == []
    assert Store(tmp_path).ids() == {record.trial.id for record in some}


def test_two_untrusted_files_of_one_name_are_both_kept(tmp_path):
    kept = Store(tmp_path)
    for _ in range(2):
        kept.add(records(2))
        cut(only_file(tmp_path))
        settle(only_file(tmp_path))
        kept.set_aside()
    assert len(list((tmp_path / "set-aside").iterdir())) == 2


def test_without_permission_problems_are_only_reported(tmp_path, monkeypatch):
    kept = Store(tmp_path)
    kept.add(records(2))
    path = only_file(tmp_path)
    cut(path)
    settle(path)

    def forbidden(*paths: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(part.os, "rename", forbidden)
    (problem,) = kept.set_aside()
    assert problem.path == path
    assert path.exists()


def test_a_file_that_ends_anywhere_too_early_is_never_trusted(tmp_path):
    kept = Store(tmp_path)
    kept.add(records(3))
    path = only_file(tmp_path)
    content = path.read_bytes()
    for size in range(0, len(content), 101):
        path.write_bytes(content[:size])
        assert Store(tmp_path).ids() == set()
        assert len(Store(tmp_path).problems()) == 1


def test_a_file_from_before_a_field_existed_keeps_its_trials_and_traces(tmp_path):
    kept, some = Store(tmp_path), records(2)
    kept.add(some, keep_traces=True)
    path = only_file(tmp_path)
    pq.write_table(pq.read_table(path).drop_columns(["lam_max", "rerun"]), before_checksums(path))
    assert Store(tmp_path).problems() == []
    assert Store(tmp_path).ids() == Store(tmp_path).traced_ids() == {record.trial.id for record in some}
    assert Store(tmp_path).frame()["lam_max"].isna().all()


def test_what_a_killed_writer_left_is_swept_once_it_is_old(tmp_path):
    kept = Store(tmp_path)
    kept.add(records(1))
    half, young = tmp_path / "records" / ".a.parquet.1.tmp", tmp_path / "records" / ".b.parquet.2.tmp"
    half.write_bytes(b"PAR1")
    young.write_bytes(b"PAR1")
    os.utime(half, (0, 0))
    assert kept.problems() == []
    kept.set_aside()
    assert not half.exists()
    assert young.exists()


def test_a_disk_that_is_full_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(part.os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        Store(tmp_path).add(records(2))
    assert list((tmp_path / "records").iterdir()) == []


def test_scores_of_the_whole_main_study_are_small(tmp_path):
    kept = Store(tmp_path)
    kept.add(records(205))
    size = only_file(tmp_path).stat().st_size
    assert size < 15_000  # 40 cells: a few hundred kilobytes


# Revisions


def test_without_a_repository_the_revision_is_gits_own_hash_of_the_files(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    (tmp_path / "b.txt").write_text("between b and b/")
    (tmp_path / "b" / "c.py").write_text("x = 'λ'\n", encoding="utf-8")
    (tmp_path / "a.csv").write_bytes(b"")
    git = ["git", "-C", str(tmp_path), "-c", "core.autocrlf=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    expected = subprocess.run([*git, "write-tree"], check=True, capture_output=True, text=True).stdout.strip()
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / "b" / "__pycache__").mkdir()
    assert tree_hash(tmp_path).hex() == expected
    monkeypatch.setenv("PATH", "")
    assert revision.__wrapped__() == f"source-{tree_hash(PACKAGE).hex()[:12]}"


def test_a_store_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "claims").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write to the store .*, or name another with store="):
        Store(tmp_path).claim([record.trial for record in records(1)])
    with pytest.raises(InputError, match="is a file; name a folder"):
        Store(tmp_path / "claims")


def again(first: list[Record], score: float) -> list[Record]:
    """The same trials, trained again elsewhere, with other scores and other traces."""
    traces = {"loss": np.full(2, 10 * score, dtype=np.float32)}
    return [replace(record, val=score, test=score, seconds=2.0, device="other", traces=traces) for record in first]


def test_a_trace_that_is_made_later_leaves_the_first_scores(tmp_path):
    kept, first = Store(tmp_path), records(2)
    kept.add(first)
    before = kept.frame()
    kept.add(again(first, 0.9), keep_traces=True)
    fresh = Store(tmp_path)
    pd.testing.assert_frame_equal(fresh.frame(), before)
    assert fresh.frame([record.trial for record in first])["val"].tolist() == [0.5, 0.501]
    assert fresh.traced_ids() == fresh.ids() == {record.trial.id for record in first}
    assert {traces["loss"].tolist()[0] for traces in fresh.traces(fresh.ids()).values()} == {9}
    files = sorted(path.name for path in tmp_path.glob("*/*.parquet"))
    kept.add(again(first, 0.9), keep_traces=True)
    kept.add(again(first, 0.8), keep_traces=True)  # there is a trace: nothing is wanted of it
    assert sorted(path.name for path in tmp_path.glob("*/*.parquet")) == files


def test_runs_are_all_there_with_their_time_and_the_scores_of_the_traced_one(tmp_path):
    kept, first = Store(tmp_path), records(2)
    kept.add(first)
    kept.add(again(first, 0.9), keep_traces=True)
    runs = Store(tmp_path).runs()
    assert runs["val"].tolist() == [0.5, 0.501, 0.9, 0.9]  # the first of each is the record
    assert runs["seconds"].sum() == 5.0
    assert runs["traced"].tolist() == [False, False, True, True]
    assert list(runs.columns)[:-1] == list(kept.frame().columns)


def test_traces_whose_run_nobody_recorded_are_of_no_use(tmp_path):
    kept, first = Store(tmp_path), records(2)
    kept.add(first)
    kept.add(again(first, 0.9), keep_traces=True)
    for path in (tmp_path / "records").iterdir():
        if pq.read_table(path)["val"][0].as_py() == 0.9:
            path.unlink()
    assert Store(tmp_path).traced_ids() == set()
    assert Store(tmp_path).traces(kept.ids()) == {}


def test_traces_of_before_runs_were_told_apart_are_kept(tmp_path):
    kept = Store(tmp_path)
    kept.add(records(2), keep_traces=True)
    (path,) = (tmp_path / "traces").iterdir()
    pq.write_table(pq.read_table(path).drop_columns(["run"]), before_checksums(path))
    assert Store(tmp_path).problems() == []
    assert len(Store(tmp_path).traces(kept.ids())) == 2
    assert Store(tmp_path).runs()["traced"].all()


def test_a_store_that_cannot_be_written_is_known_before_training(tmp_path):
    (tmp_path / "records").write_text("in the way")
    for attempt in (Store(tmp_path).check_writable, lambda: Store(tmp_path).add(records(1))):
        with pytest.raises(StoreError, match=r"cannot write to the store .* \(File exists\)"):
            attempt()


@pytest.mark.parametrize("fields", [{"seed": 2**40}, {"dataset": "my/graph"}, {"dataset": "../.hidden λ?"}])
def test_seeds_and_names_may_be_anything(tmp_path, fields):
    (record,) = records(1)
    record = replace(record, trial=replace(record.trial, **fields))
    kept = Store(tmp_path / "store")
    kept.add([record], keep_traces=True)
    assert kept.ids() == kept.traced_ids() == {record.trial.id}
    for name, value in fields.items():
        assert kept.frame()[name].tolist() == [value]
    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_a_kill_between_records_and_traces_leaves_records_without_traces(tmp_path, monkeypatch):
    kept, some = Store(tmp_path), records(2)
    real = part.Part.write

    def killed(self, *arguments):
        if self.folder.name == "traces":
            raise KeyboardInterrupt
        real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(part.Part, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            kept.add(some, keep_traces=True)
    assert (len(kept.ids()), kept.traced_ids()) == (2, set())
    kept.add(some, keep_traces=True)
    assert kept.traced_ids() == kept.ids()


def test_a_file_in_the_way_that_nobody_trusts_does_not_cost_the_records(tmp_path):
    kept, some = Store(tmp_path), records(2)
    kept.add(some)
    cut(only_file(tmp_path))
    kept = Store(tmp_path)
    kept.add(some)
    assert kept.ids() == {record.trial.id for record in some}
    assert len(kept.problems()) == 1


@pytest.mark.parametrize("code", [errno.EACCES, errno.ESTALE, errno.EIO, errno.EMFILE])
def test_a_read_that_fails_moves_nothing(tmp_path, monkeypatch, code):
    Store(tmp_path).add(records(3))
    settle(only_file(tmp_path))
    before = only_file(tmp_path)

    def failing(path: Path) -> bytes:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing)
        kept = Store(tmp_path)
        with pytest.raises(InputError, match=f"{os.strerror(code)}.*nothing was moved"):
            kept.set_aside()
    assert only_file(tmp_path) == before
    assert len(kept.ids()) == 3  # nor is the failure remembered


def test_a_column_of_a_later_version_is_left_out_and_its_file_stays(tmp_path):
    kept = Store(tmp_path)
    kept.add(records(2))
    path = only_file(tmp_path)
    table = pq.read_table(path)
    path = write(path, table.append_column("mystery", pa.array([1] * len(table))))
    settle(path)
    (problem,) = kept.set_aside()
    assert problem.line.startswith("Read in part, because another version wrote it (mystery")
    assert problem.path == path
    assert len(kept.ids()) == 2
    assert "mystery" not in kept.frame()


def test_a_file_that_is_still_being_copied_is_left_until_it_is_whole(tmp_path):
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    here.add(records(2))
    there.add(records(2, first=10))
    source = only_file(tmp_path / "here")
    target = tmp_path / "there" / "records" / source.name
    content = source.read_bytes()
    target.write_bytes(content[: len(content) // 2])
    assert there.set_aside()[0].path == target
    target.write_bytes(content)
    assert len(there.ids()) == 4


def test_a_folder_that_nobody_wrote_to_is_not_listed_again(tmp_path, monkeypatch):
    kept, other, listed = Store(tmp_path), Store(tmp_path), []
    real = os.listdir
    monkeypatch.setattr(part.os, "listdir", lambda folder: listed.append(folder) or real(folder))
    kept.add(records(2), keep_traces=True)
    assert len(kept.ids()) == len(kept.traced_ids()) == len(other.ids()) == 2
    listed.clear()
    kept.add(records(2, first=10), keep_traces=True)  # its own writes are known to it
    assert len(kept.ids()) == len(kept.traced_ids()) == 4
    assert listed == []
    assert len(other.ids()) == len(other.traced_ids()) == 4  # those of others are announced by their names
    listed.remove(tmp_path / "traces")  # which this one had not looked at
    other.add(records(2, first=20), keep_traces=True)
    assert len(kept.ids()) == len(kept.traced_ids()) == 6
    assert listed == []


def test_a_file_that_is_not_trusted_is_looked_at_again_without_listing_all(tmp_path, monkeypatch):
    kept, listed = Store(tmp_path), []
    kept.add(records(2))
    (tmp_path / "records" / "strange.parquet").write_bytes(b"...")
    assert len(kept.problems()) == 1
    real = os.listdir
    monkeypatch.setattr(part.os, "listdir", lambda folder: listed.append(folder) or real(folder))
    assert len(kept.ids()) == 2
    kept.add(records(2, first=10))
    assert len(kept.ids()) == 4
    assert listed == []


def test_a_file_is_found_that_was_announced_before_a_look_and_made_visible_after_it(tmp_path, monkeypatch):
    """All within one tick of the clock that the folder's time comes from."""
    kept, other, seen = Store(tmp_path), Store(tmp_path), []
    kept.add(records(2))
    real = part.make_visible

    def slowly(temporary, target):
        seen.append((len(other.ids()), len(late.ids())))
        stamp = os.stat(target.parent).st_mtime_ns
        real(temporary, target)
        os.utime(target.parent, ns=(stamp, stamp))

    monkeypatch.setattr(part, "make_visible", slowly)
    assert len(other.ids()) == 2
    late = Store(tmp_path)  # whose first look is a list
    kept.add(records(2, first=10))
    assert seen == [(2, 2)]
    assert len(other.ids()) == len(late.ids()) == 4


def test_a_count_of_an_earlier_version_is_understood(tmp_path):
    kept, other = Store(tmp_path), Store(tmp_path)
    kept.add(records(2))
    assert len(other.ids()) == 2
    with open(tmp_path / "claims" / ".records-writes", "ab") as file:
        file.write(b".")
    kept.add(records(2, first=10))
    with open(tmp_path / "claims" / ".records-writes", "ab") as file:
        file.write(b"..")
    assert len(other.ids()) == len(Store(tmp_path).ids()) == 4


def test_many_files_are_kept_together_and_can_go_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(part, "_BLOCK_FILES", 3)
    kept = Store(tmp_path)
    for first in range(0, 20, 2):
        kept.add(records(2, first=first), keep_traces=True)
    assert sorted(kept.frame()["seed"]) == list(range(20))
    assert len(kept.traces(kept.ids())) == 20
    gone = next(
        path for path in (tmp_path / "records").glob("*.parquet") if 7 in pq.read_table(path)["seed"].to_pylist()
    )
    gone.unlink()
    assert sorted(kept.frame()["seed"]) == [seed for seed in range(20) if seed not in (6, 7)]
    assert len(kept.traces(kept.ids())) == len(kept.traced_ids()) == 18
