"""What the search may choose from: models, λ, the balance term, and whether known labels are spread beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sharpen.errors import InputError
from sharpen.models.custom import register
from sharpen.models.registry import MODELS_SHORT, PAPER_MODELS, REGISTRY, check_model, model_info

# In the order in which a short search tries them. The useful λ of the paper lie around 0.25.
AUTO_LAMS = (0.25, 0.5, 0.1, 1.0)
# How many λ of a GCN come before the first of a model: dearer ones wait, and sharpening without the graph tells least about it.
_MLP_WAITS = 6


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
        return model_info(self.model).uses_graph or self.spread

    @property
    def sharpens(self) -> bool:
        """Whether unlabeled nodes matter to its objective."""
        return self.lam != 0 or self.balance != 0

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        model = model_info(self.model).noun
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


def list_candidates(
    model: Any = "auto", lam: Any = "auto", balance: Any = "auto", prior: Any = None
) -> list[Candidate]:
    """All candidates to train, those first that a short search should not miss; each is judged with spread labels too.

    Plain training is always among them, as the baseline; so is the plain MLP where models are chosen automatically, to
    see whether the graph helps.

    Args:
        model: ``auto``, a name, a model of one's own, or several of these.
        lam: ``auto``, a number, or several.
        balance: ``auto`` (without, and as strong as λ), a number, or several.
        prior: Class proportions, or None. Whoever gives them wants them used: what sharpens has a balance then.

    >>> [c.name for c in list_candidates("gcn", lam=0.25, balance=0.0)]
    ['plain GCN', 'GCN with λ = 0.25']
    >>> len(list_candidates())
    36
    """
    models = models_of(model)
    lams = AUTO_LAMS if _is_auto(lam, "lam") else _numbers(lam, "lam")
    pairs: list[tuple[float, float]] = [(0.0, 0.0)]
    if _is_auto(balance, "balance"):
        pairs += [(value, weight) for value in lams for weight in (0.0, value) if value > 0 or weight == 0]
    else:
        pairs += [(value, weight) for weight in _numbers(balance, "balance") for value in lams]
    pairs = list(dict.fromkeys(pairs))
    models = sorted(models, key=_waits)
    later = [(place + _waits(name), Candidate(name, *pair)) for name in models for place, pair in enumerate(pairs)]
    first = [Candidate(name) for name in models if _waits(name) in (0, _MLP_WAITS)]
    found = list(dict.fromkeys([*first, *(candidate for _, candidate in sorted(later, key=lambda entry: entry[0]))]))
    if prior is None:
        return found
    used = [candidate for candidate in found if candidate.balance or not candidate.sharpens]
    if not any(candidate.balance for candidate in used):
        raise InputError(
            f"is {prior!r}, but balance is 0, so that it would do nothing; raise the balance", field="class_prior"
        )
    return used


def _waits(model: str) -> int:
    info = model_info(model)
    if model not in REGISTRY:  # somebody's own comes first
        return 0
    return round(5 * (info.cost - 1)) if info.uses_graph else _MLP_WAITS


def models_of(model: Any) -> list[str]:
    """The names of the models that are meant; a module, a class or a function of one's own is known by a name from now on.

    >>> models_of("gcn"), models_of("auto")
    (['gcn'], ['mlp', 'gcn', 'sage', 'gat'])
    """
    if isinstance(model, str):
        given: list[Any] = list(PAPER_MODELS) if model == "auto" else [model]
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
