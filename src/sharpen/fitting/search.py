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
from sharpen.fitting.candidates import Candidate, trust_in
from sharpen.fitting.evidence import Evidence
from sharpen.fitting.folds import all_labels, draw_round, rounds_wanted
from sharpen.fitting.runs import Run
from sharpen.fitting.selection import choose, shortlist
from sharpen.graph import Graph
from sharpen.graph.splits import Split
from sharpen.models.registry import model_info
from sharpen.training.progress import BudgetBar

DEFAULT_BUDGET = 2.0  # minutes
# The first round may take this share of the budget; the rest is for looking at the best again.
_FIRST_SHARE = 0.7
_MOST_ROUNDS = 20
# Without these the search could not say whether sharpening or the graph helps.
_ESSENTIAL = 3
# So many runs on all labels of each network that is chosen, from seeds of their own; one needs no seed, and is run once.
_ON_ALL = 5


@dataclass(frozen=True)
class Found:
    """What a search trained: all runs, in how many rounds, what it left out and why; and runs of the best on all labels."""

    runs: list[Run]
    on_all: dict[Candidate, list[Run]]
    rounds: int
    seconds: float
    notes: list[str]


class _Clock:
    """How long runs take, and how much time is left."""

    def __init__(self, budget: float, cost: Callable[[str], float]) -> None:
        self._start, self.limit, self._cost = time.perf_counter(), 60 * budget, cost
        self._unit, self._of_models = 0.0, dict[str, float]()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._start

    def measure(self, runs: Sequence[Run], seconds: float) -> None:
        """Takes note of what these took together; the latest says most about what comes next."""
        models = [run.candidate.model for run in runs]
        took = [run.seconds for run in runs]
        took = took if min(took) > 0 else [self._cost(model) for model in models]
        now = {
            model: seconds
            * np.mean([part for part, name in zip(took, models, strict=True) if name == model]).item()
            / sum(took)
            for model in set(models)
        }
        # A machine that has become slow or fast is so for those that were not timed now; estimators tell nothing of it, since what
        # they prepare once is there the next time.
        networks = {run.candidate.model for run in runs if run.candidate.is_network} & self._of_models.keys()
        slower = float(np.median([now[model] / self._of_models[model] for model in networks])) if networks else 1.0
        self._of_models = {model: slower * old for model, old in self._of_models.items()} | now
        if not self._unit or any(run.candidate.is_network for run in runs):
            self._unit = seconds / sum(map(self._cost, models))

    def forecast(self, candidates: Sequence[Candidate], folds: int = 1) -> float:
        """Seconds for one run of each on each fold."""
        return folds * sum(self._of_models.get(c.model, self._unit * self._cost(c.model)) for c in candidates)


def check_seed(seed: object) -> None:
    """Refuses what no random generator starts from.

    >>> check_seed(-1)
    Traceback (most recent call last):
    sharpen.errors.InputError: seed is -1; give a whole number from 0 to 4294967295
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**32:
        raise InputError(f"is {seed!r}; give a whole number from 0 to {2**32 - 1}", field="seed")


def check_budget(budget: float) -> None:
    """Refuses what is no number of minutes to search for.

    >>> check_budget(0)
    Traceback (most recent call last):
    sharpen.errors.InputError: budget is 0; give a number of minutes above 0
    """
    if not (math.isfinite(budget) and budget > 0):
        raise InputError(f"is {budget:g}; give a number of minutes above 0", field="budget")


def search(
    backbone: Backbone,
    graph: Graph,
    candidates: Sequence[Candidate],
    *,
    budget: float = DEFAULT_BUDGET,
    metric: str = "accuracy",
    seed: int = 0,
    selective: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Found:
    """Trains candidates on folds of the labeled nodes.

    An estimator at the head of the candidates gives a first answer, which is told. The first runs of the others are timed, and the
    rest planned by them: as many candidates, in their order, as the budget has room for in the first round, then more rounds of
    the best. A budget that is large enough changes nothing: the result depends on it only
    where it cuts something short, which a note says.

    Args:
        backbone: What trains.
        graph: With at least two classes of three labeled nodes.
        candidates: In the order in which to try them.
        budget: Minutes. Three networks on one fold are trained whatever it is. A budget beyond the default also allows more
            rounds.
        metric: What the best are chosen by.
        seed: Of folds, first weights and dropout.
        selective: Whether a model that is clearly behind, once all models have been tried, is tried with nothing more.
        tell: Is given a line now and then.
    """
    check_budget(budget)
    going = _Going(backbone, graph, budget, metric, seed, tell, total=len(candidates))
    try:
        with backbone.one_bar(60 * budget) as going.bar:
            _go(going, candidates, selective)
    except KeyboardInterrupt:
        if not any(run.ok for run in going.trained):
            raise
        minutes, seconds = divmod(round(going.clock.elapsed), 60)
        tell("Stopping: the best so far is used. Ctrl-C again ends without a result.")
        going.notes[:] = [f"stopped after {minutes}:{seconds:02d} by Ctrl-C; the best so far is used"]
    if going.left_out:
        going.notes.append(
            f"the budget of {budget:g} min has room for {going.total - going.left_out} of {going.total} candidates; "
            "a larger budget tries all"
        )
    return Found(going.trained, going.on_all, going.rounds, going.clock.elapsed, going.notes)


def _go(going: _Going, candidates: Sequence[Candidate], selective: bool) -> None:
    """All of it, in its order."""
    candidates = _first_answer(going, candidates)
    _time_the_first(going, candidates)
    allowed, every_model = _FIRST_SHARE * going.clock.limit, _until_every_model(candidates)
    _try(going, candidates[:every_model], allowed)
    if selective and going.tried == every_model:
        candidates = _without_those_behind(going, candidates)
    _try(going, candidates, allowed)
    _more_rounds(going)
    # What there was no room for, if the forecast was too dark.
    _try(going, candidates, going.clock.limit - going.kept_for_all_labels)
    _on_all_labels(going)


class _Going:
    """A search that is under way: what it has trained, and how it trains more."""

    def __init__(
        self,
        backbone: Backbone,
        graph: Graph,
        budget: float,
        metric: str,
        seed: int,
        tell: Callable[[str], None],
        total: int,
    ) -> None:
        self.backbone, self.graph, self.budget, self.metric = backbone, graph, budget, metric
        self.seed, self.tell, self.total = seed, tell, total
        self.clock, self.y, self._trust = _Clock(budget, backbone.cost), graph.y.numpy(), trust_in(graph)
        self.bar: BudgetBar | None = None
        self.trained: list[Run] = []
        self.on_all: dict[Candidate, list[Run]] = {}
        self.notes: list[str] = []
        self.first = draw_round(self.y, 0, seed)
        self.folds, self.tried, self.rounds, self.left_out = 0, 0, 1, 0

    def run(self, chosen: Sequence[Candidate], splits: Sequence[Split], round_number: int = 0, what: str = "") -> None:
        """Trains what has not been trained on these folds yet, in parts that the clock can look in between."""
        done = {(run.candidate, run.test.tobytes()) for run in self.trained if run.round_number == round_number}
        runs = [
            Run(candidate, split, 1000 * self.seed + 10 * round_number + k, round_number)
            for candidate in chosen
            for k, split in enumerate(splits)
            if (candidate, split.test.numpy().tobytes()) not in done
        ]
        if not runs:
            return
        if what:
            seconds = self.clock.forecast([run.candidate for run in runs])
            self.tell(f"{what}, {_count(len(runs), 'run')}, about {seconds:.0f} s{self._so_far()} ...")
        start = time.perf_counter()
        trained = self.backbone.train(self.graph, runs)
        self.trained.extend(trained)
        alone = [run for run in trained if not run.candidate.spread]
        self.clock.measure(alone, time.perf_counter() - start)
        best = self.best() if self.bar is not None and self.bar.visible else None
        if self.bar is not None and best is not None:
            self.bar.found(f"{100 * best[1]:.1f} %, {best[0]}")

    @property
    def evidence(self) -> Evidence:
        """What is known until now."""
        return Evidence(self.trained, self.y, self.metric, self._trust)

    @property
    def kept_for_all_labels(self) -> float:
        """How many seconds runs on all labels may need."""
        evidence = self.evidence
        chosen = {candidate.rough for candidate in choose(evidence)} if evidence.sound else set()
        return _ON_ALL * self.clock.forecast([candidate for candidate in chosen if candidate.is_network])

    def best(self) -> tuple[str, float] | None:
        """The name and the held-out score of the best until now."""
        evidence = self.evidence
        if not evidence.sound:
            return None
        best = next(iter(choose(evidence, ensemble=False)))
        return best.name, evidence.score(best)

    def _so_far(self) -> str:
        """The best until now, once there is something to choose from."""
        best = self.best() if len({run.candidate for run in self.trained}) > 1 else None
        return "" if best is None else f"; best so far: {best[0]}, {100 * best[1]:.1f} %"


def _first_answer(going: _Going, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Trains the estimator that comes first, if one does, on all folds, and tells what it gives; the others are returned."""
    if not candidates or candidates[0].is_network or len(candidates) == 1:
        return candidates
    going.run(candidates[:1], going.first)
    best = going.best()
    if best is not None:
        name, score = best
        going.tell(
            f"first answer after {going.clock.elapsed:.1f} s: {name}, {100 * score:.1f} % of held-out labels right"
        )
    return candidates[1:]


def _time_the_first(going: _Going, candidates: Sequence[Candidate]) -> None:
    """A run or two, to know how long the others take, and on how many folds there is time for them."""
    clock, first, essential = going.clock, going.first, candidates[:_ESSENTIAL]
    allowed, labels = _FIRST_SHARE * clock.limit, int((going.y >= 0).sum())
    going.tell(f"{labels} labels, {_count(going.total, 'candidate')}; the first run is timed ...")
    for candidate in essential:
        # Twice: a first run may be slow for reasons of its own, such as compiling, which the next does not pay for.
        for fold in range(min(2, len(first))):
            going.run([candidate], first[fold : fold + 1])
            if clock.forecast(essential, len(first)) <= allowed or clock.elapsed > allowed / 2:
                break
        if clock.forecast(essential, len(first)) <= allowed:
            break
    going.folds = min(len(first), max(1, int(allowed / clock.forecast(essential))))
    if going.folds < len(first):
        going.notes.append(
            f"the budget of {going.budget:g} min has room for {going.folds} of {len(first)} folds; a larger budget uses all"
        )


def _try(going: _Going, candidates: Sequence[Candidate], allowed: float) -> None:
    """As many candidates, in their order, as there is time for until so many seconds have passed, each on the same folds."""
    while going.tried < len(candidates):
        at_least = max(0, min(_ESSENTIAL, len(candidates)) - going.tried)
        left = allowed - going.clock.elapsed
        batch = _next_batch(candidates[going.tried :], going.clock, going.folds, left, at_least)
        going.left_out = len(candidates) - going.tried
        if not batch:
            return
        going.run(batch, going.first[: going.folds], what=f"round 1: {_count(len(batch), 'candidate')}")
        going.tried += len(batch)
    going.left_out = 0


def _until_every_model(candidates: Sequence[Candidate]) -> int:
    """How many candidates it takes, in their order, until every model has been tried.

    >>> _until_every_model([Candidate("gcn"), Candidate("mlp"), Candidate("gcn", 0.5), Candidate("mlp", 0.5)])
    2
    """
    models = [candidate.model for candidate in candidates]
    return 1 + max(models.index(model) for model in models)


def _without_those_behind(going: _Going, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates without what is left of models that are clearly behind the best: the time is better spent on others."""
    evidence = going.evidence
    if not evidence.sound:
        return candidates
    best: dict[str, Candidate] = {}
    for candidate in sorted(evidence.sound, key=evidence.score, reverse=True):
        best.setdefault(candidate.model, candidate)
    leader = next(iter(best.values()))
    behind = {
        model
        for model, own in best.items()
        if (interval := evidence.difference(evidence.hits(leader), evidence.hits(own)).t_interval) and interval[0] > 0
    }
    dropped = [candidate for candidate in candidates[going.tried :] if candidate.model in behind]
    if dropped:
        names = ", ".join(dict.fromkeys(model_info(candidate.model).noun for candidate in dropped))
        going.total -= len(dropped)
        going.notes.append(
            f"{_count(len(dropped), 'candidate')} of models that are clearly behind {leader.name} by held-out labels "
            f"{'was' if len(dropped) == 1 else 'were'} not tried: {names}"
        )
    return [candidate for candidate in candidates if candidate not in dropped]


def _more_rounds(going: _Going) -> None:
    """The best again, on new folds, while there is time."""
    clock, labels = going.clock, int((going.y >= 0).sum())
    wanted = min(_MOST_ROUNDS, math.ceil(rounds_wanted(labels) * max(1.0, going.budget / DEFAULT_BUDGET)))
    while going.rounds < wanted:
        evidence = going.evidence
        again = list(dict.fromkeys(c.rough for c in [*choose(evidence), *_baselines(evidence)]))
        if clock.elapsed + clock.forecast(again, going.folds) > clock.limit - going.kept_for_all_labels:
            going.notes.append(
                f"the budget of {going.budget:g} min has room for {going.rounds} of {wanted} rounds; a larger budget runs all"
            )
            return
        splits = draw_round(going.y, going.rounds, going.seed)[: going.folds]
        going.run(again, splits, going.rounds, what=f"round {going.rounds + 1}: the best {len(again)} again")
        going.rounds += 1


def _on_all_labels(going: _Going) -> None:
    """What an ensemble would hold, once more on every label, the largest shares first, and again while there is time: runs on folds
    have seen four fifths of the labels, or fewer."""
    evidence = going.evidence
    if not evidence.sound:
        return
    best = list(dict.fromkeys(candidate.rough for candidate in choose(evidence)))
    split, left = all_labels(going.y), going.clock.limit - going.clock.elapsed
    runs = [Run(candidate, split, 1000 * going.seed + 7) for candidate in best if not candidate.is_network]
    for turn in range(_ON_ALL):
        for candidate in (candidate for candidate in best if candidate.is_network):
            left -= going.clock.forecast([candidate])
            if left > 0:
                runs.append(Run(candidate, split, 1000 * going.seed + 7 + 100 * turn))
    for run in going.backbone.train(going.graph, runs) if runs else ():
        if run.ok:
            going.on_all.setdefault(run.candidate, []).append(run)


def _count(number: int, noun: str) -> str:
    """A number of things.

    >>> _count(1, "run"), _count(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def _next_batch(
    candidates: Sequence[Candidate], clock: _Clock, folds: int, seconds: float, at_least: int
) -> Sequence[Candidate]:
    """The candidates to train next: as many as there surely is time for, so that the forecast can still be corrected.

    No more at once than take a quarter of the budget: a machine that others begin to use may need several times as long.
    """
    total = np.cumsum([clock.forecast([candidate], folds) for candidate in candidates])
    one = int(total[0] <= seconds)
    return candidates[: max(at_least, one, int((total <= min(0.6 * seconds, clock.limit / 4)).sum()))]


def _baselines(evidence: Evidence) -> list[Candidate]:
    """The plain candidate of the best model, and the best one without the graph: what the winner is held against."""
    best = shortlist(evidence)[0]
    without = [c for c in evidence.sound if not c.uses_graph]
    baselines = [best.plain] if best.plain in evidence.sound else []
    return baselines + (shortlist(evidence, among=lambda c: not c.uses_graph)[:1] if without else [])
