"""First values of parameters: PyG's distributions, drawn from each member's own seed.

A member's parameter is a function of (seed, name, shape): it does not depend on the other members, on the order of
drawing, on the device, or on the precision.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Initial:
    """A parameter's shape and the distribution of its first values: a constant plus uniform noise in ±bound."""

    shape: tuple[int, ...]
    bound: float = 0.0
    constant: float = 0.0


def glorot(*shape: int) -> Initial:
    """Uniform in ±√(6 / (fan in + fan out)).

    >>> glorot(2, 4).bound
    1.0
    """
    return Initial(shape, math.sqrt(6 / (shape[-2] + shape[-1])))


def fan_in(inputs: int, *shape: int) -> Initial:
    """Uniform in ±1/√inputs, as :class:`torch.nn.Linear` has it for weights and biases.

    >>> fan_in(4, 3).bound
    0.5
    """
    return Initial(shape, inputs**-0.5)


def constant(value: float, *shape: int) -> Initial:
    """The same number everywhere."""
    return Initial(shape, constant=value)


def _draw(initial: Initial, seed: int, name: str) -> Tensor:
    if initial.bound == 0:
        return torch.full(initial.shape, initial.constant)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
    return torch.empty(initial.shape).uniform_(-initial.bound, initial.bound, generator=generator)


def draw(
    initials: Mapping[str, Initial], seeds: Sequence[int], device: torch.device, dtype: torch.dtype
) -> dict[str, Tensor]:
    """The first parameters of a population, one member for each seed.

    >>> w = draw({"w": glorot(2, 3)}, [5, 6, 5], torch.device("cpu"), torch.float32)["w"]
    >>> w.shape, w[0].equal(w[2]), w[0].equal(w[1])
    (torch.Size([3, 2, 3]), True, False)
    """
    distinct = list(dict.fromkeys(seeds))
    rows = torch.tensor([distinct.index(seed) for seed in seeds], device=device)
    parameters = {}
    for name, initial in initials.items():
        drawn = torch.stack([_draw(initial, seed, name) for seed in distinct])
        parameters[name] = drawn.to(device, dtype)[rows]
    return parameters
