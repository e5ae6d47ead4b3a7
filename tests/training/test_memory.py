"""What is free, as the system says it (files that stand in for the kernel's), and what is needed, as it was measured."""

from types import SimpleNamespace

import pytest
import torch

from sharpen.machine import cgroup_left
from sharpen.models.registry import model_info
from sharpen.paper import setting
from sharpen.training.memory import full_batch_bytes


def fake(root, own, groups):
    """A machine with this line of /proc/self/cgroup and these groups: path -> {file: text}."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    for group, files in groups.items():
        (root / "sys/fs/cgroup" / group).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (root / "sys/fs/cgroup" / group / name).write_text(text)


def test_the_processs_own_group_counts_and_those_above_it(tmp_path):
    """What can be forgotten of files that were read is not in use."""
    fake(
        tmp_path,
        "0::/jobs/mine\n",
        {
            "jobs/mine": {
                "memory.max": "1000\n",
                "memory.current": "900\n",
                "memory.stat": "anon 300\ninactive_file 550\n",
            },
            "jobs": {
                "memory.max": "5000\n",
                "memory.current": "4900\n",
                "memory.stat": "anon 4800\ninactive_file 20\n",
            },
            "jobs/other": {"memory.max": "1\n", "memory.current": "1\n"},
        },
    )
    assert cgroup_left(tmp_path) == [1000 - 900 + 550, 5000 - 4900 + 20]


def test_in_a_container_the_group_is_what_is_mounted(tmp_path):
    fake(tmp_path, "0::/host/path/elsewhere\n", {"": {"memory.max": "700\n", "memory.current": "100\n"}})
    assert cgroup_left(tmp_path) == [600]


def test_no_limit_is_no_limit(tmp_path):
    fake(tmp_path, "0::/\n", {"": {"memory.max": "max\n", "memory.current": "100\n"}})
    assert cgroup_left(tmp_path) == []


def test_version_one(tmp_path):
    stat = "inactive_file 1\ntotal_inactive_file 30\n"
    files = {"memory.limit_in_bytes": "500\n", "memory.usage_in_bytes": "450\n", "memory.stat": stat}
    fake(tmp_path, "7:cpu,cpuacct:/a\n4:memory:/a\n0::/a\n", {"memory/a": files})
    assert cgroup_left(tmp_path) == [80]


# Peaks of populations on an H200 (docs/measurements), and of one run on a CPU: nodes, entries of the adjacency, features, classes;
# bytes, members.
ARXIV, MINES = (169343, 2484941, 128, 40), (10000, 88804, 7, 2)
QUARTER = (42336, 621236, 128, 40)
MEASURED = {
    ("ogbn-arxiv", "gcn", "cuda"): (*ARXIV, 106204436992, 23),
    ("ogbn-arxiv", "sage", "cuda"): (*ARXIV, 103097342464, 52),
    ("ogbn-arxiv", "gat", "cuda"): (*ARXIV, 107793318400, 26),
    ("minesweeper", "gcn", "cuda"): (*MINES, 14687846400, 205),
    ("minesweeper", "sage", "cuda"): (*MINES, 18065112576, 205),
    ("minesweeper", "gat", "cuda"): (*MINES, 35987453952, 205),
    ("ogbn-arxiv", "gcn", "cpu"): (*QUARTER, 1370714112, 1),
    ("ogbn-arxiv", "sage", "cpu"): (*QUARTER, 698232832, 1),
    ("ogbn-arxiv", "gat", "cpu"): (*QUARTER, 1030139904, 1),
}


@pytest.mark.parametrize("cell", MEASURED, ids="-".join)
def test_the_full_batch_needs_what_was_measured(cell):
    nodes, entries, features, classes, peak, members = MEASURED[cell]
    dataset, model, kind = cell
    names = ("layers", "hidden", "norm", "residual", "input_linear")
    shape = {name: value for name, value in setting(dataset, model).items() if name in names}
    network = model_info(model).load().fused(num_features=features, num_classes=classes, **shape)
    graph = SimpleNamespace(num_nodes=nodes, is_sparse=False, adjacency=SimpleNamespace(nnz=entries))
    assert 0.95 < full_batch_bytes(network, graph, torch.float32, kind) / (peak / members) < 1.25
