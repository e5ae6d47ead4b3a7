"""What was trained is not lost: by a full disk, a folder in the way, a signal, or a reader of its output that has gone."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sharpen.cli import outputs
from sharpen.cli.outputs import make_folder, output_folder, write_together
from sharpen.errors import InputError
from sharpen.store import Store, StoreError, part
from sharpen.store.store import add_or_rescue
from tests.attack.flips import small_records
from tests.cli.test_fit import write_club

FIT = (
    "--id",
    "member",
    "--label",
    "side",
    "--hidden",
    "8",
    "--epochs",
    "5",
    "--device",
    "cpu",
    "--model",
    "gcn",
    "--lam",
    "0.25",
)


def write_text(text: str):
    return lambda path: path.write_text(text)


def full(path: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Where results go that cannot be written where they belong."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def test_a_folder_where_a_file_should_be_is_named_before_training(tmp_path):
    (tmp_path / "page.html").mkdir()
    with (
        pytest.raises(InputError, match=r"page\.html is a directory, where a file is to be written"),
        output_folder(tmp_path, ["page.html"]),
    ):
        pytest.fail("nothing may be trained")


def test_a_full_disk_is_named_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs.os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write to --out .*No space left on device"):
        make_folder(tmp_path)


def test_a_disk_that_is_full_afterwards_costs_nothing(tmp_path, elsewhere, monkeypatch):
    folder = tmp_path / "out"
    make_folder(folder)
    real = os.fsync
    monkeypatch.setattr(
        outputs.os, "fsync", lambda handle: (monkeypatch.setattr(outputs.os, "fsync", real), full(folder))
    )
    with pytest.raises(InputError) as caught:
        write_together(folder, {"a": write_text("1"), "b": write_text("2")})
    (rescued,) = elsewhere.iterdir()
    assert f"No space left on device); the results are in {rescued} instead (a, b)" in str(caught.value)
    assert [(rescued / name).read_text() for name in "ab"] == ["1", "2"]
    assert names(folder) == []
    assert names(tmp_path) == ["elsewhere", "out"]


def test_a_fault_in_one_file_does_not_cost_the_others(tmp_path, elsewhere, capsys):
    def faulty(path: Path) -> None:
        raise ZeroDivisionError

    folder = tmp_path / "out"
    make_folder(folder)
    with pytest.raises(ZeroDivisionError):
        write_together(folder, {"model": write_text("kept"), "page": faulty})
    (rescued,) = elsewhere.iterdir()
    assert f"the results are in {rescued} instead (model, but not page)" in capsys.readouterr().err
    assert (rescued / "model").read_text() == "kept"


def test_where_nothing_can_be_written_that_is_said(tmp_path, elsewhere):
    with pytest.raises(InputError, match="nor can they be written elsewhere"):
        write_together(tmp_path, {"a": full})
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("event", range(8))
def test_files_of_a_killed_process_appear_together_or_not_at_all(tmp_path, earlier, event):
    """Killed before its so-many-th change of a name; the next command that writes there ends what it began."""
    folder = tmp_path / "out"
    folder.mkdir()
    if earlier:
        for name in "abc":
            (folder / name).write_text("old")
    process = os.fork()
    if process == 0:
        left = event
        for name in ("rename", "replace", "fsync", "chmod"):
            real = getattr(os, name)

            def counted(*arguments, real=real):
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return real(*arguments)

            setattr(os, name, counted)
        write_together(folder, {name: write_text("new") for name in "abc"})
        os._exit(0)
    os.waitpid(process, 0)
    make_folder(folder)  # as the next command does
    found = {(folder / name).read_text() if (folder / name).exists() else None for name in "abc"}
    assert found in ({"new"}, {"old"} if earlier else {None})
    assert [path.name for path in [*folder.iterdir(), *tmp_path.iterdir()] if path.name.startswith(".")] == []


def test_what_another_process_is_writing_is_left_alone(tmp_path):
    own = tmp_path / f".writing-{outputs._host()}-{os.getpid()}-x"
    foreign = tmp_path / ".writing-00000000-1-x"
    own.mkdir()
    foreign.mkdir()
    make_folder(tmp_path)
    assert own.exists()
    assert foreign.exists()
    os.utime(foreign, (0, 0))
    make_folder(tmp_path)
    assert not foreign.exists()


def test_records_that_the_store_cannot_take_go_to_another(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs.tempfile, "tempdir", str(tmp_path))
    store, real = Store(tmp_path / "store"), os.fsync
    monkeypatch.setattr(part.os, "fsync", lambda handle: (monkeypatch.setattr(part.os, "fsync", real), full(tmp_path)))
    with pytest.raises(
        StoreError, match=r"No space left.*; the 3 runs just trained are in .*: copy its folders into the store"
    ):
        add_or_rescue(store, small_records(), keep_traces=True)
    (other,) = tmp_path.glob("sharpen-rescued-store-*")
    assert len(Store(other).ids()) == 3
    assert Store(tmp_path / "store").ids() == set()


def sharpen(*arguments: str, **options) -> subprocess.Popen[bytes]:
    def heed() -> None:  # what a shell has its background processes ignore, these tests among them
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    command = [sys.executable, "-m", "sharpen", *arguments]
    return subprocess.Popen(command, **{"stderr": subprocess.PIPE} | options, preexec_fn=heed)


def wait_until(happened: Callable[[], object]) -> None:
    for _ in range(1200):
        if happened():
            return
        time.sleep(0.1)
    pytest.fail("waited two minutes")


def test_a_name_that_is_no_text_is_fitted(tmp_path):
    write_club(tmp_path)
    os.rename(tmp_path / "nodes.csv", os.fsencode(tmp_path) + b"/n\xff.csv")
    name = os.fsdecode(b"n\xff.csv")
    command = sharpen("fit", name, "edges.csv", *FIT, "--quiet", cwd=tmp_path, stdout=subprocess.PIPE)
    _, errors = command.communicate()
    assert (command.returncode, errors) == (0, b"")
    (folder,) = (tmp_path / "sharpen-out").iterdir()
    assert names(folder) == ["model.safetensors", "page.html", "predictions.csv", "summary.json"]
    assert b"\\udcff" in (folder / "summary.json").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_a_study_as_an_interruption_does(tmp_path, number, code):
    """The first asks to end after what is in flight, the second ends at once; what was finished is kept."""
    errors = tmp_path / "errors.txt"
    options = ("--datasets", "cora", "--models", "gcn", "--max-epochs", "100000", "--device", "cpu")
    with open(errors, "wb") as stderr:
        command = sharpen(
            "study", "run", "universal", *options, "--store", str(tmp_path), stdout=subprocess.DEVNULL, stderr=stderr
        )
    try:
        wait_until(lambda: list(tmp_path.glob("claims/*.json")))
        command.send_signal(number)
        wait_until(lambda: b"Ending after what is in flight" in errors.read_bytes())
        command.send_signal(number)
        command.wait(timeout=90)
    finally:
        command.kill()
    said = errors.read_bytes()
    assert command.returncode == code, said
    assert b"To go on" in said
    assert b"Traceback" not in said
    assert list(tmp_path.glob("claims/*.json")) == []


def test_a_closed_pipe_does_not_end_a_study(tmp_path):
    options = (
        "--datasets",
        "cora",
        "--models",
        "gcn",
        "--max-epochs",
        "1",
        "--store",
        str(tmp_path),
        "--device",
        "cpu",
    )
    command = sharpen("study", "run", "universal", *options, stdout=subprocess.PIPE)
    assert command.stdout is not None
    command.stdout.readline()
    command.stdout.close()
    assert command.stderr is not None
    command.stderr.close()  # nor a progress bar that nobody sees
    assert command.wait(timeout=300) == 0
    assert len(Store(tmp_path).ids()) == 10
