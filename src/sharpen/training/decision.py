"""Which way a population is computed: decided before training, from a pass of two members."""

from __future__ import annotations

import torch
from torch import Tensor

from sharpen.kernels.dropout import member_keys
from sharpen.models.blueprint import Blueprint, named_failures
from sharpen.models.inputs import Inputs
from sharpen.training.modular import Modular
from sharpen.training.ways import Fused, Moment, Way, undisturbed
from sharpen.trial import Trial

# What torch says where code cannot be vectorised or captured, and what that is in a sentence.
_REASONS = (
    ("randomness", "it draws random numbers that are not known here"),
    (".item()", "it reads a number on the host (.item(), or a branch on a value)"),
    ("data-dependent", "it branches on a value"),
    ("dynamic", "the size of something depends on values (boolean indexing, unique)"),
    ("nonzero", "the size of something depends on values (boolean indexing, unique)"),
    ("in-place", "it writes into a tensor that all members share"),
    ("inplace", "it writes into a tensor that all members share"),
)
_OTHER_SCORES = "vectorised over runs it gives other scores"


def decide(blueprint: Blueprint, inputs: Inputs) -> Way:
    """The fastest way that the model's code allows.

    >>> from sharpen import Graph
    >>> inputs = Inputs(Graph(x=torch.eye(3), edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
    >>> [decide(Blueprint(name, 3, 2, {}), inputs).name for name in ("gcn", "appnp")]
    ['fused', 'vmap']
    """
    if blueprint.network is not None:
        return Fused(blueprint.network, inputs)
    with undisturbed(inputs.device):
        loop = Modular(blueprint, inputs, "loop")
        loop.unfold()
        before = _generators(inputs.device)
        with named_failures(blueprint):
            expected = _pass(loop)
        loop.draws = any(not a.equal(b) for a, b in zip(before, _generators(inputs.device), strict=True))
        if loop.draws:
            loop.why = _REASONS[0][1]
            return loop
        for way in (Modular(blueprint, inputs, "vmap"), Modular(blueprint, inputs, "loop")):
            wrong = _wrong(way, expected)
            if not wrong or (wrong == _OTHER_SCORES and _right_in_double(blueprint, inputs, way.name)):
                way.why = loop.why
                break
            loop.why = loop.why or wrong
        else:
            return loop
        if way.name == "vmap" and inputs.device.type == "cpu" and way.cpu_members <= 1:
            # Nothing to vectorise: one member fills the memory that a CPU is fast with.
            way.name = "loop"
        if way.name == "vmap" and inputs.device.type == "cuda":
            way.why = _waits(way)
            way.name = "vmap" if way.why else "vmap, captured"
        return way


def _wrong(way: Modular, expected: Tensor, tolerance: float = 1e-2) -> str:
    """Why the scores of two members are none, or not those that are expected; empty if they are."""
    # Twice: what is computed once is recorded in the first pass, and given again in the second.
    found = [_wrong_once(way, expected, tolerance), _wrong_once(way, expected, tolerance)]
    if not way.folds:
        way.unfold()
        found = [_wrong_once(way, expected, tolerance)]
    return next(filter(None, found), "")


def _wrong_once(way: Modular, expected: Tensor, tolerance: float) -> str:
    try:
        scores = _pass(way)
    except torch.OutOfMemoryError:
        return "two of its runs do not fit in memory at once"
    except Exception as error:  # whatever the model's code and torch have to say to it
        return _reason(error)
    most = tolerance / 10 * float(expected.abs().max() + 1)
    close = torch.allclose(scores, expected, rtol=tolerance, atol=most, equal_nan=True)
    return "" if close else _OTHER_SCORES


def _right_in_double(blueprint: Blueprint, inputs: Inputs, name: str) -> bool:
    """Whether scores that differ do so by rounding alone.

    Where a choice hangs on a comparison (the nearest of many codes), or a matrix is nearly singular, the last bits of a sum decide,
    and a sum for many members is added up in another order. In double precision nothing of that is left to see.
    """
    if inputs.dtype == torch.float64:
        return False
    exact = inputs.in_type(torch.float64)
    one = Modular(blueprint, exact, "loop")
    one.unfold()
    return not _wrong(Modular(blueprint, exact, name), _pass(one), 1e-5)


def _generators(device: torch.device) -> list[Tensor]:
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


def _pass(way: Modular, watch: str = "default") -> Tensor:
    """Scores of two members in training, their gradients, and scores in evaluation."""
    keys = member_keys([0, 1]).to(way.inputs.device)
    parameters, statistics = way.start([Trial(seed=0), Trial(seed=1)])
    for parameter in parameters.values():
        parameter.requires_grad_()
    moment = Moment(keys, torch.zeros((), dtype=torch.int64, device=keys.device), None)
    if watch != "default":
        torch.cuda.set_sync_debug_mode(watch)
    trained = way.logits(parameters, statistics, [], True, moment)
    way.gradients(trained.square().mean((1, 2)), parameters, [])
    with torch.no_grad():
        return torch.cat([trained.detach(), way.logits(parameters, statistics, [], False, moment)])


def _waits(way: Modular) -> str:
    """Why an epoch cannot be captured: the first thing that waits for the host; empty if nothing does."""
    mode = torch.cuda.get_sync_debug_mode()
    try:
        _pass(way, watch="error")
    except RuntimeError as error:
        return _reason(error) if "synchroniz" not in str(error) else "it waits for the host at every call"
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    return ""


def _reason(error: Exception) -> str:
    text = str(error)
    if known := next((says for part, says in _REASONS if part in text), None):
        return known
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    return f"torch cannot vectorise it ({first[:160]})"
