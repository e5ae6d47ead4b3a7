"""What the search may choose from: models, λ, the balance term, and whether known labels are spread beside the model; and in which
order to try it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sharpen.advice import first_choice
from sharpen.errors import InputError
from sharpen.fitting.spreading import features_of
from sharpen.fitting.wide import is_wide
from sharpen.graph import Graph
from sharpen.models.custom import register
from sharpen.models.registry import ESTIMATORS, MODELS_SHORT, PAPER_MODELS, REGISTRY, check_model, model_info

# In the order in which a short search tries them. The useful λ of the paper lie around 0.25.
_SEARCHED_LAMS = (0.25, 0.5, 0.1, 1.0)
# With the same weight for the balance: what models that are not the paper's are tried with.
_FEW_LAMS = (0.5, 1.0)
# λ and balance of models with a grid of their own. GRAND's two draws are to agree with their sharpened mean, which empties classes
# as λ does: with few labels the balance has to outweigh both. With more than so many labels of a class that costs a point, and on
# columns that are no words, where classes seldom empty, more than a weak one costs two.
_OWN_GRID = {"grand": ((1.0, 1.0), (0.5, 3.0), (0.5, 0.5))}
FEW_LABELS = 10
"""With so many labels of a class or fewer, labels are few."""
# Self-training is tried where classes have no more labels than this in the median.
_SELF_TRAINING_LABELS = 3
# So many edges between labeled nodes tell whether neighbours are alike.
_ENOUGH_EDGES = 20
_AUTO = (*PAPER_MODELS, "appnp", "gprgnn", "grand", *ESTIMATORS)
_WITHOUT_EDGES = ("mlp", "logistic", "self-training", "linear", "trees")
# Where labels are few and neighbours alike: what leads there first, since a dear graph has time for few. Where neighbours differ.
_FAMILIES = ("logistic", "self-training", "linear", "grand", "gcn", "mlp", "trees", "sage", "appnp", "gprgnn", "gat")
_LARGE = ("logistic", "linear", "trees", "mlp", "gcn", "sage", "gprgnn", "appnp", "gat", "grand", "self-training")
# From so many edges on, what is cheap comes first.
_MANY_EDGES = 500_000
_UNLIKE = ("logistic", "trees", "linear", "sage", "mlp", "gcn", "gprgnn", "gat", "grand", "appnp", "self-training")


@dataclass(frozen=True, order=True)
class Candidate:
    """A model with its objective, alone or beside spread labels; all else is shared by the candidates of one search.

    Args:
        model: The name of the architecture.
        lam, balance: As in :class:`sharpen.Trial`.
        spread: Whether labels that spread over the graph are listened to beside it (:mod:`sharpen.fitting.spreading`).

    >>> Candidate("gcn", lam=0.5, balance=0.5).name
    'GCN with λ = 0.5 and balance 0.5'
    >>> Candidate("mlp", spread=True).name
    'plain MLP and spread labels'
    """

    model: str
    lam: float = 0.0
    balance: float = 0.0
    spread: bool = False

    @property
    def is_network(self) -> bool:
        """Whether it is trained by gradient descent, and so has an objective."""
        return self.model not in ESTIMATORS

    @property
    def uses_graph(self) -> bool:
        """Whether edges matter to it."""
        return model_info(self.model).uses_graph or self.spread

    @property
    def uses_labels(self) -> bool:
        """Whether known labels of the graph it predicts matter to it: spread, or as those of neighbours."""
        return self.spread or self.model in ("linear", "trees")

    @property
    def sharpens(self) -> bool:
        """Whether unlabeled nodes matter to its objective."""
        return self.lam != 0 or self.balance != 0

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        model = model_info(self.model).noun
        name = f"{model} with λ = {self.lam:g}" if self.sharpens else f"{'plain ' * self.is_network}{model}"
        name += f" and balance {self.balance:g}" if self.balance else ""
        return f"{name} and spread labels" if self.spread else name

    @property
    def plain(self) -> Candidate:
        """The same model without sharpening."""
        return Candidate(self.model, spread=self.spread)

    @property
    def rough(self) -> Candidate:
        """What is trained: the model, alone."""
        return replace(self, spread=False)


def list_candidates(
    model: Any = "auto", lam: Any = "auto", balance: Any = "auto", prior: Any = None
) -> list[Candidate]:
    """All candidates to train, model by model; each is judged with spread labels too. :func:`order` puts what pays first.

    Plain training is always among them, as the baseline; so is the plain MLP where models are chosen automatically, to
    see whether the graph helps.

    Args:
        model: ``auto``, a name, a model of one's own, or several of these.
        lam: ``auto``, a number, or several.
        balance: ``auto`` (without, and as strong as λ), a number, or several.
        prior: Class proportions, or None. Whoever gives them wants them used: what sharpens has a balance then.

    >>> [c.name for c in list_candidates("gcn", lam=0.25, balance=0.0)]
    ['plain GCN', 'GCN with λ = 0.25']
    >>> [c.name for c in list_candidates(["logistic", "grand"])]
    ['logistic regression on S²GC features', 'plain GRAND', 'GRAND with λ = 1 and balance 1', 'GRAND with λ = 0.5 and balance 3',
    'GRAND with λ = 0.5 and balance 0.5']
    """
    found = []
    for name in models_of(model):
        automatic = _is_auto(lam, "lam"), _is_auto(balance, "balance")
        if name in ESTIMATORS:
            found.append(Candidate(name))
            continue
        few = name in REGISTRY and name not in PAPER_MODELS
        lams = (_FEW_LAMS if few else _SEARCHED_LAMS) if automatic[0] else _numbers(lam, "lam")
        pairs: list[tuple[float, float]] = [(0.0, 0.0)]
        if automatic == (True, True) and name in _OWN_GRID:
            pairs += _OWN_GRID[name]
        elif automatic[1] and name in _OWN_GRID:
            pairs += [(v, w) for v in lams for _, w in _OWN_GRID[name] if v > 0]
        elif automatic[1]:
            pairs += [(v, w) for v in lams for w in ((v,) if few else (0.0, v)) if v > 0 or w == 0]
        else:
            pairs += [(value, weight) for weight in _numbers(balance, "balance") for value in lams]
        found += [Candidate(name, *pair) for pair in dict.fromkeys(pairs)]
    if prior is None:
        return found
    used = [candidate for candidate in found if candidate.balance or not candidate.sharpens]
    networks = [candidate for candidate in used if candidate.is_network]
    if networks and not any(candidate.balance for candidate in networks):
        raise InputError(
            f"is {prior!r}, but balance is 0, so that it would do nothing; raise the balance", field="class_prior"
        )
    return used


def order(candidates: Sequence[Candidate], graph: Graph, *, automatic: bool = True) -> list[Candidate]:
    """The candidates that suit a graph, those first that pay on graphs of its kind.

    First the best of every family, cheap ones before dear ones; then the rest of their grids, in turn. Where labeled neighbours
    are mostly of different classes, families that can tell neighbours apart come first.

    Args:
        candidates: From :func:`list_candidates`.
        graph: What they are to be fitted on, with the labels that are known.
        automatic: Whether models are chosen automatically; otherwise all that were asked for are tried.

    >>> graph = Graph(x=np.eye(4), edge_index=[[0, 1], [1, 2]], y=[0, 0, 1, -1])
    >>> [c.model for c in order(list_candidates(), graph)][:6]
    ['logistic', 'self-training', 'linear', 'grand', 'gcn', 'gcn']
    """
    usual = _usual_labels(graph)
    few = usual <= _SELF_TRAINING_LABELS

    def suits(name: str) -> bool:
        if not automatic:
            return True
        if name == "self-training":
            return few
        if name == "trees" and is_wide(graph):
            return False
        return bool(graph.num_edges) or name in _WITHOUT_EDGES

    families = _LARGE if graph.num_edges >= _MANY_EDGES else _FAMILIES if _alike(graph) else _UNLIKE
    rank = {name: place for place, name in enumerate(families)}
    by_model: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if suits(candidate.model):
            by_model.setdefault(candidate.model, []).append(candidate)
    models = sorted(by_model, key=lambda name: rank.get(name, -1))  # somebody's own comes first
    first = [own for name in models for own in _first_of(name, by_model[name], usual, graph)]
    rest = [(turn, c) for name in models for turn, c in enumerate(by_model[name]) if c not in first]
    return [*first, *(candidate for _, candidate in sorted(rest, key=lambda entry: entry[0]))]


# What a model is worth before any label has spoken, where others are worth 1: on words, the same with more than a few labels,
# on few columns, on many other columns, and where averages over neighbours say nothing.
_OF_WORDS = {"grand": 12.0, "mlp": 0.5, "trees": 0.3}
_OF_MORE_WORDS_LABELED = {**_OF_WORDS, "logistic": 4.0}
_OF_TABLES = {"linear": 8.0, "grand": 0.5, "gcn": 0.5, "trees": 0.3}
_OF_OTHERS = {"grand": 4.0, "gcn": 0.5, "trees": 0.3}
_OF_UNLIKE = {"linear": 8.0, "logistic": 0.25, "grand": 0.25, "gcn": 0.5, "trees": 0.3}
# What GRAND keeps of its worth with the balance that is for another number of labels: too little to be trusted more than others. A
# balance above 1 is for few labels on words, any other for the rest.
_OF_OTHER_BALANCE = 0.0625
# And on words beside spread labels, which tell an average of eight hops little; where averages say nothing, all do.
_BESIDE_SPREAD = 0.25
# Words are columns without a negative entry, so many at least, of which a node has no more than this share.
_FEWEST_WORDS, _WORDS_OF_A_NODE = 100, 0.2


def trust_in(graph: Graph) -> Callable[[Candidate, bool], float]:
    """How much candidates are worth on a graph of this kind, where averages over neighbours say something, or not: what has paid.

    >>> table, words = (Graph(x=np.eye(columns), edge_index=[[0], [1]], y=[0, *[-1] * (columns - 1)]) for columns in (4, 200))
    >>> [trust_in(graph)(Candidate("linear"), smooth) for graph, smooth in ((table, True), (words, True), (words, False))]
    [8.0, 1.0, 8.0]
    """
    strong, words = _has_few_words_labeled(graph), has_words(graph)
    of_words = _OF_WORDS if strong else _OF_MORE_WORDS_LABELED
    alike = of_words if words else _OF_OTHERS if graph.num_features >= _FEWEST_WORDS else _OF_TABLES

    def trust(candidate: Candidate, smooth: bool) -> float:
        own, is_grand = (alike if smooth else _OF_UNLIKE).get(candidate.model, 1.0), candidate.model == "grand"
        other = is_grand and strong != (candidate.balance > 1)
        beside = candidate.spread and (not smooth or (words and is_grand))
        return own * (_OF_OTHER_BALANCE if other else 1) * (_BESIDE_SPREAD if beside else 1)

    return trust


def has_words(graph: Graph) -> bool:
    """Whether nodes have words for columns, and neighbours.

    >>> has_words(Graph(x=np.eye(200), edge_index=[[0], [1]], y=[0] + [-1] * 199))
    True
    """
    entries = features_of(graph).data if graph.is_sparse else features_of(graph)
    if graph.num_features < _FEWEST_WORDS or not graph.num_edges or not entries.size or entries.min() < 0:
        return False
    return int(np.count_nonzero(entries)) <= _WORDS_OF_A_NODE * graph.num_nodes * graph.num_features


def has_few_labels(graph: Graph) -> bool:
    """Whether a class has ten labels or fewer, in the median.

    >>> has_few_labels(Graph(x=np.eye(4), edge_index=[[0, 1], [1, 2]], y=[0, 0, 1, -1]))
    True
    """
    return _usual_labels(graph) <= FEW_LABELS


def _has_few_words_labeled(graph: Graph) -> bool:
    """Whether GRAND's strong balance pays: on other columns classes seldom empty, and it costs points."""
    return has_few_labels(graph) and has_words(graph)


def _usual_labels(graph: Graph) -> float:
    """How many labels a class has in the median, of those that have some; 0 without any."""
    y = graph.y.numpy()
    count = np.bincount(y[y >= 0])
    return float(np.median(count[count > 0])) if len(count) else 0.0


def _first_of(name: str, own: list[Candidate], labels: float, graph: Graph) -> list[Candidate]:
    """What a model is tried with first: plain, a GCN sharpened too, GRAND with the balance that suits the graph."""
    sharpened = [candidate for candidate in own if candidate.sharpens][:1]
    if name == "grand" and sharpened:
        balance = 3.0 if _has_few_words_labeled(graph) else 1.0 if has_words(graph) else 0.5
        return sorted((c for c in own if c.sharpens), key=lambda c: abs(c.balance - balance))[:1]
    if name == "gcn":
        advised = Candidate(name, *first_choice(labels))
        return own[:1] + ([advised] if advised in own else sharpened)
    return own[:1]


def _alike(graph: Graph) -> bool:
    """Whether labeled neighbours are more often of one class than by chance; yes where too few are neighbours to tell."""
    y = graph.y.numpy()
    ends = y[graph.edge_index.numpy()]
    ends = ends[:, (ends >= 0).all(axis=0)]
    if ends.shape[1] < _ENOUGH_EDGES:
        return True
    share = np.bincount(ends.ravel()) / ends.size
    return bool((ends[0] == ends[1]).mean() > (share**2).sum())


def models_of(model: Any) -> list[str]:
    """The names of the models that are meant; a module, a class or a function of one's own is known by a name from now on.

    >>> models_of("gcn"), models_of("auto")
    (['gcn'], ['mlp', 'gcn', 'sage', 'gat', 'appnp', 'gprgnn', 'grand', 'logistic', 'self-training', 'linear', 'trees'])
    """
    if isinstance(model, str):
        given: list[Any] = [*_AUTO] if model == "auto" else [model]
    else:
        given = list(model) if isinstance(model, Sequence) else [model]
    if not given:
        raise InputError(f"is an empty list; choose auto, or at least one of {MODELS_SHORT}", field="model")
    names = []
    for one in given:
        if not isinstance(one, str) and not callable(one):
            raise InputError(f"is {one!r}; give a name, a torch.nn.Module, or a function that makes one", field="model")
        names.append(check_model(one, auto=True) if isinstance(one, str) else register(one))
    return list(dict.fromkeys(names))


def _is_auto(value: Any, name: str) -> bool:
    if isinstance(value, str) and value != "auto":
        raise InputError(f"is {value!r}; give a number, several, or 'auto'", field=name)
    return isinstance(value, str)


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(v) for v in (value if isinstance(value, Sequence) else [value]))
    except (TypeError, ValueError):
        raise InputError(f"is {value!r}; give a number, several, or 'auto'", field=name) from None
    if not numbers or any(v != v or abs(v) == float("inf") for v in numbers):
        raise InputError(f"is {value!r}; give at least one finite number, or 'auto'", field=name)
    return numbers
