"""The peer: a plain, well-written PyG training loop for one run.

Normalisation is cached, the features are on the device, metrics stay there until the end; nothing is left slow on purpose.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.evaluation.metrics import roc_auc
from sharpen.graph import Graph
from sharpen.graph.splits import Split
from sharpen.models.blueprint import Blueprint, arguments
from sharpen.models.inputs import Inputs
from sharpen.models.registry import model_info
from sharpen.trial import Trial


class PlainNetwork(nn.Module):
    """The paper's network in PyG's layers."""

    def __init__(self, trial: Trial, features: int, classes: int) -> None:
        super().__init__()
        assert trial.hidden is not None
        assert trial.layers is not None
        info = model_info(trial.model)
        norm: dict[str, Callable[[int], nn.Module]] = {
            "none": lambda width: nn.Identity(),
            "layer": nn.LayerNorm,
            "batch": nn.BatchNorm1d,
        }
        self.dropout = trial.dropout or 0.0
        self.graph_free = not info.uses_graph
        first = trial.hidden if trial.input_linear else features
        widths = list(itertools.pairwise([first] + [trial.hidden] * trial.layers))
        self.input = nn.Linear(features, trial.hidden) if trial.input_linear else None
        self.convs = nn.ModuleList(info.load().pyg_layer(a, b) for a, b in widths)
        self.residuals = nn.ModuleList(nn.Linear(a, b) for a, b in widths) if trial.residual else None
        self.norms = nn.ModuleList(norm[trial.norm or "none"](b) for _, b in widths)
        self.head = nn.Linear(trial.hidden, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores of all nodes."""
        if self.input is not None:
            x = self.input(x)
        for i, conv in enumerate(self.convs):
            out = conv(x) if self.graph_free else conv(x, edge_index)
            if self.residuals is not None:
                out = out + self.residuals[i](x)
            x = F.dropout(F.relu(self.norms[i](out)), self.dropout, self.training)
        logits: Tensor = self.head(x)
        return logits


class PlainLoop:
    """One run; :meth:`epoch` is one training step and one evaluation.

    A model of the paper is built of PyG's layers; any other is the module itself, called as it is.
    """

    def __init__(
        self, graph: Graph, split: Split, trial: Trial, metric: str, device: torch.device, blueprint: Blueprint
    ) -> None:
        torch.manual_seed(trial.seed)
        self.y, self.metric, self.lam = graph.y.to(device), metric, trial.lam
        self.train, self.val, self.test = (nodes.to(device) for nodes in (split.train, split.val, split.test))
        unlabeled = torch.ones(graph.num_nodes, dtype=torch.bool)
        unlabeled[split.train] = False
        self.unlabeled = unlabeled.nonzero().squeeze(1).to(device)
        if blueprint.network is not None:
            self.model: nn.Module = PlainNetwork(trial, graph.num_features, graph.num_classes).to(device)
            # The paper's edges: both directions, and one self-loop per node.
            edges = torch.stack([graph.adjacency.col.long(), graph.adjacency.row])
            self.args: tuple[Any, ...] = (graph.x.to_dense().to(device), edges.to(device))
            self.kwargs: dict[str, Any] = {}
        else:
            inputs = Inputs(graph, device, torch.float32)
            sizes = {"num_nodes": inputs.num_nodes, "num_edges": inputs.num_edges}
            self.model = replace(blueprint, sizes=sizes).build(trial.seed).to(device)
            self.args, self.kwargs = arguments(self.model, inputs, graph.num_classes)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=trial.lr or 0.0, weight_decay=trial.weight_decay or 0.0
        )
        self.best = torch.full((), -1.0, dtype=torch.float64, device=device)
        self.chosen = torch.zeros((), dtype=torch.float64, device=device)

    def epoch(self) -> None:
        """One training step of the sharpened objective, one evaluation."""
        self.model.train()
        self.optimizer.zero_grad()
        out = self.model(*self.args, **self.kwargs)
        logits, more = out if isinstance(out, tuple) else (out, 0.0)
        gini = 1 - logits.softmax(-1).square().sum(-1)
        loss = F.cross_entropy(logits[self.train], self.y[self.train]) + more
        loss = loss + self.lam * (gini[self.unlabeled].mean() - gini[self.train].mean())
        loss.backward()
        self.optimizer.step()
        self.model.eval()
        with torch.no_grad():
            logits = self.model(*self.args, **self.kwargs)
            val, test = self._score(logits, self.val), self._score(logits, self.test)
            self.chosen = torch.where(val > self.best, test, self.chosen)
            self.best = torch.maximum(val, self.best)

    def _score(self, logits: Tensor, nodes: Tensor) -> Tensor:
        if self.metric == "accuracy":
            return (logits[nodes].argmax(-1) == self.y[nodes]).double().mean()
        probability = logits[nodes].softmax(-1)[:, 1]
        return roc_auc(probability, self.y[nodes], torch.ones_like(nodes, dtype=torch.bool))
