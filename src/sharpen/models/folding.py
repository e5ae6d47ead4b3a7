"""What no weight enters is computed once.

A module computes much that depends on the graph alone, again in every call: self-loops, normalisation, the first aggregation of
the features. Here the results of operations on constants are recorded in a first call and given again in later ones. That spares
the work; and what in it waits for the host (boolean indexing, ``.item()``) is gone from the later calls, which can then be
captured.

The record is a list, in the order of the calls: an operation is answered from it only if it is the one that came at this place
before, with the same constants and the same other arguments. A call that goes another way ends the folding for good.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# Results that are no function of their arguments; and those without a tensor among their arguments that are constants.
_RANDOM = re.compile("rand|dropout|bernoulli|multinomial|normal|poisson|exponential|uniform|geometric|cauchy")
_CREATED = (torch.zeros, torch.ones, torch.full, torch.arange, torch.eye, torch.tensor, torch.empty, torch.linspace)


@dataclass(eq=False)
class _Step:
    func: Callable[..., Any]
    args: Any
    result: Any
    volatile: bool = False


class Folding:
    """The record of one kind of call, training or evaluation, of one module; what it is called with is
    constant, and of nothing follows nothing.

    >>> x = torch.ones(2)
    >>> folding, seen = Folding([x], 100), []
    >>> for _ in range(3):
    ...     folding.begin()
    ...     y = folding.call(torch.add, (x, 1), {}, lambda: seen.append("computed") or torch.add(x, 1))
    >>> y.tolist(), seen
    ([2.0, 2.0], ['computed'])
    """

    def __init__(self, constants: Iterable[Tensor] = (), most_bytes: int = 0) -> None:
        self._roots = {id(tensor): tensor for tensor in constants}
        self._left = most_bytes
        self._steps: list[_Step] = []
        self._made: dict[int, _Step] = {}
        self._counted = {_memory(tensor)[0] for tensor in self._roots.values()}
        self._recorded, self._next = False, 0
        self.broken = not self._roots
        self.known: dict[tuple[object, ...], Any] = {}

    def remember(self, what: str, tensor: Tensor, make: Callable[[], Any]) -> Any:
        """Something that follows from a constant, made once; from any other tensor, made anew."""
        if self.broken or not self.is_constant(tensor):
            return make()
        return self.keep((what, id(tensor)), make)

    def keep(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Something that follows from what is kept here already, by whose identity it is known, made once."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def begin(self) -> None:
        """A new call of the module."""
        self._recorded = self._recorded or self._next > 0 or bool(self._steps)
        self._next = 0

    def is_constant(self, tensor: Tensor) -> bool:
        return id(tensor) in self._roots or id(tensor) in self._made

    def call(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Callable[[], Any]
    ) -> Any:
        """The result of an operation: from the record, or computed by ``run``."""
        if self.broken:
            return run()
        tensors = list(tensors_in((args, kwargs)))
        if not (tensors or func in _CREATED) or not all(map(self.is_constant, tensors)):
            self._note_writes(func, args, tensors)
            return run()
        if _RANDOM.search(getattr(func, "__name__", "")):
            return run()
        if self._recorded:
            return self._again(func, (args, dict(kwargs)), run)
        result = run()
        kept = list(tensors_in(result))
        new = {place: size for place, size in map(_memory, kept) if place not in self._counted}
        if sum(new.values()) > self._left or any(t.requires_grad for t in kept):
            return result  # not kept: from here on it is no constant
        self._left -= sum(new.values())
        self._counted |= set(new)
        step = _Step(func, (args, dict(kwargs)), result)
        self._steps.append(step)
        for tensor in kept:
            self._made.setdefault(id(tensor), step)
        self._next += 1
        return result

    def _again(self, func: Callable[..., Any], args: Any, run: Callable[[], Any]) -> Any:
        step = self._steps[self._next] if self._next < len(self._steps) else None
        if step is None or step.func != func or not _same(step.args, args):
            self.broken = True
            return run()
        self._next += 1
        return run() if step.volatile else step.result

    def _note_writes(self, func: Callable[..., Any], args: tuple[Any, ...], tensors: list[Tensor]) -> None:
        """A constant that something else is written into is none from there on, and is made anew in every call."""
        name = getattr(func, "__name__", "")
        writes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if not writes or not args or not isinstance(args[0], Tensor) or not self.is_constant(args[0]):
            return
        made = self._made.get(id(args[0]))
        if made is None or made.func not in _FRESH:  # an input itself, or a view of something: too hard to tell
            self.broken = True
        else:
            made.volatile = True
            del self._made[id(args[0])]


def _memory(tensor: Tensor) -> tuple[int, int]:
    """What a tensor is kept in, and its bytes: a view shares it with what it is a view of, however large it looks.

    >>> x = torch.ones(1, 4)
    >>> _memory(x.expand(1000, 4)) == _memory(x), _memory(x)[1]
    (True, 16)
    """
    if tensor.layout is not torch.strided:
        return id(tensor), tensor._nnz() * (tensor.element_size() + 16)
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


_FRESH = {*_CREATED, Tensor.new_zeros, Tensor.new_ones, Tensor.new_full, Tensor.new_empty, Tensor.clone}
_FRESH |= {torch.zeros_like, torch.ones_like, torch.empty_like, torch.full_like}


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in arguments, wherever they stand.

    >>> [len(each) for each in tensors_in(((torch.ones(2), [torch.ones(3)]), {"out": torch.ones(4)}))]
    [2, 3, 4]
    """
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, slice):
        yield from tensors_in((value.start, value.stop, value.step))


def _same(a: Any, b: Any) -> bool:
    """Whether arguments are the same: tensors by identity, all else by value."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return a is b
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, slice):
        return _same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    try:
        return bool(a == b)
    except (TypeError, ValueError, RuntimeError):
        return False
