r"""Accuracy, plain and balanced, and ROC-AUC of whole populations, on the device.

All take any number of leading dimensions (a population of R members), have static shapes, never wait for the host and
run the same way every time, so they may stand inside a captured CUDA graph. They count in exact arithmetic: two epochs
with equally many hits (in each class, where classes count alike) have equal scores, whatever nodes they hit, and "the
first best epoch" means what it says.
"""

import torch
from torch import Tensor


def accuracy(logits: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    r"""Weighted share of nodes whose largest logit is that of their class.

    .. math:: \frac{\sum_i w_i \, [\operatorname{argmax}_c z_{ic} = y_i]}{\sum_i w_i}

    Args:
        logits: ``[..., N, C]``.
        y: ``[N]`` (or ``[..., N]``) classes; what stands at nodes of weight zero does not matter.
        weight: ``[..., N]``, a mask or non-negative weights such as ``mask / mask.sum()``.

    Returns:
        ``[...]`` in float64. NaN for a member that has a NaN logit among its weighted nodes, or no weighted node.

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0], [0.0, 9.0]])
    >>> accuracy(logits, torch.tensor([0, 1, 1, 0]), torch.tensor([True, True, True, False])).item()
    0.6666666666666666
    """
    largest, predicted = logits.max(dim=-1)
    # A NaN counts as the largest logit: without this, a diverged member would seem to predict one class for all nodes.
    hit = torch.where(largest.isnan(), torch.nan, (predicted == y).float())
    # Equal float32 weights sum without rounding in float64, in any order; the quotient is then exactly hits / count.
    hits = torch.where(weight > 0, hit * weight, 0.0).sum(dim=-1, dtype=torch.float64)
    return hits / weight.sum(dim=-1, dtype=torch.float64)


def balanced_accuracy(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    r"""The mean over classes of the share of their nodes whose largest logit is right; classes without a node do not count.

    .. math:: \frac{1}{C} \sum_c \frac{|\{i : \operatorname{argmax} z_i = c, y_i = c\}|}{|\{i : y_i = c\}|}

    Args:
        logits: ``[..., N, C]``.
        y: ``[N]`` classes; what stands at nodes outside the mask does not matter.
        mask: ``[..., N]``, the nodes that count.

    Returns:
        ``[...]`` in float64. NaN for a member that has a NaN logit among its masked nodes, or no masked node.

    >>> logits = torch.tensor([[2.0, 0.0], [3.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> balanced_accuracy(logits, torch.tensor([0, 0, 0, 1]), torch.ones(4, dtype=torch.bool)).item()
    0.5
    """
    classes = torch.arange(logits.shape[-1], device=logits.device)
    member_of = (y[:, None] == classes).double()
    size = mask.double() @ member_of  # [..., C]: whole numbers, so in any order the same sum
    largest, predicted = logits.max(dim=-1)
    hit = torch.where(largest.isnan(), torch.nan, (predicted == y).double())
    hits = torch.where(mask, hit, 0.0) @ member_of
    return torch.where(size > 0, hits / size, 0.0).sum(dim=-1) / (size > 0).sum(dim=-1)


def roc_auc(score: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    r"""Area under the ROC curve: the chance that a positive node scores above a negative one, ties counting half.

    .. math:: \frac{1}{|P|\,|N|} \sum_{i \in P} \sum_{j \in N} [s_j < s_i] + \tfrac12 [s_j = s_i]

    One sort replaces the double sum: among sorted scores, the negatives below (or level with) a score are a difference
    of running counts.

    Args:
        score: ``[..., N]``, higher for nodes that look positive: a probability, a logit, a difference of logits.
        y: ``[N]`` (or ``[..., N]``), 1 for positive and 0 for negative; nodes with anything else are left out.
        mask: ``[..., N]``, the nodes that count: a mask, or weights of which only "not zero" is read.

    Returns:
        ``[...]`` in float64. NaN for a member that has a NaN score among its masked nodes, or lacks one of the classes.

    >>> score, y = torch.tensor([0.1, 0.4, 0.4, 0.8, 0.9]), torch.tensor([0, 0, 1, 1, 0])
    >>> roc_auc(score, y, torch.tensor([True, True, True, True, False])).item()
    0.875
    """
    score, y, mask = torch.broadcast_tensors(score, y, mask != 0)
    # Nodes left out sort last, so that a NaN among them cannot disturb the search below.
    score = torch.where(mask, score, torch.inf)
    ranked, order = score.sort(dim=-1)
    positive = (mask & (y == 1)).gather(-1, order)
    negative = (mask & (y == 0)).gather(-1, order)
    # below[k]: negatives among the k lowest scores. Integers: exact, and deterministic on every device.
    below = torch.nn.functional.pad(negative.cumsum(dim=-1), (1, 0))
    level = torch.searchsorted(ranked, ranked)
    above = torch.searchsorted(ranked, ranked, right=True)
    twice_won = torch.where(positive, below.gather(-1, level) + below.gather(-1, above), 0).sum(dim=-1)
    auc = twice_won.double() / (2 * positive.sum(dim=-1) * negative.sum(dim=-1)).double()
    return torch.where(score.isnan().any(dim=-1), torch.nan, auc)
