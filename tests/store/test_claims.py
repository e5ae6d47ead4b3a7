"""Claims: no trial is trained by two runners at once, and a runner that is gone holds none."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sharpen
from sharpen.errors import InputError
from sharpen.store import Store, claims
from tests.store.test_store import records


def test_a_claim_keeps_others_off_until_it_is_given_up(tmp_path):
    kept, trials = Store(tmp_path), [record.trial for record in records(4)]
    mine = kept.claim(trials[:3])
    assert mine is not None
    assert kept.claim(trials[:3]) is None
    assert kept.claim(trials[2:]) is None  # one trial in common
    other = kept.claim(trials[3:])
    assert other is not None
    assert {id_ for claim in kept.claims() for id_ in claim.ids} == {trial.id for trial in trials}
    with mine.kept():
        pass
    assert kept.claim(trials[:3]) is not None


def claim_of_a_dead_process(folder: Path, ids: list[str]) -> Path:
    """A child claims and ends without giving up."""
    code = "import pathlib, sys; from sharpen.store import claims; claims.claim(pathlib.Path(sys.argv[1]), 'k', sys.argv[2:])"
    source = str(Path(sharpen.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code, str(folder), *ids], check=True, env=os.environ | {"PYTHONPATH": source})
    return folder / "k.json"


def test_the_claim_of_a_dead_process_does_not_count(tmp_path):
    path = claim_of_a_dead_process(tmp_path, ["a", "b"])
    assert path.exists()
    assert claims.claims(tmp_path) == []
    assert claims.claim(tmp_path, "k", ["b"]) is not None


def elsewhere(path: Path) -> None:
    """Makes a claim one of another machine."""
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "elsewhere"}))


def test_on_another_machine_the_lease_decides(tmp_path):
    path = claim_of_a_dead_process(tmp_path, ["a", "b"])
    elsewhere(path)
    assert claims.claim(tmp_path, "other", ["b"]) is None
    long_ago = time.time() - claims.LEASE_SECONDS - 1
    os.utime(path, (long_ago, long_ago))
    assert claims.claim(tmp_path, "other", ["b"]) is not None


CONTENDER = """
import os, pathlib, random, sys
from sharpen.store.claims import claim
folder, got = pathlib.Path(sys.argv[1]), 0
for turn in range(200):
    ids = random.sample("abcdefgh", 3)
    mine = claim(folder / "claims", "".join(sorted(ids)), ids)
    if mine is not None:
        for id_ in ids:
            os.close(os.open(folder / id_, os.O_CREAT | os.O_EXCL))  # fails if another holds it
        for id_ in ids:
            os.unlink(folder / id_)
        mine.release()
        got += 1
print(got)
"""


def test_no_trial_is_ever_held_by_two_processes(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(sharpen.__file__).parents[1])}
    command = [sys.executable, "-c", CONTENDER, str(tmp_path)]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert int(out) > 0
    assert claims.claims(tmp_path / "claims") == []


def test_a_process_number_that_is_used_again_is_told_apart(tmp_path):
    claims.claim(tmp_path, "k", ["a"])
    path = tmp_path / "k.json"
    assert len(claims.claims(tmp_path)) == 1
    path.write_text(json.dumps(json.loads(path.read_text()) | {"process_start": "12"}))
    assert claims.claims(tmp_path) == []


def test_a_claim_is_touched_while_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_HEARTBEAT_SECONDS", 0.01)
    mine = claims.claim(tmp_path, "k", ["a"])
    assert mine is not None
    os.utime(mine.path, (1, 1))
    with mine.kept():
        deadline = time.monotonic() + 20
        while mine.path.stat().st_mtime == 1 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert mine.path.stat().st_mtime > 1
    assert not mine.path.exists()


def test_a_claim_that_was_taken_over_is_left_to_its_new_owner(tmp_path):
    mine = claims.claim(tmp_path, "k", ["a"])
    assert mine is not None
    elsewhere(mine.path)
    long_ago = time.time() - claims.LEASE_SECONDS - 1
    os.utime(mine.path, (long_ago, long_ago))  # as if this machine had slept, and another one looks
    theirs = claims.claim(tmp_path, "k", ["a"])
    assert theirs is not None
    mine.release()
    assert [claim.token for claim in claims.claims(tmp_path)] == [theirs.token]


def test_on_this_machine_the_process_alone_decides(tmp_path):
    mine = claims.claim(tmp_path, "k", ["a"])
    assert mine is not None
    os.utime(mine.path, (1, 1))  # its clock was set, or it slept
    assert claims.claim(tmp_path, "other", ["a"]) is None
    assert len(claims.claims(tmp_path)) == 1


def test_a_read_that_fails_deletes_no_claim(tmp_path, monkeypatch):
    kept, trials = Store(tmp_path), [record.trial for record in records(2)]
    mine = kept.claim(trials[:1])
    assert mine is not None
    real = Path.read_text

    def stale(path: Path, *arguments, **options) -> str:
        if path.suffix == ".json":
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", stale)
        with pytest.raises(InputError, match="Stale file handle"):
            kept.claim(trials[1:])
    assert mine.path.exists()
    assert kept.claim(trials[1:]) is not None


def test_a_touch_that_fails_does_not_stop_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_HEARTBEAT_SECONDS", 0.01)
    mine = claims.claim(tmp_path, "k", ["a"])
    assert mine is not None
    real, touches = os.utime, []

    def failing_once(*arguments: object) -> None:
        touches.append(arguments)
        if len(touches) == 1:
            raise OSError(errno.EIO, "Input/output error")
        real(*arguments)

    monkeypatch.setattr(claims.os, "utime", failing_once)
    with mine.kept():
        deadline = time.monotonic() + 20
        while len(touches) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
    assert len(touches) >= 3


def test_the_lease_is_told_by_the_clock_of_the_file_system(tmp_path, monkeypatch):
    path = claim_of_a_dead_process(tmp_path, ["a"])
    elsewhere(path)
    monkeypatch.setattr(claims.time, "time", lambda: path.stat().st_mtime + 1e6)  # this machine's clock is days ahead
    assert len(claims.claims(tmp_path)) == 1
    assert claims.claim(tmp_path, "other", ["a"]) is None


def test_two_containers_of_one_name_are_two_machines(tmp_path, monkeypatch):
    mine = claims.claim(tmp_path, "k", ["a"])
    assert mine is not None
    monkeypatch.setattr(claims, "this_host", lambda: f"{mine.host} pid:[1]")
    monkeypatch.setattr(claims, "_alive", lambda pid, start: False)  # in here the number is another process, or none
    assert len(claims.claims(tmp_path)) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"ids": 3}'])
def test_what_is_no_claim_is_none(tmp_path, content):
    (tmp_path / "k.json").write_text(content)
    assert claims.claims(tmp_path) == []
    assert claims.claim(tmp_path, "k", ["a"]) is not None


def test_a_claim_with_a_time_in_the_future_expires(tmp_path):
    """As of a machine whose clock was wrong when it touched the claim for the last time."""
    path = claim_of_a_dead_process(tmp_path, ["a"])
    elsewhere(path)
    for ahead, counts in ((60, True), (claims.LEASE_SECONDS + 60, False), (10**8, False)):
        then = time.time() + ahead
        os.utime(path, (then, then))
        assert bool(claims.claims(tmp_path)) == counts
    assert claims.claim(tmp_path, "b", ["a"]) is not None
