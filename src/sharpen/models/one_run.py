"""Where a module that was written for one run is called: some of what it asks of torch is answered in another way.

**OneRun** becomes a function of the run.
Dropout in a module draws from torch's generator, so what a run drops would depend on what was drawn before it, and on who trains
beside it. While a model is called, :class:`OneRun` answers in the generator's place: a draw is a function of the run's seed, of the
epoch, and of how many draws came before it in this forward pass. The model's own code stays as it is.

What it answers: dropout, also inside attention; ``rand``, ``randn``, ``randint``, ``randperm``, ``bernoulli`` and their in-place
forms; Gumbel noise. Anything else draws from torch's generator, which :func:`torch.func.vmap` refuses: such a model is trained in
a loop over its members, and the generator is seeded for each of them at every epoch.

**The features** are fixed: a linear map of them is computed by the sparse product of :class:`sharpen.kernels.features.FixedMatrix`,
whatever layer asks for it.

**What no weight enters** is computed once (:mod:`sharpen.models.folding`).

**Message passing** by index, as PyG's layers have it, becomes a product with a sparse matrix where rows are picked, weighed and
summed (:mod:`sharpen.models.messages`); else it is computed by :mod:`sharpen.kernels.segments`: one pass over rows for all members.
Both give the same bits every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sharpen.kernels.dropout import dropout, layer_keys, words
from sharpen.kernels.features import FixedMatrix, Products, fixed
from sharpen.kernels.segments import Index, pick, segment_sum
from sharpen.models.folding import Folding, tensors_in
from sharpen.models.inputs import Inputs
from sharpen.models.messages import Messages

# How many draws of a forward pass have a place of their own among the layers; see :func:`sharpen.kernels.dropout.layer_keys`.
_PLACES = 512


class OneRun(TorchFunctionMode):
    """Answers for torch while one run's model is called, with the run's keys, [2]: under vmap they stand for those of all members.

    >>> from sharpen import Graph
    >>> from sharpen.kernels.dropout import member_keys
    >>> inputs = Inputs(Graph(x=[[1.0], [3.0]], edge_index=[[0], [1]]), torch.device("cpu"), torch.float32)
    >>> def draw(seed: int) -> Tensor:
    ...     with OneRun(member_keys([seed])[0], torch.tensor(0), inputs):
    ...         return F.dropout(torch.ones(100))
    >>> draw(1).equal(draw(1)), draw(1).equal(draw(2))
    (True, False)
    """

    def __init__(
        self,
        keys: Tensor,
        epoch: Tensor,
        inputs: Inputs,
        first: int = 0,
        folding: Folding | None = None,
        products: Products | None = None,
    ) -> None:
        super().__init__()
        self._folding, self._products = folding or Folding(), products
        self._folding.begin()
        self._keys, self._epoch, self._inputs, self._first, self._drawn = keys, epoch, inputs, first, 0
        self._indices: dict[tuple[object, ...], Index] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        more = kwargs or {}
        if func is Tensor.expand_as:  # an index that takes the shape of messages depends on nothing but that shape
            func, args = Tensor.expand, (args[0], tuple(args[1].shape))
        elif any(type(each) is Messages for each in tensors_in((args, more))):
            given = self._of_messages(func, args, more)
            if given is not NotImplemented:
                return given
            args, more = _picked(args), _picked(more)
        answer = _ANSWERS.get(func)

        def run() -> Any:
            return func(*args, **more) if answer is None else answer(self, func, *args, **more)

        return run() if func in _DRAWS else self._folding.call(func, args, more, run)

    def _of_messages(self, func: Callable[..., Any], args: Any, more: Mapping[str, Any]) -> Any:
        """What can be told of messages, or done with them, while they are not picked."""
        if func in _SHAPES:
            return func(*args, **more)
        if func is Tensor.new_zeros:
            return args[0].source.new_zeros(*args[1:], **more)
        if func is Tensor.new_ones:
            return torch.ones(*args[1:], **({"dtype": args[0].dtype, "device": args[0].device} | dict(more)))
        if func in _PRODUCTS and len(args) == 2 and not more:
            messages, weight = args if type(args[0]) is Messages else args[::-1]
            return messages.weighed(weight)
        if func in (Tensor.scatter_add_, Tensor.scatter_add) and len(args) == 4 and type(args[3]) is Messages:
            into, _, index, rows = args
            plan = self._target(*args) if self._folding.is_constant(index) else None
            if plan is not None:
                return _added(func, into, rows.summed(plan, into.shape[0], self._folding))
        return NotImplemented

    # Numbers.

    def _next(self) -> Tensor:
        """The keys of the next draw, [2]."""
        round_, place = divmod(self._drawn, _PLACES)
        self._drawn += 1
        keys = layer_keys(self._keys.unsqueeze(0), self._epoch, self._first + place)
        if round_:
            keys = layer_keys(keys, torch.full_like(self._epoch, round_), 0)
        return keys.squeeze(0)

    def _uniform(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """Numbers in [0, 1), of 24 bits."""
        bits = (words(self._next(), max(1, shape.numel())) >> 8) & 0xFFFFFF
        return (bits[: shape.numel()].to(dtype) * 2.0**-24).view(shape)

    def _normal(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        radius = torch.sqrt(-2 * torch.log1p(-self._uniform(shape, dtype)))
        return radius * torch.cos(2 * math.pi * self._uniform(shape, dtype))

    def _exponential(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        return -torch.log1p(-self._uniform(shape, dtype))

    # Answers: the function that was called, then its arguments.

    def dropout(self, _: object, x: Tensor, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """As :func:`torch.nn.functional.dropout`; the rate may be a tensor."""
        if not training or (not isinstance(p, Tensor) and p == 0):
            return x
        out = dropout(x, p, self._next())
        return x.copy_(out) if inplace else out

    def attention(
        self,
        func: Callable[..., Tensor],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **more: Any,
    ) -> Tensor:
        """As :func:`torch.nn.functional.scaled_dot_product_attention`; with dropout, by its formula."""
        if dropout_p == 0:
            return func(query, key, value, attn_mask, 0.0, is_causal, scale=scale, **more)
        if is_causal or more.get("enable_gqa"):
            raise NotImplementedError("dropout in causal or grouped attention")
        score = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            score = score.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else score + attn_mask
        return self.dropout(None, score.softmax(-1), dropout_p) @ value

    def heads(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Multi-head attention, whose dropout lies inside."""
        inner = F.dropout, F.scaled_dot_product_attention
        F.dropout = lambda *args, **kwargs: self.dropout(None, *args, **kwargs)
        F.scaled_dot_product_attention = lambda *args, **kwargs: self.attention(inner[1], *args, **kwargs)
        try:
            return func(*args, **kwargs)
        finally:
            F.dropout, F.scaled_dot_product_attention = inner

    def gumbel(
        self, _: object, logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 0.0, dim: int = -1
    ) -> Tensor:
        """As :func:`torch.nn.functional.gumbel_softmax`."""
        noise = -torch.log(self._exponential(logits.shape, logits.dtype).clamp_min(1e-10))
        soft = ((logits + noise) / tau).softmax(dim)
        if not hard:
            return soft
        one_hot = torch.zeros_like(soft).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
        return one_hot - soft.detach() + soft

    def linear(self, func: Callable[..., Tensor], x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """A linear map: of a fixed input by its own product."""
        matrix = self._fixed(x)
        if matrix is None:
            return func(x, weight, bias)
        out = matrix.times(weight.t().unsqueeze(0), self._products).squeeze(0)
        return out if bias is None else out + bias

    def product(self, func: Callable[..., Tensor], x: Tensor, weight: Tensor, **more: Any) -> Tensor:
        """A product, likewise."""
        matrix = None if more or weight.dim() != 2 else self._fixed(x)
        if matrix is None:
            return func(x, weight, **more)
        return matrix.times(weight.unsqueeze(0), self._products).squeeze(0)

    def _index(self, rows: Tensor) -> Index | None:
        """What is known of row numbers that all members share, the same all along a row; None of others."""
        try:
            key = (rows.data_ptr(), rows.shape, rows.stride(), rows._version)
        except RuntimeError:  # every member has its own
            return None

        def make() -> Index:
            if key not in self._indices:
                # Which also keeps the memory from being used for others while this pass lasts.
                self._indices[key] = Index(rows.as_strided((len(rows),), rows.stride()[:1], rows.storage_offset()))
            return self._indices[key]

        return self._folding.remember("index", rows, make)

    def _fixed(self, x: Tensor) -> FixedMatrix | None:
        """A matrix that no weight enters; None of others."""
        inputs = self._inputs
        known = inputs.fixed_of(x)
        if known is not None or not self._folding.is_constant(x) or x.dim() != 2 or not x.is_floating_point():
            return known
        return self._folding.remember("matrix", x, lambda: fixed(_sparse(x), inputs.device, inputs.dtype))

    def index_select(self, func: Callable[..., Tensor], x: Tensor, dim: int, index: Tensor) -> Tensor:
        """Rows of node vectors; where they are those of the graph's edges, not picked until somebody needs them."""
        plan = self._index(index) if x.is_floating_point() and dim in (0, -x.dim()) and index.dim() == 1 else None
        if plan is None:
            return func(x, dim, index)
        folding = self._folding
        if folding.broken or folding.is_constant(x) or not folding.is_constant(index) or x.dim() < 2:
            return pick(x, plan)
        return Messages(x, plan)

    def scatter_add(self, func: Callable[..., Tensor], into: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Sums of rows: the index of a row is repeated for all its numbers."""
        plan = self._target(into, dim, index, src)
        return func(into, dim, index, src) if plan is None else _added(func, into, segment_sum(src, plan, len(into)))

    def _target(self, into: Tensor, dim: int, index: Tensor, src: Tensor) -> Index | None:
        """Which row each row is added to; None if single numbers of it go to different ones."""
        whole = into.is_floating_point() and dim in (0, -into.dim()) and index.shape == src.shape
        return self._index(index) if whole and _repeats(index) else None

    def randperm(self, _: object, n: int, **more: Any) -> Tensor:
        """As :func:`torch.randperm`: the order of numbers that are all different."""
        return words(self._next(), max(1, n))[:n].argsort()

    def bernoulli(self, _: object, p: Tensor, *more: Any, **options: Any) -> Tensor:
        """As :func:`torch.bernoulli`."""
        return (self._uniform(p.shape, p.dtype) < p).to(p.dtype)


def _picked(value: Any) -> Any:
    """Arguments with the rows themselves in the place of messages."""
    if isinstance(value, tuple | list):
        return type(value)(map(_picked, value))
    if isinstance(value, dict):
        return {name: _picked(each) for name, each in value.items()}
    return value.picked() if type(value) is Messages else value


def _sparse(x: Tensor) -> Any:
    """A matrix as its products are fastest: with few numbers that are not 0, without the others."""
    array = x.cpu().numpy()
    return sp.csr_array(array) if np.count_nonzero(array) < array.size / 4 else array


def _added(func: Callable[..., Tensor], into: Tensor, total: Tensor) -> Tensor:
    return into.add_(total) if func is Tensor.scatter_add_ else into + total


def _repeats(index: Tensor) -> bool:
    """Whether an index is the same all along a row, as :func:`torch.Tensor.expand` makes it."""
    try:
        return all(stride == 0 or size == 1 for stride, size in zip(index.stride()[1:], index.shape[1:], strict=True))
    except RuntimeError:  # every member has its own
        return False


def _created(draw: Callable[[OneRun, torch.Size, torch.dtype], Tensor]) -> Callable[..., Tensor]:
    """``torch.rand`` and its like: a new tensor of a size."""

    def answer(self: OneRun, func: object, *size: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        size = options.pop("size", size)
        flat = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        out = draw(self, torch.Size(flat), dtype or torch.get_default_dtype())
        return out if options.get("device") is None else out.to(options["device"])

    return answer


def _alike(draw: Callable[[OneRun, torch.Size, torch.dtype], Tensor]) -> Callable[..., Tensor]:
    """``torch.rand_like`` and its like."""

    def answer(self: OneRun, func: object, like: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        return draw(self, like.shape, dtype or like.dtype)

    return answer


def _in_place(values: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``Tensor.uniform_`` and its like."""

    def answer(self: OneRun, func: object, x: Tensor, *args: Any, generator: object = None, **kwargs: Any) -> Tensor:
        return x.copy_(values(self, x, *args, **kwargs))

    return answer


def _uniform_values(self: OneRun, x: Tensor, a: float = 0.0, b: float = 1.0, **names: float) -> Tensor:
    a, b = names.get("from", a), names.get("to", b)
    return a + (b - a) * self._uniform(x.shape, x.dtype)


def _randint(self: OneRun, func: object, *args: Any, dtype: torch.dtype = torch.int64, **options: Any) -> Tensor:
    names = dict(zip(("low", "high", "size") if len(args) == 3 else ("high", "size"), args, strict=False)) | options
    low, high = names.get("low", 0), names["high"]
    uniform = self._uniform(torch.Size(names["size"]), torch.float64)
    return (low + uniform * (high - low)).floor().to(dtype)


_ANSWERS: dict[Any, Callable[..., Any]] = {
    F.dropout: OneRun.dropout,
    torch.dropout: OneRun.dropout,
    F.scaled_dot_product_attention: OneRun.attention,
    F.multi_head_attention_forward: OneRun.heads,
    F.gumbel_softmax: OneRun.gumbel,
    F.linear: OneRun.linear,
    torch.matmul: OneRun.product,
    torch.mm: OneRun.product,
    Tensor.matmul: OneRun.product,
    Tensor.mm: OneRun.product,
    Tensor.__matmul__: OneRun.product,
    Tensor.index_select: OneRun.index_select,
    torch.index_select: OneRun.index_select,
    Tensor.scatter_add_: OneRun.scatter_add,
    Tensor.scatter_add: OneRun.scatter_add,
    torch.rand: _created(OneRun._uniform),
    torch.randn: _created(OneRun._normal),
    torch.rand_like: _alike(OneRun._uniform),
    torch.randn_like: _alike(OneRun._normal),
    torch.randint: _randint,
    torch.randperm: OneRun.randperm,
    torch.bernoulli: OneRun.bernoulli,
    Tensor.bernoulli: OneRun.bernoulli,
    Tensor.uniform_: _in_place(_uniform_values),
    Tensor.normal_: _in_place(lambda run, x, mean=0.0, std=1.0: mean + std * run._normal(x.shape, x.dtype)),
    Tensor.bernoulli_: _in_place(lambda run, x, p=0.5: (run._uniform(x.shape, torch.float32) < p).to(x.dtype)),
    Tensor.exponential_: _in_place(lambda run, x, lambd=1.0: run._exponential(x.shape, x.dtype) / lambd),
}
# What a tensor can be asked without looking at its numbers; and what multiplies it by a weight.
_SHAPES = {Tensor.dim, Tensor.size, Tensor.numel, Tensor.is_floating_point, Tensor.__len__, Tensor.dtype.__get__}  # type: ignore[attr-defined]
_SHAPES |= {getattr(Tensor, name).__get__ for name in ("shape", "device", "layout", "ndim", "is_cuda", "is_sparse")}
_PRODUCTS = {torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__}
_FIXED = (OneRun.linear, OneRun.product, OneRun.index_select, OneRun.scatter_add)
_DRAWS = {func for func, answer in _ANSWERS.items() if answer not in _FIXED}
