"""What trains the runs of a search and predicts with what they have learnt: networks as populations, and estimators one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sharpen.cluster.pool import IN_THIS_PROCESS, Trainer
from sharpen.evaluation.collapse import collapse_note
from sharpen.fitting.candidates import Candidate, has_few_labels, has_words
from sharpen.fitting.estimators import ESTIMATORS, Estimator, meet_prior
from sharpen.fitting.folds import balanced_weights
from sharpen.fitting.runs import Listener, Run
from sharpen.graph import Graph
from sharpen.models.blueprint import Blueprint
from sharpen.models.inputs import Inputs
from sharpen.models.registry import PAPER_MODELS, REGISTRY, model_info
from sharpen.prior import proportions
from sharpen.training.device import arithmetic, resolve_device
from sharpen.training.memory import choose_batching
from sharpen.training.progress import BudgetBar
from sharpen.training.records import way_note
from sharpen.training.scores import class_scores, layerwise_scores
from sharpen.training.threads import suitable_threads
from sharpen.training.trials import blueprint_of
from sharpen.trial import ARCHITECTURE, Trial

# GRAND is narrow, and needs more epochs, since it sees a part of the features only. On words, of which a node has few, it needs
# more weight decay too, columns dropped, and more agreement; on other columns these cost up to fifteen points. The more labels
# speak, the less need weights be held small: with 92 labels of a class of Cora, the weight decay that is best for five costs two
# points. More dropout in its place gains a little with twenty labels, and costs about as much with five.
_OF_MODELS: dict[str, dict[str, Any]] = {"grand": {"hidden": 32, "epochs": 200}}
_OF_WORDS: dict[str, dict[str, Any]] = {"grand": {"weight_decay": 0.002, "dropout": 0.7}}
_OF_FEW_WORDS_LABELED: dict[str, dict[str, Any]] = {"grand": {"weight_decay": 0.005, "dropout": 0.5}}
_WITH_WORDS: dict[str, dict[str, Any]] = {"grand": {"dropcolumn": 0.3, "consistency": 1.5}}
_USUAL_TRAINING = {"weight_decay": 0.0005, "epochs": 100}
USUAL = {"layers": 2, "hidden": 64, "dropout": 0.5, "norm": "none", "residual": False, "input_linear": False}
"""The architecture of a fit, unless somebody says otherwise."""
# What spreading labels over a graph takes is about what this model does.
_YARDSTICK = "gcn"
# Class scores of all nodes, of runs in batches that are judged together.
_SCORES_BYTES = 2**30
# What an estimator adds to its scores to meet given class proportions, among what it has learnt.
_PRIOR = "prior"
UNSPREAD = "known labels are not spread over a graph that a GCN takes in batches: that would be work on the whole of it at once"


class Backbone:
    """Trains with :func:`sharpen.train`.

    Args:
        settings: ``layers hidden dropout norm residual input_linear lr weight_decay epochs q``, as in
            :class:`sharpen.Trial`, with nothing left open.
        device: ``auto``, ``cpu`` or ``cuda``.
        balanced: Whether classes weigh the same in the cross-entropy, however many labels they have.
        progress: Whether to draw a progress bar on a terminal.
        batching: As for :func:`sharpen.training.memory.choose_batching`.
        tell: Is told, once, if the graph is taken in batches.
        trainer: Who trains: this process, or a cluster (:func:`sharpen.cluster.pool.trainer_on`).
        names: Models of one's own: from what candidates call them to what a trial does.
        model_args: Further arguments of models that are not the paper's, by name.
        prior: Class proportions that candidates with a balance are pulled towards (:mod:`sharpen.prior`); None: all alike.
        cuts: How the graph of the fit was taken in batches for each model, None for not at all; what is missing is decided when
            it is first needed, and then stays.

    After training, ``notes`` says what came of it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        device: str = "auto",
        balanced: bool = False,
        progress: bool = False,
        batching: str = "auto",
        tell: Callable[[str], None] = lambda text: None,
        trainer: Trainer = IN_THIS_PROCESS,
        cuts: Mapping[str, str | None] | None = None,
        names: Mapping[str, str] | None = None,
        model_args: Mapping[str, Any] | None = None,
        prior: str | None = None,
    ) -> None:
        self.settings, self.device, self.balanced, self.progress = dict(settings), device, balanced, progress
        self.batching, self._tell, self._trainer = batching, tell, trainer
        self._names, self.model_args, self.prior = dict(names or {}), model_args, prior
        self._uses: dict[Candidate, list[float]] = {}
        self._estimators: dict[str, Estimator] = {name: make() for name, make in ESTIMATORS.items()}
        self.cuts, self.notes = dict(cuts or {}), list[str]()
        self._spreads: bool | None = None
        self._listener: Listener | None = None
        self._tick: Callable[[int], None] | None = None

    @contextmanager
    def one_bar(self, seconds: float) -> Iterator[BudgetBar]:
        """One bar for all that is trained in the block, which may take so long; a cluster draws one for each population."""
        show = self.progress and self._trainer is IN_THIS_PROCESS
        with BudgetBar(seconds, show) as bar:
            self._tick = bar.tick if show else None
            try:
                yield bar
            finally:
                self._tick = None

    def _trial(self, model: str, *, words: bool = False, few: bool = False, **fields: Any) -> Trial:
        """A run of a model: with those of the settings that it takes, and that suit words, and few labels, if there are."""
        name = self._names.get(model, model)
        info, settings = model_info(name), dict(self.settings)
        of_words = (_OF_FEW_WORDS_LABELED if few else _OF_WORDS).get(name, {})
        suitable = {**_OF_MODELS.get(name, {}), **(of_words if words else {})}
        for field, value in suitable.items():  # unless somebody asked for another
            if settings[field] == {**USUAL, **_USUAL_TRAINING}[field]:
                settings[field] = value
        own = None if name in REGISTRY else Blueprint(name, 1, 1, {})
        for field in ARCHITECTURE:
            value = settings.pop(field)
            # A model of somebody's own keeps its own defaults: of what it takes, it gets what differs from ours.
            if field in info.settings or (own is not None and value != USUAL[field] and own.takes(field)):
                settings[field] = value
        of_words = _WITH_WORDS.get(name, {}) if words else {}
        arguments = None if name in PAPER_MODELS else {**of_words, **(self.model_args or {})} or None
        return Trial(model=name, model_args=arguments, **settings, **fields)

    def cost(self, model: str) -> float:
        """How long a run takes, that of a GCN being 1."""
        name = self._names.get(model, model)
        longer = _OF_MODELS.get(name, {}).get("epochs", _USUAL_TRAINING["epochs"]) / _USUAL_TRAINING["epochs"]
        return model_info(name).cost * longer

    def _blueprint(self, model: str, num_features: int, num_classes: int) -> Blueprint:
        return blueprint_of(num_features, num_classes, self._trial(model))

    def check(self, model: str, num_features: int, num_classes: int, weights: Sequence[dict[str, np.ndarray]]) -> None:
        """Refuses weights that are not those of the model, as a ValueError that says which; no code of somebody's own is run."""
        if model in self._estimators:
            for own in weights:
                own = dict(own)
                if own.pop(_PRIOR, np.zeros(num_classes)).shape != (num_classes,):
                    raise ValueError(f"{_PRIOR} has not one number for each class")
                self._estimators[model].check(own, num_features, num_classes)
            return
        if model not in REGISTRY:
            if model not in self._names:
                raise ValueError(f"model is {model!r}")
            return
        layers = self.settings["layers"] if "layers" in model_info(model).settings else 1
        if layers > len(weights[0]):  # before as many are made up
            raise ValueError(f"it has weights for fewer than {layers} layers")
        blueprint = self._blueprint(model, num_features, num_classes)
        # What has a row for every node or edge of a graph is as long as that graph is large.
        wanted = {
            name: shape
            for name, shape in blueprint.shapes.items()
            if not (blueprint.is_bound and name.startswith(("nodes", "edges")))
        }
        for own in weights:
            got = {name: value.shape for name, value in own.items() if name in wanted or not blueprint.is_bound}
            for name in sorted(got.keys() | wanted.keys()):
                if got.get(name) != wanted.get(name):
                    raise ValueError(
                        f"weights {name} of {model} have shape {got.get(name)}, where {wanted.get(name)} is needed"
                    )

    def _cut(self, graph: Graph, model: str, num_classes: int, left: int | None) -> tuple[str | None, str]:
        """How the graph is taken in batches for this model, if it is, and a sentence about it."""
        network = self._blueprint(model, graph.num_features, num_classes).network
        if network is None:  # a model without kernels of its own sees the whole graph
            return None, ""
        return choose_batching(self.batching, network, graph, resolve_device(self.device), torch.float32, left=left)

    def _decide(self, graph: Graph, models: Iterable[str]) -> bool:
        """How the graph is taken in batches for each model, and whether labels are spread over it; once for all that is trained
        here, so that candidates do not differ in what memory happened to be free."""
        left = self._trainer.memory_left
        for model in models:
            if model not in self.cuts:
                self.cuts[model], note = self._cut(graph, model, graph.num_classes, left)
                if note and set(self.notes) <= {UNSPREAD}:  # of several models, the first says enough
                    self._note(note)
        if self._spreads is None:
            cut = (
                self.cuts[_YARDSTICK]
                if _YARDSTICK in self.cuts
                else self._cut(graph, _YARDSTICK, graph.num_classes, left)[0]
            )
            self._spreads = cut is None
            if not self._spreads:
                self._note(UNSPREAD)
        return self._spreads

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._tell(text)

    def train(self, graph: Graph, runs: Sequence[Run]) -> list[Run]:
        """Every run twice, trained, in the same order: alone, and with spread labels beside it; only the first of them where
        the graph is so large that even a GCN, which needs about as much as spreading, is trained in batches."""
        models = dict.fromkeys(run.candidate.model for run in runs if run.candidate.is_network)
        spread = self._decide(graph, models)
        # Class scores of a large graph are judged as they come, a few runs at a time, and not kept.
        in_batches = any(self.cuts[model] for model in models)
        size = max(1, _SCORES_BYTES // (4 * graph.num_nodes * graph.num_classes)) if in_batches else len(runs)
        if self._listener is None or self._listener.graph is not graph:
            self._listener = Listener(graph)  # what it knows of a graph serves all that are trained on it
        listener, trained = self._listener, dict[int, list[Run]]()
        networks = [place for place, run in enumerate(runs) if run.candidate.is_network]
        for first in range(0, len(networks), size):
            part = networks[first : first + size]
            done = self._train(listener, [runs[place] for place in part], spread)
            trained.update(zip(part, done, strict=True))
        for place in set(range(len(runs))) - set(networks):
            trained[place] = self._train_estimator(listener, runs[place], spread)
        return [run for place in range(len(runs)) for run in trained[place]]

    def _train_estimator(self, listener: Listener, run: Run, spread: bool) -> list[Run]:
        graph, model = listener.graph, self._estimators[run.candidate.model]
        known, start = run.known(graph.y.numpy()), time.perf_counter()
        state = model.fit(graph, known, graph.num_classes, seed=run.seed, balanced=self.balanced)
        scores = model.scores(graph, state, known, graph.num_classes)
        if self.prior is not None:
            shares = np.array(proportions(self.prior, graph.num_classes, known, known))
            state[_PRIOR] = meet_prior(scores, known < 0, shares)
            scores = scores + state[_PRIOR]
        ok, seconds = bool(np.isfinite(scores).all()), time.perf_counter() - start
        return listener.judged(run, scores, state, ok, seconds=seconds, spread=spread)

    def _train(self, listener: Listener, runs: Sequence[Run], spread: bool) -> list[list[Run]]:
        graph, few, words = listener.graph, has_few_labels(listener.graph), has_words(listener.graph)
        splits = {run.split.name: run.split for run in runs}
        trials = [
            self._trial(
                run.candidate.model,
                words=words,
                few=few,
                lam=run.candidate.lam,
                balance=run.candidate.balance,
                prior=self.prior if run.candidate.balance else None,
                split=run.split.name,
                seed=run.seed,
                batching=self.cuts[run.candidate.model],
            )
            for run in runs
        ]
        with suitable_threads(graph.num_nodes, self.settings["hidden"]):
            records = self._trainer.train(
                graph,
                trials,
                splits=splits,
                device=self.device,
                progress=self._tick or self.progress,
                keep_weights=True,
                choose="last",
                class_weight=balanced_weights(graph.y.numpy(), graph.num_classes) if self.balanced else None,
            )
        for slow in dict.fromkeys(way_note(record) for record in records):
            if slow and slow not in self.notes:
                self._note(slow)
        trained: list[list[Run]] = []
        for run, record in zip(runs, records, strict=True):
            assert record.logits is not None
            ok = record.status == "ok"
            self._uses.setdefault(run.candidate, []).append(record.metrics.get("class_use", math.nan))
            said = (record.logits, record.weights, ok, record.traces)
            trained.append(listener.judged(run, *said, seconds=record.seconds, spread=spread))
        return trained

    def collapses(self, chosen: Iterable[Candidate]) -> list[str]:
        """What to say of those of the chosen that empty classes."""
        own = dict.fromkeys(candidate.rough for candidate in chosen if candidate.sharpens)
        plain = {c: float(np.mean(self._uses.get(c.plain.rough, [1.0]))) for c in own}
        uses = {candidate: self._uses.get(candidate, []) for candidate in own}
        notes = [collapse_note(c.name, uses[c], [plain[c]] * len(uses[c])) for c in own]
        return [note.removesuffix(".") for note in notes if note]

    def logits(
        self,
        graph: Graph,
        model: str,
        num_classes: int,
        weights: Sequence[dict[str, np.ndarray]],
        known: np.ndarray | None = None,
    ) -> Iterator[np.ndarray]:
        """Class scores [N, C] of every set of weights of one model, in the same order.

        Args:
            graph: To predict.
            model: Whose weights they are.
            num_classes: How many there are.
            weights: What runs of it have learnt.
            known: The class of each node, −1 where unknown, for models that read labels of neighbours; None: none is known.
        """
        if model in self._estimators:
            known = np.full(graph.num_nodes, -1) if known is None else known
            for state in weights:
                scores = self._estimators[model].scores(graph, state, known, num_classes)
                yield scores + state.get(_PRIOR, 0.0)
            return
        blueprint = self._blueprint(model, graph.num_features, num_classes)
        # As in the fit; but predictions are made here, whoever trained, and what fitted there may not fit here. The evaluation
        # layer by layer is exact: its scores are those of the whole graph at once, up to rounding.
        cut = self.cuts.get(model) or self._cut(graph, model, num_classes, None)[0]
        where = resolve_device(self.device)
        with arithmetic("float32", where) as dtype:
            if cut and blueprint.network is not None:
                yield from layerwise_scores(blueprint.network, graph, where, dtype, weights)
            else:
                yield from class_scores(blueprint, Inputs(graph, where, dtype), weights)
