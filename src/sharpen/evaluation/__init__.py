"""How well, and how sure: metrics on the device, calibration, paired statistics, comparisons."""

from sharpen.evaluation.calibration import brier, coverage_curve, ece, fit_temperature, log_loss, reliability
from sharpen.evaluation.classes import balanced_accuracy, macro_f1
from sharpen.evaluation.comparison import Comparison, LamComparison, choose_by_validation, compare_lams
from sharpen.evaluation.metrics import accuracy, roc_auc
from sharpen.evaluation.paired import PairedDifference, Pairs, by_split, glass_delta, holm, pair, paired_difference
from sharpen.evaluation.power import detectable_difference, equivalence_p, overlap_factor
from sharpen.evaluation.unpaired import Consistency, UnpairedDifference, consistent_with, unpaired_difference

__all__ = [
    "Comparison",
    "Consistency",
    "LamComparison",
    "PairedDifference",
    "Pairs",
    "UnpairedDifference",
    "accuracy",
    "balanced_accuracy",
    "brier",
    "by_split",
    "choose_by_validation",
    "compare_lams",
    "consistent_with",
    "coverage_curve",
    "detectable_difference",
    "ece",
    "equivalence_p",
    "fit_temperature",
    "glass_delta",
    "holm",
    "log_loss",
    "macro_f1",
    "overlap_factor",
    "pair",
    "paired_difference",
    "reliability",
    "roc_auc",
    "unpaired_difference",
]
