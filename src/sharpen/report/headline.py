"""A comparison in one honest sentence: how much sharpening gains, how sure, on what."""

from sharpen.evaluation.comparison import Comparison, LamComparison
from sharpen.models.registry import model_info


def headline(comparison: Comparison) -> str:
    """The sentence that stands above every table and page of a comparison.

    A gain or loss is claimed only where the 95 % interval excludes zero; where several λ are judged at once, only where
    Holm's corrected p-value is below 0.05.

    >>> from sharpen.evaluation import paired_difference
    >>> d = paired_difference([82.0, 83.0, 84.5], [81.0, 82.5, 83.0])
    >>> variant = LamComparison(lam=0.5, val=83.0, difference=d, corrected_p=d.t_p, diverged=0, dropped=0)
    >>> toy = dict(dataset="toy", model="gcn", metric="accuracy", splits=3, seeds=1, val=82.0, test=82.2, test_sd=1.0)
    >>> headline(Comparison(**toy, diverged=0, variants=(variant,)))
    'Sharpening (λ = 0.5) makes no clear difference on toy with a GCN: +1.00 points, 95 % CI [-0.24, +2.24], 3 ...'
    """
    where = f"on {comparison.dataset} with {model_info(comparison.model).sentence}"
    if comparison.chosen == 0 and comparison.subject is None:
        return f"Validation chooses λ = 0 {where}: sharpening is not chosen, {_pairs(comparison)}."
    if comparison.subject is not None:
        return _one(comparison, comparison.subject, where)
    verdicts = [variant.verdict(corrected=True) for variant in comparison.variants]
    gains, losses = verdicts.count("gain"), verdicts.count("loss")
    return (
        f"Of {len(verdicts)} values of λ {where}, {gains} gain, {losses} lose, {len(verdicts) - gains - losses} without a clear "
        f"difference (paired t-tests, Holm-corrected p < 0.05), {_pairs(comparison)}."
    )


def _one(comparison: Comparison, variant: LamComparison, where: str) -> str:
    by_validation = ", chosen by validation" if comparison.chosen is not None else ""
    subject = f"Sharpening (λ = {variant.lam:g}{by_validation})"
    d = variant.difference
    if d is None:
        return f"Sharpening cannot be judged {where}: of every pair at least one run diverged, {_pairs(comparison)}."
    if d.t_interval is None:
        return f"{subject} changes the score by {d.difference:+.2f} points {where}, {_pairs(comparison)}; {d.note}."
    interval = "95 % CI [{:+.2f}, {:+.2f}]".format(*d.t_interval) + f", {_pairs(comparison, variant.dropped)}."
    verdict = variant.verdict()
    if verdict == "unclear":
        return f"{subject} makes no clear difference {where}: {d.difference:+.2f} points, {interval}"
    changes = f"gains {d.difference:+.2f}" if verdict == "gain" else f"loses {-d.difference:.2f}"
    return f"{subject} {changes} points {where}, {interval}"


def _pairs(comparison: Comparison, dropped: int = 0) -> str:
    splits, seeds = comparison.splits, comparison.seeds
    if seeds == 1:
        text = f"{splits} paired split{'s' * (splits > 1)}"
    elif splits == 1:
        text = f"{seeds} paired seeds on one split"
    else:
        text = f"{splits} paired splits of {seeds} seeds each"
    return f"{text}, {dropped} pair{'s' * (dropped > 1)} of runs left out because one diverged" if dropped else text
