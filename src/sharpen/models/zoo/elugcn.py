"""A graph made from labels beside the given one: a GCN on both, told apart where labels and features disagree."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sharpen.models.blocks import Dropout, Perceptron
from sharpen.models.inputs import Inputs
from sharpen.models.run import Run
from sharpen.models.zoo.parts import features, inverse

_RETURN, _LEAST, _KEPT = 0.3, 0.2, 0.9


class ELUGCN(nn.Module):
    r"""Labels are propagated over a graph that is solved for in closed form (Huang et al., *ELU-GCN*, ICML 2025).

    .. math:: S = X M, \quad M = \tfrac{1}{\beta} \hat{Y}^\top - \tfrac{1}{\beta^2} \hat{Y}^\top X
        \big( I + \tfrac{1}{\beta} X^\top X \big)^{-1} X^\top, \qquad
        Z = (1 - \gamma) \hat{A}\, \mathrm{ReLU}(\hat{A} X_0 W) W' + \gamma \hat{A}\, \mathrm{ReLU}(S X_0 W) W'

    First an MLP is trained alone; X are its probabilities. Nodes on which label propagation and Â² X agree keep their class as a
    label; Ŷ is the fixed point of spreading these by S. Then the GCN is trained, with an additional loss: a contrast of both views'
    projections, near where the two agreed and far where not, and the Shannon entropy of all predictions. S is of the rank of the
    classes and never written out; the authors keep a tenth of its entries, here all count. It belongs to one graph.

    Args:
        hidden, mlp_hidden, dropout: Of the GCN and of the MLP.
        pretrain, steps: Epochs of the MLP alone, and of spreading labels.
        spreads: Steps of label propagation that say which nodes agree.
        beta, gamma, tau: As in the formula; the temperature of the contrast.
        contrast, entropy: The weights of the two terms of the loss; 0 is without.
    """

    nodes_beliefs: Tensor
    nodes_labels: Tensor
    nodes_agree: Tensor
    trains: Tensor

    def __init__(
        self, num_features: int, num_classes: int, num_nodes: int, hidden: int = 64, dropout: float = 0.6, mlp_hidden: int = 128,
        pretrain: int = 200, steps: int = 200, spreads: int = 3, beta: float = 1000.0, gamma: float = 0.1, tau: float = 0.8,
        contrast: float = 0.1, entropy: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mlp = Perceptron([num_features, mlp_hidden, num_classes], dropout)
        self.first, self.second = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.projection, self.dropout = nn.Linear(num_classes, num_classes), Dropout(dropout)
        for name in ("nodes_beliefs", "nodes_labels"):
            self.register_buffer(name, torch.zeros(num_nodes, num_classes))
        self.register_buffer("nodes_agree", torch.zeros(num_nodes))
        self.register_buffer("trains", torch.zeros(()))
        self.pretrain, self.steps, self.spreads = pretrain, steps, spreads
        self.beta, self.gamma, self.tau, self.contrast, self.entropy = beta, gamma, tau, contrast, entropy

    def forward(self, x: Tensor, graph: Inputs, run: Run) -> Tensor | tuple[Tensor, Tensor]:
        x = features(graph)
        if self.training:
            self._learn_graph(x, graph, run)
        h = self.dropout(x)
        first = F.linear(h, self.first.weight)
        near = graph.propagate(first) + self.first.bias
        # Copies: another run's buffers may be written before this one's gradients are computed.
        far = self.nodes_beliefs.clone() @ (self._spreading() @ first) + self.first.bias
        near, far = (graph.propagate(self.second(self.dropout(view.relu()))) for view in (near, far))
        trains = self.trains.clone()
        scores = torch.where(trains > 0, (1 - self.gamma) * near + self.gamma * far, self.mlp(x))
        return (scores, trains * self._terms(scores, near, far)) if self.training else scores

    def _terms(self, scores: Tensor, near: Tensor, far: Tensor) -> Tensor:
        """The contrast of both views and the entropy."""
        one, other = (F.normalize(F.elu(self.projection(view)), dim=1) for view in (near, far))
        apart, agree = (one - other).square().sum(1), self.nodes_agree.clone()
        same = (agree * apart).sum() / agree.sum().clamp(min=1)
        different = ((1 - agree) * apart).sum() / (1 - agree).sum().clamp(min=1)
        contrast = F.softplus((different - same) / self.tau)  # −log of the share of exp(same / τ)
        logs = scores.log_softmax(1)
        return self.contrast * contrast - self.entropy * (logs.exp() * logs).sum(1).mean()

    def _spreading(self) -> Tensor:
        """M, [C, N]."""
        x, y = self.nodes_beliefs, self.nodes_labels
        inner = inverse(torch.eye(x.shape[1], dtype=x.dtype, device=x.device) + x.t() @ x / self.beta)
        return (y.t() - (y.t() @ x) @ (inner @ x.t()) / self.beta) / self.beta

    @torch.no_grad()
    def _learn_graph(self, x: Tensor, graph: Inputs, run: Run) -> None:
        """While the MLP is trained: what its probabilities and labels agree on. Afterwards: a step of spreading these."""
        before, last = run.epoch <= self.pretrain, run.epoch == self.pretrain + self.steps
        beliefs = self.mlp.maps[1](self.mlp.maps[0](x).relu()).softmax(1)
        smooth, spread = graph.propagate(graph.propagate(beliefs)), run.labels
        known = run.train[:, None] > 0
        for _ in range(self.spreads):
            spread = _KEPT * graph.propagate(spread) + (1 - _KEPT) * spread
            spread = torch.where(known, run.labels, spread).clamp(0, 1)
        agree = (smooth.argmax(1) == spread.argmax(1)).to(x.dtype)
        guessed = F.one_hot(smooth.argmax(1), smooth.shape[1]).to(x.dtype) * agree[:, None]
        labels = torch.where(known, run.labels, guessed)
        # A step of spreading by the graph that the labels of before make; those that are known stay.
        old = self.nodes_labels
        step = (1 - _RETURN) * self.nodes_beliefs @ (self._spreading() @ old) + _RETURN * old
        step = torch.where(known | (self.nodes_agree[:, None] > 0), old, F.normalize(step, dim=1))
        step = torch.where(last | (step.abs() >= _LEAST), step, 0.0)
        step = torch.where(last, step, step.clamp(0, 1))
        step = torch.where(run.epoch <= self.pretrain + self.steps, step, old)
        self.nodes_labels.copy_(torch.where(before, labels, step))
        self.nodes_beliefs.copy_(torch.where(before, beliefs, self.nodes_beliefs))
        self.nodes_agree.copy_(torch.where(before, agree, self.nodes_agree))
        self.trains.copy_((run.epoch >= self.pretrain + self.steps).to(self.trains.dtype))
