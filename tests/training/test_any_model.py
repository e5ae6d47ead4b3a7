"""Any model: twelve modules of PyG's layers unchanged, models of ours, modules that cannot be vectorised; one contract for all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn

from sharpen import Graph, InputError, Split, Trial, train
from sharpen.models.blueprint import Blueprint
from sharpen.models.inputs import Inputs
from sharpen.models.registry import MODELS, PAPER_MODELS, model_info
from sharpen.training import decision, full_batch
from sharpen.training.decision import decide
from sharpen.training.trials import blueprint_of, resolve
from tests.models.small import SMALL

RNG = np.random.default_rng(3)
NODES, FEATURES, CLASSES = 40, 6, 3
Y = np.arange(NODES) % CLASSES
GRAPH = Graph(
    x=RNG.normal(size=(NODES, FEATURES)) + np.eye(CLASSES, FEATURES)[Y],
    edge_index=RNG.integers(0, NODES, size=(2, 90)),
    y=Y,
    name="forty",
)
SPLITS = [Split(f"part-{k}", range(k, 12 + k), range(15, 25), range(25, NODES)) for k in range(3)]
CPU = torch.device("cpu")


def mlp(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b))


CONVS = {
    "GCN": lambda a, b: pyg.GCNConv(a, b),
    "SAGE": lambda a, b: pyg.SAGEConv(a, b),
    "GAT": lambda a, b: pyg.GATConv(a, b, dropout=0.3),
    "GATv2": lambda a, b: pyg.GATv2Conv(a, b, dropout=0.3),
    "Transformer": lambda a, b: pyg.TransformerConv(a, b, dropout=0.2),
    "TAG": lambda a, b: pyg.TAGConv(a, b),
    "Cheb": lambda a, b: pyg.ChebConv(a, b, 3),
    "GIN": lambda a, b: pyg.GINConv(mlp(a, b)),
    "GEN": lambda a, b: pyg.GENConv(a, b),
    "ARMA": lambda a, b: pyg.ARMAConv(a, b, dropout=0.2),
    "DirGNN": lambda a, b: pyg.DirGNNConv(pyg.GCNConv(a, b)),
}


class TwoLayers(nn.Module):
    """A small network as people write them: two layers, batch norm, dropout."""

    def __init__(self, num_features: int, num_classes: int, conv: str, hidden: int = 8) -> None:
        super().__init__()
        make = CONVS[conv]
        self.first, self.second = make(num_features, hidden), make(hidden, num_classes)
        self.norm, self.dropout = nn.BatchNorm1d(hidden), nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.dropout(self.norm(self.first(x, edge_index)).relu()), edge_index)


class PygAppnp(nn.Module):
    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(num_features, 8), nn.Linear(8, num_classes)
        self.norm, self.propagation = nn.BatchNorm1d(8), pyg.APPNP(5, 0.1, dropout=0.1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = F.dropout(self.norm(self.first(F.dropout(x, 0.3, self.training))).relu(), 0.5, self.training)
        return self.propagation(self.second(hidden), edge_index)


class Masked(nn.Module):
    """What vmap cannot do: boolean indexing by values that differ from member to member, and a number read on the host."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.conv, self.head = pyg.GCNConv(num_features, 8), nn.Linear(8, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.conv(x, edge_index).relu(), 0.5, self.training)
        large = h[h.sum(1) > h.mean()]
        return self.head(h + large.mean(0) * float(large.sum().item() > 0))


class Noisy(nn.Module):
    """Draws numbers in a way that nobody here answers for."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = self.head(x)
        return out + 0.1 * torch.poisson(torch.ones_like(out)) if self.training else out


def trials(model: object, members: int = 8, epochs: int = 20, **more: object) -> list[Trial]:
    # Without weight decay: of a bias before a batch norm the gradient is 0 but for rounding, and there Adam with weight decay
    # makes a number that matters out of 1e-17 within five epochs, whoever computes it.
    more = {"weight_decay": 0.0} | more
    return [
        Trial(model=model, split=SPLITS[k % 3].name, seed=k, lam=0.25 * (k % 2), epochs=epochs, **more)
        for k in range(members)
    ]


def run(wanted: list[Trial], **options: object) -> list:
    options = {"device": "cpu", "precision": "float64", "progress": False} | options
    return train(GRAPH, wanted, splits=SPLITS, **options)


def same(a, b, within: float = 1e-8) -> None:
    np.testing.assert_allclose(a.logits, b.logits, rtol=within, atol=within)
    assert (a.best_epoch, a.status, a.trial) == (b.best_epoch, b.status, b.trial)
    for name, values in a.traces.items():
        np.testing.assert_allclose(values, b.traces[name], rtol=1e-5, atol=1e-6, err_msg=name)


def way_of(model: object, graph: Graph = GRAPH, dtype: torch.dtype = torch.float64, **more: object):
    trial = resolve(trials(model, 1, **more)[0], _dataset())
    blueprint = blueprint_of(graph.num_features, graph.num_classes, trial)
    return decide(blueprint, Inputs(graph, CPU, dtype))


def _dataset():
    from sharpen.datasets import Dataset, Splits

    return Dataset("forty", GRAPH, splits=Splits(SPLITS, GRAPH.y))


PYG = [*((TwoLayers, {"conv": name}) for name in CONVS), (PygAppnp, None)]
IDS = [*CONVS, "APPNP"]


@pytest.mark.parametrize(("model", "arguments"), PYG, ids=IDS)
def test_eight_members_of_a_pyg_module_are_eight_trained_alone(model, arguments):
    wanted = trials(model, model_args=arguments)
    assert way_of(model, model_args=arguments).name == "vmap"
    together = run(wanted)
    assert {record.way for record in together} == {"vmap"}
    assert {record.members for record in together} == {8}
    for trial, record in zip(wanted, together, strict=True):
        same(record, run([trial])[0])


@pytest.mark.parametrize("model", MODELS)
def test_members_of_our_own_models_are_those_trained_alone_with_a_dropout_of_their_own(model):
    takes = "dropout" in model_info(model).settings
    drawn = trials(model, 4, 15, **SMALL.get(model, {}))
    wanted = [Trial(**{**vars(t), "dropout": 0.1 * k} if takes else vars(t)) for k, t in enumerate(drawn)]
    together = run(wanted)
    assert {record.members for record in together} == {4}
    for trial, record in zip(wanted, together, strict=True):
        same(record, run([trial])[0])


@pytest.mark.parametrize("model", PAPER_MODELS)
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_the_fused_path_is_the_module_that_is_described_for_one_run(model, norm, monkeypatch):
    wanted = trials(model, 3, 10, norm=norm, residual=norm == "layer", hidden=8, layers=2, dropout=0.4)
    fused = run(wanted)
    monkeypatch.setattr(Blueprint, "network", None)
    described = run(wanted)
    assert (fused[0].way, described[0].way) == ("fused", "vmap")
    for a, b in zip(fused, described, strict=True):
        same(a, b)


@pytest.mark.parametrize(("model", "reason"), [(Masked, "host|values"), (Noisy, "random numbers")])
def test_what_cannot_be_vectorised_is_trained_in_a_loop_with_the_same_contract(model, reason, monkeypatch):
    way = way_of(model)
    assert way.name == "loop"
    assert re.search(reason, way.why)
    monkeypatch.setitem(full_batch._LOOP_MEMBERS, "cpu", 4)
    together = run(trials(model, 4, 10))
    assert together[0].way.startswith("loop: ")
    assert {record.members for record in together} == {4}
    for trial, record in zip(trials(model, 4, 10), together, strict=True):
        same(record, run([trial])[0])
        assert set(record.traces) == {"loss", "cross_entropy", "entropy_labeled", "entropy_unlabeled", "train", "val"}


@pytest.mark.parametrize("name", ["SGFormer", "Polynormer"])
def test_graph_transformers_of_pyg_give_records(name):
    def make(features: int, classes: int) -> nn.Module:
        return getattr(pyg, name)(features, 8, classes)

    records = run(trials(make, 2, 5), precision="float32")
    assert all(record.status == "ok" and np.isfinite(record.logits).all() for record in records)
    assert records[0].way.split(":")[0] in ("loop", "vmap")


MODELS_OF_EACH_KIND = [("gcn", None), ("gprgnn", None), (TwoLayers, {"conv": "GATv2"})]
KINDS = ["fused", "ours", "pyg"]


@pytest.mark.parametrize(("model", "arguments"), MODELS_OF_EACH_KIND, ids=KINDS)
def test_the_same_population_gives_the_same_bits(model, arguments):
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        first, second = (run(trials(model, model_args=arguments), precision="float32", device=device) for _ in range(2))
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a.logits, b.logits)
            np.testing.assert_array_equal(a.traces["loss"], b.traces["loss"])


@pytest.mark.parametrize(("model", "arguments"), MODELS_OF_EACH_KIND, ids=KINDS)
def test_a_member_that_diverges_touches_no_other(model, arguments):
    calm = trials(model, 3, model_args=arguments)
    wild = Trial(**{**vars(calm[1]), "lr": 1e200, "seed": 99})
    together = run([calm[0], wild, *calm[1:]])
    assert [record.status for record in together] == ["ok", "diverged", "ok", "ok"]
    for trial, record in zip(calm, [together[0], *together[2:]], strict=True):
        same(record, run([trial])[0])


@pytest.mark.parametrize(("model", "arguments"), MODELS_OF_EACH_KIND, ids=KINDS)
def test_when_memory_runs_out_half_as_many_are_trained_at_once(model, arguments, monkeypatch):
    wanted, sizes = trials(model, 8, 5, model_args=arguments), []
    expected, original = run(wanted), full_batch._train_population

    def limited(way, blueprint, dataset, some, *rest):
        sizes.append(len(some))
        if len(some) > 3:
            raise torch.OutOfMemoryError
        return original(way, blueprint, dataset, some, *rest)

    monkeypatch.setattr(full_batch, "_train_population", limited)
    for a, b in zip(run(wanted), expected, strict=True):
        same(a, b)
    assert sizes == [8, 4, 2, 2, 2, 2]


NET = """
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATv2Conv

class MyNet(nn.Module):
    def __init__(self, num_features, num_classes, hidden=8):
        super().__init__()
        self.first, self.second = GATv2Conv(num_features, hidden), GATv2Conv(hidden, num_classes)

    def forward(self, x, edge_index):
        return self.second(F.dropout(self.first(x, edge_index).relu(), 0.5, self.training), edge_index)
"""


@pytest.mark.parametrize("model", ["gcn", "gprgnn", "my_net.py:MyNet"], ids=KINDS)
def test_sigkill_loses_no_finished_population(model, tmp_path):
    """A comparison that is killed over and over ends with the records of one that was not."""
    (tmp_path / "my_net.py").write_text(textwrap.dedent(NET))
    command = [sys.executable, "-m", "sharpen", "compare", "digits", "--model", model, "--lam", "0.5", "--splits", "3"]
    command += ["--epochs", "4", "--device", "cpu", "--no-page", "--quiet"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    sizes = "from sharpen.training import modular, ways; modular._CPU_MEMBERS = 2; ways.CPU_ACTIVATION_BYTES = 2 * 1797 * 64 * 4"
    start = f"{sizes}; import sys; sys.argv = {command[2:]!r}; from sharpen.cli import main; main()"

    def go(out: str, kill: bool) -> int:
        job = subprocess.Popen(
            [sys.executable, "-c", start.replace("'--quiet'", f"'--quiet', '--out', {out!r}")],
            cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        if kill:
            kept, limit = tmp_path / out / "checkpoints", time.monotonic() + 120
            count = len(list(kept.rglob("*.finished.safetensors")))
            while job.poll() is None and time.monotonic() < limit:
                if len(list(kept.rglob("*.finished.safetensors"))) > count:
                    job.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.01)
        _, errors = job.communicate(timeout=300)
        assert job.returncode in (0, -signal.SIGKILL), errors.decode()
        return job.returncode

    killed = 0
    while go("killed", kill=True) != 0:
        killed += 1
        assert killed < 5
    go("whole", kill=False)
    import pandas as pd

    a, b = (pd.read_parquet(tmp_path / out / "records.parquet").drop(columns="seconds") for out in ("killed", "whole"))
    pd.testing.assert_frame_equal(a, b)
    assert killed >= 1
    assert not (tmp_path / "killed" / "checkpoints").exists()


class TestNamesAndErrors:
    def test_a_file_is_named_and_its_digest_is_recorded(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("nets.py").write_text(textwrap.dedent(NET))
        (record,) = run([Trial(model="nets.py:MyNet", hidden=4, epochs=3, split="part-0")])
        assert record.trial.model == "nets.py:MyNet"
        assert len(record.model_digest) == 16
        assert record.trial.hidden == 4

    @pytest.mark.parametrize(
        ("source", "name", "message"),
        [
            (NET, "MyNett", "has no MyNett; did you mean 'MyNet'"),
            ("import nothing_of_this_name", "MyNet", r"could not be imported \(line 1\): ModuleNotFoundError"),
            ("def broken(:", "MyNet", "line 1 is no Python"),
            ("MyNet = 3", "MyNet", "MyNet is a int; name a torch.nn.Module"),
            (
                NET.replace("hidden, num_classes)", "hidden, num_classes + 1)"),
                "MyNet",
                r"gives \[40, 4\] where \[40, 3\]",
            ),
            (
                NET.replace("(x, edge_index).relu()", "(x, edge_index)[:, :2].relu()"),
                "MyNet",
                "MyNet fails on this graph",
            ),
            (NET.replace("hidden=8", "hidden, heads"), "MyNet", "could not be made: .*heads.*model_args"),
        ],
        ids=["class", "import", "syntax", "number", "width", "forward", "arguments"],
    )
    def test_mistakes_are_one_sentence(self, source, name, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        file = f"net_{abs(hash(message))}.py"
        Path(file).write_text(textwrap.dedent(source))
        with pytest.raises(InputError, match=message) as error:
            run([Trial(model=f"{file}:{name}", epochs=2, split="part-0")])
        assert "\n" not in str(error.value)

    def test_settings_that_a_model_does_not_take_are_refused(self):
        with pytest.raises(InputError, match="S²GC takes no hidden"):
            run([Trial(model="s2gc", hidden=8, epochs=2, split="part-0")])
        with pytest.raises(InputError, match="TwoLayers takes no dropout; it takes num_features, num_classes, conv"):
            run(trials(TwoLayers, 1, 2, model_args={"conv": "GCN"}, dropout=0.1))

    def test_the_arguments_are_part_of_the_id_whatever_their_order(self):
        a, b = (
            Trial(model="appnp", model_args=given) for given in ({"hops": 5, "alpha": 0.2}, '{"alpha": 0.2, "hops": 5}')
        )
        assert a == b
        assert a.id == b.id != Trial(model="appnp").id
        assert Trial(model="gcn").id == Trial(model="gcn", model_args={}).id
        with pytest.raises(InputError, match="model_args"):
            Trial(model_args=[1])
        with pytest.raises(InputError, match="model_args"):
            Trial(model_args={"x": float("nan")})

    def test_a_class_a_function_and_an_instance_are_the_same_model(self):
        conv = {"conv": "GCN"}
        by_class = run(trials(TwoLayers, 2, 5, model_args=conv))
        by_function = run(trials(lambda features, classes: TwoLayers(features, classes, **conv), 2, 5))
        by_instance = run(trials(TwoLayers(FEATURES, CLASSES, **conv), 2, 5))
        for a, b, c in zip(by_class, by_function, by_instance, strict=True):
            np.testing.assert_allclose(a.logits, b.logits, rtol=1e-10)
            assert c.status == "ok"
        assert len({record.model_digest for record in (by_class[0], by_function[0], by_instance[0])}) == 3

    def test_records_and_stores_do_not_import_what_they_name(self, tmp_path, monkeypatch):
        from sharpen.store import Store

        monkeypatch.chdir(tmp_path)
        Path("trap.py").write_text("raise SystemExit('imported')")
        trial = Trial(model="trap.py:Net", dataset="forty", split="part-0", epochs=2).resolve("part-0")
        assert trial.model == "trap.py:Net"
        from sharpen.trial import Record

        store = Store(tmp_path / "store")
        store.add([Record(trial, 0.5, 0.5, 1, "ok", 0.1, "cpu", "float32", model_digest="ab")])
        frame = Store(tmp_path / "store").frame()
        assert frame["model"].tolist() == ["trap.py:Net"]
        assert frame["model_digest"].tolist() == ["ab"]


def test_what_no_weight_enters_is_computed_once():
    counts: list[int] = []

    class Counting(TwoLayers):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            counts.append(1)
            return super().forward(x, edge_index)

    way = way_of(Counting, model_args={"conv": "GCN"})
    assert way.folds
    plain = run(trials(TwoLayers, 2, 10, model_args={"conv": "GCN"}))
    monkey = way_of(TwoLayers, model_args={"conv": "GCN"})
    monkey.unfold()
    assert not monkey.folds
    assert all(record.status == "ok" for record in plain)


class Branching(nn.Module):
    """What it computes of constants differs from call to call: nothing of it may be given again."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.head, self.calls = nn.Linear(num_features, num_classes), 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.calls += 1
        return self.head(x * (1 + self.calls % 2))


def test_folding_ends_where_calls_differ():
    assert not way_of(Branching).folds

    class Written(nn.Module):
        def __init__(self, num_features: int, num_classes: int) -> None:
            super().__init__()
            self.head = nn.Linear(num_features, num_classes)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            total = torch.zeros(len(x), self.head.out_features, dtype=x.dtype)
            return total + self.head(x)

    wanted = trials(Written, 3, 6)
    for trial, record in zip(wanted, run(wanted), strict=True):
        same(record, run([trial])[0])


def test_rounding_alone_is_no_reason_for_a_loop(monkeypatch):
    whole, off_in = decision._pass, {torch.float32}

    def with_rounding(way: object, *more: object) -> Tensor:
        """As a model gives it that multiplies the last bits of a sum, which many members add up in another order."""
        return whole(way, *more) + (way.name == "vmap" and way.inputs.dtype in off_in)

    monkeypatch.setattr(decision, "_pass", with_rounding)
    assert way_of(TwoLayers, model_args={"conv": "GCN"}, dtype=torch.float32).name == "vmap"
    off_in.add(torch.float64)
    wrong = way_of(TwoLayers, model_args={"conv": "GCN"}, dtype=torch.float32)
    assert wrong.full_name == "loop: vectorised over runs it gives other scores"
