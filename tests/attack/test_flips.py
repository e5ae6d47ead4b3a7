"""One flipped bit: no traceback, no wrong value, and the damage is named; a sample here, every bit in ``benchmarks/attack.py``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from sharpen import Graph, NodeClassifier
from sharpen.store import Store, part
from tests.attack.flips import flip_model, flip_store, small_records, small_store

SAMPLE = 250


def sample(path: Path) -> list[int]:
    """Some bits of a file, those of its last bytes among them, where a Parquet file says what it is."""
    bits = 8 * path.stat().st_size
    return [*random.Random(0).sample(range(bits), SAMPLE), *range(bits - 80, bits)]


@pytest.mark.parametrize("kind", ["records", "traces"])
def test_a_flipped_bit_of_a_store_is_named_and_nothing_of_its_file_is_read(tmp_path, kind):
    store = small_store(tmp_path / "store", checksums=True)
    (path,) = (store / kind).glob("*.parquet")
    bits = sample(path)
    tally = flip_store(store, kind, bits)
    assert tally.tracebacks == []
    assert (tally.flips, tally.named, tally.wrong, tally.harmless) == (len(bits), len(bits), 0, 0)


@pytest.mark.parametrize("kind", ["records", "traces"])
def test_a_flipped_bit_of_a_file_of_before_checksums_is_no_traceback(tmp_path, kind):
    store = small_store(tmp_path / "store", checksums=False)
    (path,) = (store / kind).glob("*.parquet")
    tally = flip_store(store, kind, sample(path))
    assert tally.tracebacks == []
    assert tally.named > tally.flips / 3


def test_what_is_damaged_is_set_aside_and_its_trials_run_again(tmp_path, monkeypatch):
    store = small_store(tmp_path / "store", checksums=True)
    (path,) = (store / "records").glob("*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(part, "SETTLED_SECONDS", 0)
    kept = Store(store)
    (moved,) = kept.set_aside()
    assert "checksum" in moved.line
    assert moved.path.read_bytes() == content
    assert kept.ids() == set()
    kept.add(small_records(), keep_traces=True)
    assert len(kept.ids()) == len(kept.traced_ids()) == 3
    assert kept.problems() == []


def test_a_renamed_column_is_damage_and_no_other_version(tmp_path):
    """A bit of a column's name in the schema: the file would pass for one of another version, a field of its trials missing."""
    store = small_store(tmp_path / "store", checksums=False)
    (path,) = (store / "records").glob("*.parquet")
    whole = path.read_bytes()
    for name in (b"sharpen_val", b"lam_max", b"seconds", b"created"):
        at = whole.index(name, len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        (problem,) = Store(store).problems()
        assert not problem.usable
        assert Store(store).ids() == set()


def test_a_flipped_bit_of_a_saved_model_is_refused(tmp_path):
    triangles = Graph(x=torch.eye(8), edge_index=[[0, 1, 2, 4, 5, 6], [1, 2, 0, 5, 6, 4]], y=[0, 0, 0, -1, 1, 1, 1, -1])
    settings = {"model": "gcn", "lam": 0.25, "balance": 0, "hidden": 2, "layers": 1, "epochs": 2, "budget": 0.01}
    path = tmp_path / "model.safetensors"
    fitted = NodeClassifier(**settings, ensemble=False, device="cpu").fit(triangles)
    fitted.save(path)
    number = path.read_bytes().index(b"sharpen-") + len(b"sharpen-")  # of the format: another may have no checksum
    bits = [*sample(path), *range(8 * number, 8 * number + 8)]
    tally = flip_model(path, bits)
    assert tally.tracebacks == []
    assert (tally.named, tally.wrong) == (len(bits), 0)
    assert (NodeClassifier.load(path).predict(triangles) == fitted.predict(triangles)).all()
