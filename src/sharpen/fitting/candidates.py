"""What the search may choose from: models, λ, the balance term, and whether known labels are spread beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sharpen.errors import InputError, did_you_mean
from sharpen.trial import MODELS

# In the order in which a short search tries them. The useful λ of the paper lie around 0.25.
AUTO_LAMS = (0.25, 0.5, 0.1, 1.0)
# How many λ of a GCN come before the first of these: sharpening an MLP tells least about a graph.
_WAIT = {"gcn": 0, "sage": 2, "gat": 3, "mlp": 6}
MODEL_NAMES = {"mlp": "MLP", "gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}


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
    def uses_graph(self) -> bool:
        """Whether edges matter to it."""
        return self.model != "mlp" or self.spread

    @property
    def sharpens(self) -> bool:
        """Whether unlabeled nodes matter to its objective."""
        return self.lam != 0 or self.balance != 0

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        model = MODEL_NAMES.get(self.model, self.model)
        name = f"{model} with λ = {self.lam:g}" if self.sharpens else f"plain {model}"
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


def list_candidates(model: Any = "auto", lam: Any = "auto", balance: Any = "auto") -> list[Candidate]:
    """All candidates to train, those first that a short search should not miss; each is judged with spread labels too.

    Plain training is always among them, as the baseline; so is the plain MLP where models are chosen automatically, to
    see whether the graph helps.

    Args:
        model: ``auto``, a name, several names, or anything that is not text for a model of the user's own.
        lam: ``auto``, a number, or several.
        balance: ``auto`` (without, and as strong as λ), a number, or several.

    >>> [c.name for c in list_candidates("gcn", lam=0.25, balance=0.0)]
    ['plain GCN', 'GCN with λ = 0.25']
    >>> len(list_candidates())
    36
    """
    models = _models(model)
    lams = AUTO_LAMS if _is_auto(lam, "lam") else _numbers(lam, "lam")
    pairs: list[tuple[float, float]] = [(0.0, 0.0)]
    if _is_auto(balance, "balance"):
        pairs += [(value, weight) for value in lams for weight in (0.0, value) if value > 0 or weight == 0]
    else:
        pairs += [(value, weight) for weight in _numbers(balance, "balance") for value in lams]
    pairs = list(dict.fromkeys(pairs))
    models = sorted(models, key=lambda name: _WAIT.get(name, 0))
    later = [
        (place + _WAIT.get(name, 0), Candidate(name, *pair)) for name in models for place, pair in enumerate(pairs)
    ]
    first = [Candidate(name) for name in models if name in ("gcn", "mlp", "model")]
    return list(dict.fromkeys([*first, *(candidate for _, candidate in sorted(later, key=lambda entry: entry[0]))]))


def _models(model: Any) -> list[str]:
    if isinstance(model, str):
        names = list(MODELS) if model == "auto" else [model]
    elif isinstance(model, Sequence):
        names = list(dict.fromkeys(model))
    else:
        return ["model"]
    for name in names:
        if name not in MODELS:
            own = "" if isinstance(name, str) else "; a torch.nn.Module, or a function that makes one, goes alone"
            raise InputError(f"model is {name!r}; {did_you_mean(name, MODELS)}choose auto, {', '.join(MODELS)}{own}")
    if not names:
        raise InputError("model is an empty list; choose auto, or at least one of " + ", ".join(MODELS))
    return names


def _is_auto(value: Any, name: str) -> bool:
    if isinstance(value, str) and value != "auto":
        raise InputError(f"{name} is {value!r}; give a number, several, or 'auto'")
    return isinstance(value, str)


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(v) for v in (value if isinstance(value, Sequence) else [value]))
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; give a number, several, or 'auto'") from None
    if not numbers or any(v != v or abs(v) == float("inf") for v in numbers):
        raise InputError(f"{name} is {value!r}; give at least one finite number, or 'auto'")
    return numbers
