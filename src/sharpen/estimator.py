"""A classifier for the nodes of a graph, by the conventions of scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from sharpen.cluster.connection import HERE
from sharpen.cluster.pool import IN_THIS_PROCESS, Trainer, trainer_on
from sharpen.errors import InputError
from sharpen.files import FeatureEncoder
from sharpen.files.feature_names import feature_names
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.bare_graphs import bare_tables, is_bare
from sharpen.fitting.candidates import Candidate, list_candidates, models_of, order
from sharpen.fitting.convert import as_graph, convert, encode_labels
from sharpen.fitting.evidence import check_metric
from sharpen.fitting.fitted import Fitted, conclude
from sharpen.fitting.folds import can_check, check_labels
from sharpen.fitting.reasons import Reasoned
from sharpen.fitting.saved import damaged, load_fitted, save_fitted
from sharpen.fitting.search import DEFAULT_BUDGET, check_budget, check_seed, search
from sharpen.fitting.shown import Shown
from sharpen.fitting.unchecked import settle
from sharpen.graph import Graph
from sharpen.models.registry import PAPER_MODELS, is_own, model_info
from sharpen.prior import prior_by_class
from sharpen.training.memory import check_batching
from sharpen.trial import Trial

_SETTINGS = ("layers", "hidden", "dropout", "norm", "residual", "input_linear", "lr", "weight_decay", "epochs", "q")


class NodeClassifier(Reasoned, Shown, ClassifierMixin, BaseEstimator):
    """Learns from the labeled nodes of a graph and labels the others; chooses model and λ by itself.

    Validation nodes are drawn from the labeled ones, again and again while they are few. Every candidate (a network with λ and
    balance, logistic regression on propagated features, a linear model or boosted trees on columns and those of neighbours) is
    trained on the same folds and judged alone and with known labels that spread over the graph beside it. An ensemble is selected
    by held-out labels, and temperatures fitted on held-out labels make its probabilities believable. ``report_`` says how well that
    works on labels that had no part in it, and what it would be without sharpening and without the graph.

    A graph is a :class:`sharpen.Graph`, a PyG ``Data`` (labels outside its ``train_mask`` and ``val_mask`` are not looked at), a
    NetworkX graph (features in ``x``, or made of its structure if no node has any; labels in ``label``), a pair of features and
    adjacency matrix, or a pair of DataFrames, nodes and edges, which are read as files are (:class:`sharpen.Frames`; ``y`` may be
    the name of the column of labels). Labels may be of any type; None, NaN, −1 and blank text are unknown. Where edges have
    weights, GCN, GraphSAGE and spreading use them; GAT learns its own.

    Args:
        model: ``auto``; a name that :mod:`sharpen.models.registry` knows; a model of your own, as in :class:`sharpen.Trial`: a
            ``torch.nn.Module`` that is called as ``model(x, edge_index)`` and gives [N, C] logits or log-probabilities, its class,
            a function of (features, classes) that makes one, or ``my_net.py:MyNet``; or several of these. ``auto`` is what
            suits the graph.
        lam: λ: ``auto``, a number, or several to choose from. 0 is always among them.
        balance: ``auto`` (none, and as much as λ; with a ``class_prior`` as much as λ), a number, or several.
        class_prior: The class proportions of the graph, if they are known: ``{"gop": 0.85, "dem": 0.15}``, ``"gop=0.85,dem=0.15"``,
            a file of them, ``labels`` (labeled nodes are a random sample) or ``uniform``. Worth many labels where it is right;
            one share doubled by mistake cost up to 10 points with 5 labels per class, halved up to 2.
        budget: Minutes that the search may take. It depends on the clock only where this cuts it short; a note says so.
        metric: What to choose by: ``accuracy``, or ``balanced-accuracy``, in which rare classes count as much as others.
        ensemble: Whether several candidates and all their folds are averaged; otherwise one run on all labels decides.
        class_weight: ``balanced``: classes weigh the same in the loss, however many labels they have. None: labels do.
        layers, hidden, dropout, norm, residual, input_linear, lr, weight_decay, epochs, q: As in :class:`sharpen.Trial`. A model
            of your own keeps its own defaults where these are ours.
        model_args: Further arguments of models that are not the paper's, by name.
        on: Where ``fit`` trains: ``here``; or ``ray`` or ``ray://HOST:PORT``, spread over the workers of a Ray cluster
            (:func:`sharpen.cluster.connection.connected`). Predictions are made here.
        device: ``auto`` (a GPU if there is one), ``cpu`` or ``cuda``.
        batching: ``auto`` (in batches of clusters if the whole graph does not fit in memory; a line and a note say so), ``full``,
            ``clusters``, ``neighbors``, or exactly, as ``clusters-64-4`` (:mod:`sharpen.batching`).
        seed: Of folds, first weights and dropout.
        progress: Is given a line of text now and then, such as ``print``; on a terminal there is a progress bar as well.

    After ``fit``: ``classes_``, ``n_features_in_``, ``report_`` (what ``summary.json`` holds, ready for JSON), ``curves_`` (traces
    of the runs that were chosen, and of the same model without sharpening).

    >>> import networkx
    >>> club = networkx.karate_club_graph()
    >>> y = [club.nodes[n]["club"] if n in (0, 1, 2, 3, 33, 32, 31, 30) else None for n in club]
    >>> x, adjacency = np.eye(34), networkx.to_scipy_sparse_array(club)
    >>> clf = NodeClassifier(model="gcn", lam=0.25, hidden=16, epochs=30, device="cpu").fit((x, adjacency), y)
    >>> clf.classes_.tolist(), clf.predict_proba((x, adjacency)).shape
    (['Mr. Hi', 'Officer'], (34, 2))
    >>> clf.score((x, adjacency), [club.nodes[n]["club"] for n in club]) > 0.8
    True
    """

    def __init__(
        self,
        model: Any = "auto",
        lam: str | float | Sequence[float] = "auto",
        *,
        balance: str | float | Sequence[float] = "auto",
        class_prior: Any = None,
        budget: float = DEFAULT_BUDGET,
        metric: str = "accuracy",
        ensemble: bool = True,
        class_weight: str | None = None,
        layers: int = 2,
        hidden: int = 64,
        dropout: float = 0.5,
        norm: str = "none",
        residual: bool = False,
        input_linear: bool = False,
        lr: float = 0.01,
        weight_decay: float = 0.0005,
        epochs: int = 100,
        q: float = 2.0,
        model_args: Mapping[str, Any] | None = None,
        on: str = HERE,
        device: str = "auto",
        batching: str = "auto",
        seed: int = 0,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.model, self.lam, self.balance, self.class_prior = model, lam, balance, class_prior
        self.budget, self.metric, self.ensemble, self.class_weight = budget, metric, ensemble, class_weight
        self.layers, self.hidden, self.dropout, self.norm = layers, hidden, dropout, norm
        self.residual, self.input_linear = residual, input_linear
        self.lr, self.weight_decay, self.epochs, self.q = lr, weight_decay, epochs, q
        self.model_args, self.on, self.device, self.batching = model_args, on, device, batching
        self.seed, self.progress = seed, progress

    def fit(self, graph: Any, y: Any = None) -> NodeClassifier:
        """Learns from the labels in ``y``, or in the graph itself if ``y`` is None."""
        candidates = self.check_parameters()  # names what cannot be, before anything that takes time
        tables = bare_tables(graph, y) if is_bare(graph) else None
        structure = None if tables is None else FeatureEncoder.fit(tables)
        data, classes = as_graph(
            graph, y, x=self._features(graph, structure), unit=structure.unit if structure else None
        )
        notes = check_labels(data.y.numpy(), data.class_names)
        notes += structure.describe() if structure is not None and structure.structural is not None else []
        automatic = isinstance(self.model, str) and self.model == "auto"
        candidates = order(candidates, data, automatic=automatic)
        if not data.num_edges:
            what = "models that need none are trained" if automatic else "a model sees each node alone"
            notes = [*notes, f"there are no edges, so {what}, and nothing can be said about the graph"]
        prior = prior_by_class(self.class_prior, data.class_names)
        tell = self.progress or (lambda text: None)
        with trainer_on(self.on, self.device, progress=self.progress is not None, say=tell) as trainer:
            backbone = self._backbone(trainer, prior=prior)
            told: dict[str, Any] = {
                "metric": self.metric,
                "seed": self.seed,
                "settings": {name: getattr(self, name) for name in _SETTINGS},
                "columns": [*tables.guesses, *structure.describe()] if tables and structure else [],
            }
            if can_check(data.y.numpy()):
                found = search(
                    backbone,
                    data,
                    candidates,
                    budget=self.budget,
                    metric=self.metric,
                    seed=self.seed,
                    selective=automatic,
                    tell=tell,
                )
                notes += backbone.notes
                self._fitted = conclude(found, data, backbone, ensemble=self.ensemble, notes=notes, **told)
            else:
                self._fitted = settle(data, backbone, candidates, automatic=automatic, notes=notes, **told)
        self._structure, self.classes_, self.n_features_in_ = structure, classes, data.num_features
        self.report_, self.curves_ = self._fitted.report, self._fitted.curves
        self.extra_: dict[str, Any] = {}
        self._graph, self._ids = data, np.arange(data.num_nodes) if tables is None else tables.ids
        self._names = feature_names(structure, tables) if tables and structure else None
        return self

    def check_parameters(self) -> list[Candidate]:
        """Refuses parameters that cannot be, without data; otherwise, the candidates that a search would try.

        >>> NodeClassifier(model="gnc").check_parameters()
        Traceback (most recent call last):
        sharpen.errors.InputError: model is 'gnc'; did you mean 'gcn'? Choose auto, or one of mlp, ...
        >>> len(NodeClassifier(model="gcn", lam=0.25, balance=0).check_parameters())
        2
        """
        candidates = list_candidates(self.model, self.lam, self.balance, self.class_prior)
        check_metric(self.metric)
        check_budget(self.budget)
        check_batching(self.batching)
        check_seed(self.seed)
        self._backbone()
        return candidates

    def predict_proba(self, graph: Any, y: Any = None) -> np.ndarray:
        """Calibrated probabilities [N, C] of all nodes of the same, a grown, or another graph with the same features.

        Args:
            graph: To label. Labels in it are not looked at.
            y: Labels that are known, for models that spread them; None where unknown. None: on the graph that it was fitted on,
                those that it was fitted on; on any other, none.
        """
        fitted, data = self._checked(), self._converted(graph)[0]
        known = None if y is None else self._known(y, data.num_nodes)
        return fitted.probabilities(data, self._backbone(cuts=fitted.cuts), known)

    def predict(self, graph: Any, y: Any = None) -> np.ndarray:
        """The most probable class of each node, one of ``classes_``; arguments as for :meth:`predict_proba`."""
        best = self.predict_proba(graph, y).argmax(1)
        return self.classes_[best]

    def lacks_labels(self, graph: Any, y: Any = None) -> bool:
        """Whether the model would spread known labels but knows none of this graph's; arguments as for :meth:`predict_proba`."""
        fitted, data = self._checked(), self._converted(graph)[0]
        known = fitted.known_of(data) if y is None else self._known(y, data.num_nodes)
        return fitted.ensemble.uses_labels and not (known >= 0).any()

    def score(self, graph: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on the nodes whose label is known; of a PyG ``Data`` with a ``test_mask``, on those in it."""
        self._checked()
        if y is None:
            mask = getattr(graph, "test_mask", None)
            y = self._converted(graph)[1] if mask is None else np.where(mask.cpu(), graph.y.cpu(), -1)
            if y is None:
                raise InputError("the graph holds no labels to score by; give y")
        numbers, _ = encode_labels(y, self.classes_)
        known = numbers >= 0
        if not known.any():
            raise InputError("no node has a known label to score by; give y")
        predicted = self.predict_proba(graph).argmax(1)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(predicted[known] == numbers[known], weights=weight))

    def save(self, path: str | os.PathLike[str], extra: Mapping[str, Any] | None = None) -> None:
        """Writes weights and settings to a safetensors file; a module's code is not part of it.

        Args:
            extra: What else to keep (``extra_`` after :meth:`load`), such as how features were made; anything that JSON holds.
        """
        fitted, own_code = self._checked(), self._own_code()
        header = {
            "params": {name: getattr(self, name) for name in self._saved_names(own_code)},
            "classes": self.classes_.tolist(),
            "classes_dtype": self.classes_.dtype.str,
            "module": own_code,
            "structure": self._structure and self._structure.to_json(),
        }
        save_fitted(Path(path), fitted, header | {"extra": dict(self.extra_ if extra is None else extra)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Any = None, device: str | None = None) -> NodeClassifier:
        """Reads what :meth:`save` wrote. No code in the file is run, and none that it names: there is none in it.

        Args:
            model: The model of your own, or several, if it was fitted with one: as for the classifier itself.
            device: Where to predict; None: as when it was fitted.
        """
        fitted, header = load_fitted(path)
        try:
            own_code = header["module"]
            params: dict[str, Any] = {"model_args": None, "class_prior": None, **header["params"]}
            if set(params) != set(cls._saved_names(own_code)):  # no other is passed on, such as where to train
                raise ValueError(f"its parameters are {', '.join(map(str, params))}")
            if own_code:
                if model is None:
                    raise InputError("was fitted with a model of your own; load it with model=...", place=str(path))
                params["model"] = model
            if device is not None:
                params["device"] = device
            classifier = cls(**params)
            classifier.classes_ = _read_classes(header["classes"], header["classes_dtype"], fitted.num_classes)
            classifier.extra_ = dict(header["extra"])
            structure = header["structure"]
            classifier._structure = None if structure is None else FeatureEncoder.from_json(structure)
            classifier._fitted = fitted
            classifier._check_weights(fitted)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise damaged(path, error) from None
        classifier.report_, classifier.curves_ = fitted.report, fitted.curves
        classifier.n_features_in_ = fitted.num_features
        return classifier

    @classmethod
    def _saved_names(cls, own_code: bool) -> list[str]:
        """The parameters that a file holds: not whom to tell, nor where to train, nor where somebody's own code is."""
        skipped = {"progress", "on"} | ({"model"} if own_code else set())
        return [name for name in cls._get_param_names() if name not in skipped]

    def _check_weights(self, fitted: Fitted) -> None:
        """Refuses settings that a file should not hold, and weights that do not go with them, as a ValueError."""
        usual = NodeClassifier()
        for name in _SETTINGS:
            value, kind = getattr(self, name), type(getattr(usual, name))
            if type(value) is not kind and not (kind in (float, bool) and type(value) is int):
                raise ValueError(f"{name} is {value!r}")
        try:
            backbone = self._backbone()
        except InputError as error:
            raise ValueError(str(error)) from None
        for part in (*fitted.ensemble.parts, *(fitted.without_labels.parts if fitted.without_labels else ())):
            backbone.check(part.candidate.model, fitted.num_features, fitted.num_classes, part.weights)

    def _checked(self) -> Fitted:
        if not hasattr(self, "_fitted"):
            raise NotFittedError("this NodeClassifier has learnt nothing yet; call fit first")
        return self._fitted

    def _features(self, graph: Any, structure: FeatureEncoder | None) -> Any:
        """What the structure of a graph makes, if its nodes carry no features and the model was fitted on that."""
        if structure is None or not is_bare(graph):
            return None
        notes: list[str] = []
        x = structure.transform(bare_tables(graph), notes)
        if self.progress is not None:
            for note in notes:
                self.progress(note)
        return x

    def _converted(self, graph: Any) -> tuple[Graph, Any]:
        unit = self._structure.unit if self._structure else None
        return convert(graph, self._features(graph, self._structure), unit=unit)

    def _known(self, y: Any, num_nodes: int) -> np.ndarray:
        known = encode_labels(y, self.classes_)[0]
        if len(known) != num_nodes:
            raise InputError(f"y has {len(known)} labels, but the graph has {num_nodes} nodes; give one for each node")
        return known

    def _backbone(
        self, trainer: Trainer = IN_THIS_PROCESS, cuts: Mapping[str, str | None] | None = None, prior: str | None = None
    ) -> Backbone:
        if self.class_weight not in (None, "balanced"):
            raise InputError(f"is {self.class_weight!r}; give 'balanced', or None", field="class_weight")
        balanced = self.class_weight == "balanced"
        settings = {name: getattr(self, name) for name in _SETTINGS}
        Trial(**settings)  # names what cannot be
        device = self.device if self.on == HERE else "auto"  # the cluster's devices are not ours
        if self._own_code() and self.on != HERE:
            raise InputError(f"is {self.on!r}, but your own model is trained in this process; give 'here'", field="on")
        in_batches = self.batching not in ("auto", "full")
        named = [] if isinstance(self.model, str) and self.model == "auto" else models_of(self.model)
        for name in named:
            if in_batches and name not in PAPER_MODELS:
                why = f"is {self.batching!r}, but {model_info(name).title} sees the whole graph"
                raise InputError(why, field="batching", hint="leave it at 'auto'")
        return Backbone(
            settings,
            device,
            balanced,
            progress=self.progress is not None,
            batching=self.batching,
            tell=self.progress or (lambda text: None),
            trainer=trainer,
            cuts=cuts,
            names=self._own_names(),
            model_args=self.model_args,
            prior=prior,
        )

    def _own_code(self) -> bool:
        """Whether some model's code is not ours."""
        return any(is_own(name) for name in models_of(self.model))

    def _own_names(self) -> dict[str, str]:
        """Models of one's own: from what a fit may have called them to what they are called now."""
        own = [name for name in models_of(self.model) if is_own(name)]
        fitted: Fitted | None = getattr(self, "_fitted", None)
        saved = {part.candidate.model for part in fitted.ensemble.parts} if fitted is not None else set()
        by_title = {model_info(name).title: name for name in own}
        # A class that was changed since, or is named by another path, has the same title; files once said "model".
        only = own[0] if len(own) == 1 else None
        matches = {name: by_title.get(model_info(name).title) or only for name in saved if is_own(name)}
        return {name: name for name in own} | {name: match for name, match in matches.items() if match is not None}


def _read_classes(values: Any, dtype: Any, num_classes: int) -> np.ndarray:
    """The classes as a file has them, of the type that they were."""
    if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
        raise ValueError("its classes are no list of text or numbers")
    if len(values) != num_classes or len(set(map(str, values))) != num_classes:
        raise ValueError(f"it has {len(values)} classes, where {num_classes} different ones are needed")
    kind = np.dtype(str(dtype)).kind
    if kind not in "OUifub":
        raise ValueError(f"its classes are of type {dtype}")
    return np.array(values, dtype=object if kind == "O" else str if kind == "U" else dtype)
