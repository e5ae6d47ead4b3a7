"""A network over the fused kernels, whose columns are joined, is the network over plain steps, whose columns are apart."""

from __future__ import annotations

import pytest
import torch

from sharpen import Graph
from sharpen.kernels import backend
from sharpen.models.initial import draw
from sharpen.models.inputs import Inputs
from sharpen.models.registry import model_info

NODES, FEATURES, CLASSES = 9, 5, 3


def make_graph() -> Graph:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(NODES, FEATURES, generator=generator)
    edges = torch.randint(NODES, (2, 14), generator=generator)
    return Graph(x=x, edge_index=edges, y=[i % CLASSES for i in range(NODES)])


@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat"])
@pytest.mark.parametrize(("residual", "input_linear"), [(False, False), (True, False), (True, True)])
def test_logits_and_gradients_are_those_of_plain_steps(kernel_device, monkeypatch, model, residual, input_linear):
    network = model_info(model).load().fused(FEATURES, CLASSES, 2, 4, "layer", residual, input_linear)

    def run(fused):
        monkeypatch.setattr(backend, "fused", lambda x: fused)
        inputs = Inputs(make_graph(), kernel_device, torch.float32)
        parameters = draw(network.initials, [3, 4], kernel_device, torch.float32)
        for parameter in parameters.values():
            parameter.requires_grad_()
        projected = [block.detach().requires_grad_() for block in network.project(parameters, inputs)]
        logits = network.logits(parameters, {}, projected, inputs, True)
        later = [p for name, p in parameters.items() if name not in network.first_names]
        gradients = torch.autograd.grad(logits.sin().sum(), [*projected, *later])
        first = network.project_gradients(gradients[: len(projected)], parameters, inputs)
        return len(projected), [logits.detach(), *first.values(), *gradients[len(projected) :]]

    blocks, expected = run(fused=False)
    joined, actual = run(fused=True)
    assert joined == 1
    assert blocks == (1 if model != "gat" or input_linear else 2 + residual)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
