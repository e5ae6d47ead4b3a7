"""How well, and how sure: metrics on the device, paired statistics, comparisons."""

from sharpen.evaluation.comparison import Comparison, Variant, choose_by_validation, compare_lams
from sharpen.evaluation.metrics import accuracy, roc_auc
from sharpen.evaluation.paired import (
    Consistency,
    PairedDifference,
    Pairs,
    UnpairedDifference,
    consistent_with,
    glass_delta,
    holm,
    pair,
    paired_difference,
    unpaired_difference,
)

__all__ = [
    "Comparison",
    "Consistency",
    "PairedDifference",
    "Pairs",
    "UnpairedDifference",
    "Variant",
    "accuracy",
    "choose_by_validation",
    "compare_lams",
    "consistent_with",
    "glass_delta",
    "holm",
    "pair",
    "paired_difference",
    "roc_auc",
    "unpaired_difference",
]
