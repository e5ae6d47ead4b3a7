"""The search: every candidate on the same folds, the best of them on more, within a budget of minutes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from sharpen.errors import InputError
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import draw_round, rounds_wanted
from sharpen.fitting.members import Job, Member
from sharpen.fitting.selection import shortlist
from sharpen.graph import Graph
from sharpen.graph.splits import Split
from sharpen.models.registry import model_info

DEFAULT_BUDGET = 2.0  # minutes
# The first round may take this share of the budget; the rest is for looking at the best again.
FIRST_SHARE = 0.6
MOST_ROUNDS = 20
# Without these the search could not say whether sharpening or the graph helps.
ESSENTIAL = 3


@dataclass(frozen=True)
class Found:
    """What a search trained: all members, in how many rounds, what it left out and why."""

    members: list[Member]
    rounds: int
    seconds: float
    notes: list[str]


class _Clock:
    """How long runs take, and how much time is left."""

    def __init__(self, budget: float) -> None:
        self._start, self.limit = time.perf_counter(), 60 * budget
        self._unit = 0.0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._start

    def measure(self, candidates: Sequence[Candidate], seconds: float) -> None:
        """Takes note of what these took; the latest says most about what comes next."""
        self._unit = seconds / sum(model_info(candidate.model).cost for candidate in candidates)

    def forecast(self, candidates: Sequence[Candidate], folds: int = 1) -> float:
        """Seconds for one run of each on each fold."""
        return folds * self._unit * sum(model_info(candidate.model).cost for candidate in candidates)


def check_seed(seed: object) -> None:
    """Refuses what no random generator starts from.

    >>> check_seed(-1)
    Traceback (most recent call last):
    sharpen.errors.InputError: seed is -1; give a whole number from 0 to 4294967295
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**32:
        raise InputError(f"seed is {seed!r}; give a whole number from 0 to {2**32 - 1}")


def check_budget(budget: float) -> None:
    """Refuses what is no number of minutes to search for.

    >>> check_budget(0)
    Traceback (most recent call last):
    sharpen.errors.InputError: budget is 0; give a number of minutes above 0
    """
    if not (math.isfinite(budget) and budget > 0):
        raise InputError(f"budget is {budget:g}; give a number of minutes above 0")


def search(
    backbone: Backbone,
    graph: Graph,
    candidates: Sequence[Candidate],
    *,
    budget: float = DEFAULT_BUDGET,
    metric: str = "accuracy",
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> Found:
    """Trains candidates on folds of the labeled nodes.

    The first run is timed, and the rest planned by it: as many candidates, in their order, as the budget has room for in the
    first round, then more rounds of the best. A budget that is large enough changes nothing: the result depends on it only
    where it cuts something short, which a note says.

    Args:
        backbone: What trains.
        graph: With at least two classes of three labeled nodes.
        candidates: In the order in which to try them.
        budget: Minutes. Three candidates on one fold are trained whatever it is. A budget beyond the default also allows more
            rounds.
        metric: What the best are chosen by.
        seed: Of folds, first weights and dropout.
        tell: Is given a line now and then.
    """
    check_budget(budget)
    clock, y = _Clock(budget), graph.y.numpy()
    members: list[Member] = []
    notes: list[str] = []
    first = draw_round(y, 0, seed)

    def run(chosen: Sequence[Candidate], splits: Sequence[Split], round_number: int = 0, what: str = "") -> None:
        done = {(member.candidate, member.test.tobytes()) for member in members if member.round_number == round_number}
        jobs = [
            Job(candidate, split, 1000 * seed + 10 * round_number + k, round_number)
            for candidate in chosen
            for k, split in enumerate(splits)
            if (candidate, split.test.numpy().tobytes()) not in done
        ]
        if not jobs:
            return
        if what:
            tell(
                f"{what}, {_count(len(jobs), 'run')}, about {clock.forecast([job.candidate for job in jobs]):.0f} s ..."
            )
        start = time.perf_counter()
        members.extend(backbone.train(graph, jobs))
        clock.measure([job.candidate for job in jobs], time.perf_counter() - start)

    allowed, essential = FIRST_SHARE * clock.limit, candidates[:ESSENTIAL]
    tell(f"{int((y >= 0).sum())} labels, {_count(len(candidates), 'candidate')}; the first run is timed ...")
    for candidate in essential:
        run([candidate], first[:1])
        # A first run may be slow for reasons of its own: on a slow graph, look again before cutting anything.
        if clock.forecast(essential, len(first)) <= allowed:
            break
    folds = min(len(first), max(1, int(allowed / clock.forecast(essential))))
    if folds < len(first):
        notes.append(
            f"the budget of {budget:g} min has room for {folds} of {len(first)} folds; a larger budget uses all"
        )
    tried = 0
    while tried < len(candidates):
        batch = _next_batch(candidates[tried:], clock, folds, allowed - clock.elapsed, max(0, len(essential) - tried))
        if not batch:
            notes.append(
                f"the budget of {budget:g} min has room for {tried} of {len(candidates)} candidates; a larger budget tries all"
            )
            break
        run(batch, first[:folds], what=f"round 1: {_count(len(batch), 'candidate')}")
        tried += len(batch)

    rounds = 1
    wanted = min(MOST_ROUNDS, math.ceil(rounds_wanted(int((y >= 0).sum())) * max(1.0, budget / DEFAULT_BUDGET)))
    while rounds < wanted:
        evidence = Evidence(members, y, metric)
        again = list(dict.fromkeys(c.rough for c in [*shortlist(evidence), *_baselines(evidence)]))
        if clock.elapsed + clock.forecast(again, folds) > clock.limit:
            notes.append(
                f"the budget of {budget:g} min has room for {rounds} of {wanted} rounds; a larger budget runs all"
            )
            break
        run(again, draw_round(y, rounds, seed)[:folds], rounds, what=f"round {rounds + 1}: the best {len(again)} again")
        rounds += 1
    return Found(members, rounds, clock.elapsed, notes)


def _count(number: int, noun: str) -> str:
    """A number of things.

    >>> _count(1, "run"), _count(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def _next_batch(
    candidates: Sequence[Candidate], clock: _Clock, folds: int, seconds: float, at_least: int
) -> Sequence[Candidate]:
    """The candidates to train next: as many as there surely is time for, so that the forecast can still be mended."""
    total = np.cumsum([clock.forecast([candidate], folds) for candidate in candidates])
    one = int(total[0] <= seconds)
    return candidates[: max(at_least, one, int((total <= 0.6 * seconds).sum()))]


def _baselines(evidence: Evidence) -> list[Candidate]:
    """The plain candidate of the best model, and the best one without the graph: what the winner is held against."""
    best = shortlist(evidence)[0]
    without = [c for c in evidence.sound if not c.uses_graph]
    baselines = [best.plain] if best.plain in evidence.sound else []
    return baselines + (shortlist(evidence, among=lambda c: not c.uses_graph)[:1] if without else [])
