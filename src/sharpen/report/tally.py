"""What a comparison says over all cells, in a few numbers, and in words for people who do not know the study's names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sharpen.analysis.curves import on_lambda_curve
from sharpen.analysis.outcome import Effect, Outcome
from sharpen.report.names import plural
from sharpen.studies.spec import Contrast


@dataclass(frozen=True)
class Tally:
    """How many complete cells gain or lose, before and after Holm's correction, and by how much; see :func:`tally`.

    >>> Tally(39, 9, 0, 2, 0, 0.26, 0.76).words
    '9 of 39 cells gain, 2 after correction; none loses'
    """

    cells: int
    gains: int
    losses: int
    corrected_gains: int
    corrected_losses: int
    median: float
    mean: float

    @property
    def unclear(self) -> int:
        """How many show no clear difference."""
        return self.cells - self.gains - self.losses

    @property
    def words(self) -> str:
        """The counts as half a sentence."""
        cells = f"{self.cells} {plural('cell', self.cells)}"
        return f"{self.gains or 'none'} of {cells} {_verb('gain', self.gains)}{self.after}; {self.losing}"

    @property
    def after(self) -> str:
        """What correction leaves of the gains, if there are any.

        >>> Tally(39, 9, 0, 0, 0, 0.26, 0.76).after
        ', none after correction'
        """
        return f", {self.corrected_gains or 'none'} after correction" if self.gains else ""

    @property
    def losing(self) -> str:
        """How many cells lose, and how many of them after correction.

        >>> Tally(9, 4, 2, 3, 1, 1.08, 1.04).losing
        '2 lose, 1 after correction'
        """
        after = f", {self.corrected_losses or 'none'} after correction" if self.losses else ""
        return f"{self.losses or 'none'} {_verb('lose', self.losses)}{after}"


def tally(effects: Iterable[Effect]) -> Tally | None:
    """The counts over those that have all their pairs; None if none has.

    >>> tally([]) is None
    True
    """
    counted = [(e, e.difference.difference) for e in effects if e.complete and e.difference is not None]
    if not counted:
        return None
    verdicts = [effect.verdict for effect, _ in counted]
    sure = [mean for effect, mean in counted if effect.corrected_p is not None and effect.corrected_p < 0.05]
    up, down = sum(mean > 0 for mean in sure), sum(mean < 0 for mean in sure)
    means = [mean for _, mean in counted]
    median, mean = float(np.median(means)), float(np.mean(means))
    return Tally(len(counted), verdicts.count("gain"), verdicts.count("loss"), up, down, median, mean)


def contrast_words(outcome: Outcome, contrast: Contrast) -> str:
    """A comparison for people: what its sides are where only λ makes them different, else their names.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> told = outcome(load_study("main"), "paper", datasets=["cora"])
    >>> contrast_words(told, told.study.compare[0])
    'λ by validation against plain training'
    """
    return f"{side_words(outcome, contrast.variant)} against {side_words(outcome, contrast.against)}"


def side_words(outcome: Outcome, name: str) -> str:
    """A variant or a choice for people: what it is where only λ makes the difference, else its name.

    >>> from sharpen.studies import load_study
    >>> from sharpen.analysis.outcome import outcome
    >>> side_words(outcome(load_study("main"), "paper", datasets=["cora"]), "baseline")
    'plain training'
    """
    study = outcome.study
    names = study.choose.get(name, (name,))
    if any(isinstance(study.variants[own].fields.get("configuration"), int) for own in names):
        return name  # settings by number: λ is the least of what is different
    cells = [cell for cell in outcome.cells if all(cell.sides[own].trial is not None for own in names)]
    if study.baseline is None or not cells or not all(on_lambda_curve(c, own, study) for c in cells for own in names):
        return name
    if name in study.choose:
        return "λ by validation"
    lams = {trial.lam for cell in cells if (trial := cell.sides[name].trial) is not None}
    if len(lams) > 1:
        return name
    return f"λ = {lam:g}".replace("-", "−") if (lam := lams.pop()) else "plain training"


def _verb(word: str, count: int) -> str:
    return f"{word}s" if count in (0, 1) else word
