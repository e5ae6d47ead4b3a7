r"""Tsallis entropy: one number between "sure" (0) and "could be any class" for every prediction.

.. math::
    H_q(p) = \frac{1 - \sum_c p_c^q}{q - 1}, \qquad H_1(p) = \lim_{q \to 1} H_q(p) = -\sum_c p_c \log p_c

The order q > 0 sets where the entropy pulls hardest: q = 2 is the Gini impurity, q = 1 is Shannon's entropy, a
smaller q weighs unlikely classes more. With C classes 0 <= H_q <= (1 - C^(1-q)) / (q - 1), which is 1 - 1/C for q = 2.

Both functions work on log-probabilities throughout, so that values and gradients (first and second) stay finite however
sure the prediction is, and they never look at a value on the host: they can be captured in a CUDA graph.
"""

import math

import torch
from torch import Tensor

from sharpen.errors import InputError

# |q - 1| is kept above this: small enough that expm1(d * log p) / d is log p to the last bit or two (so Shannon needs
# no formula of its own), and large enough that neither d * log p nor 1 / d leaves the range of float32.
_SMALLEST_DISTANCE = 1e-20


def tsallis_entropy(logits: Tensor, q: float | Tensor = 2.0) -> Tensor:
    r"""Tsallis entropy of :math:`\mathrm{softmax}(\mathrm{logits})` over the last dimension.

    Args:
        logits: ``[..., C]``. Half precision is computed, and returned, in float32. A logit of -inf is a class that is
            ruled out.
        q: the order, > 0. A tensor must broadcast against ``logits.shape[:-1]`` (``[R, 1]`` for logits ``[R, N, C]``)
            and is trusted to be positive, since to look would stall a GPU. No gradient flows to it.

    Returns:
        The entropies, ``[...]``.

    >>> logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, -1e4, -1e4], [1e4, 0.0, 0.0, 0.0]])
    >>> tsallis_entropy(logits)  # Gini: 1 - 1/4, 1 - 1/2, 0
    tensor([0.7500, 0.5000, 0.0000])
    >>> tsallis_entropy(logits[:2], q=1)  # Shannon: log 4, log 2
    tensor([1.3863, 0.6931])
    """
    return tsallis_entropy_of_log_probs(torch.log_softmax(widen(logits), dim=-1), q)


def tsallis_entropy_of_log_probs(log_p: Tensor, q: float | Tensor = 2.0, p: Tensor | None = None) -> Tensor:
    r"""Tsallis entropy of a distribution given by its log-probabilities over the last dimension.

    With a = min(q, 1) and d = \|q - 1\|, both the q >= 1 and the q < 1 side of the definition read

    .. math::
        H_q(p) = -\frac{1}{d} \sum_c e^{a \log p_c} \, \mathrm{expm1}(d \log p_c),

    in which no exponent is positive (nothing overflows), nothing is subtracted (nothing cancels near q = 1), and every
    summand has the same sign. For q = 2, given as a number, the cheaper 1 - ‖p‖² is taken.

    Args:
        log_p: ``[..., C]``, normalised: its exponentials sum to 1. May hold -inf.
        q: the order, as in :func:`tsallis_entropy`.
        p: ``exp(log_p)``, if you have it already; saves computing it again.

    Returns:
        The entropies, ``[...]``.

    >>> tsallis_entropy_of_log_probs(torch.tensor([0.5, 0.5, 0.0]).log(), q=3.0)  # (1 - 2/8) / 2
    tensor(0.3750)
    >>> tsallis_entropy_of_log_probs(torch.full((2, 2), 0.5).log(), q=torch.tensor([1.0, 2.0]))  # an order for each row
    tensor([0.6931, 0.5000])
    """
    log_p = widen(log_p)
    if isinstance(q, Tensor):
        # "0 -" rather than a minus sign: a sure prediction has entropy 0, not -0.
        order = q.detach().to(log_p)
        distance = (order - 1).abs().clamp_min(_SMALLEST_DISTANCE)
        power = torch.exp(order.clamp_max(1).unsqueeze(-1) * log_p)
        return (0 - (power * torch.expm1(distance.unsqueeze(-1) * log_p)).sum(-1)) / distance
    if not 0 < q < math.inf:
        raise InputError(f"is {q}; give a finite order above 0, such as 2 (Gini) or 1 (Shannon)", field="q")
    if p is None or q < 1:
        p = torch.exp(min(q, 1) * log_p)
    if q == 2:
        # The norm is one pass over the classes each way and keeps no squares.
        norm: Tensor = torch.linalg.vector_norm(p, dim=-1)
        return 1 - norm.square()
    gap = max(abs(q - 1), _SMALLEST_DISTANCE)
    return (0 - (p * torch.expm1(gap * log_p)).sum(-1)) / gap


def widen(values: Tensor) -> Tensor:
    """Half precision as float32, anything else as it is: a sum of squares near 1 needs more than three digits.

    >>> widen(torch.zeros(2, dtype=torch.bfloat16)).dtype, widen(torch.zeros(2, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
