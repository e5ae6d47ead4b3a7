"""The complete description of one training run, and what it gave."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from sharpen.batching import Batching
from sharpen.errors import InputError, check_word, short
from sharpen.models.registry import check_model, model_info
from sharpen.paper import setting
from sharpen.prior import canonical_prior

if TYPE_CHECKING:
    import pandas as pd

NORMS = ("none", "layer", "batch")
ARCHITECTURE = ("layers", "hidden", "dropout", "norm", "residual", "input_linear")
"""The fields that describe a model's architecture; not every model takes all of them."""
OBJECTIVE = ("lam_labeled", "q", "balance", "prior", "sharpen_val")
"""The fields that describe the objective, λ aside."""
OPTIONS = {
    "layers": "Number of layers.",
    "hidden": "Width of the layers.",
    "dropout": "Dropout rate.",
    "norm": "Normalization: none, layer or batch.",
    "residual": "Linear shortcuts around the convolutions.",
    "input_linear": "A linear layer before the first convolution.",
    "lr": "Learning rate of Adam.",
    "weight_decay": "Weight decay of Adam.",
    "epochs": "Number of epochs.",
    "lam_labeled": "Weight of the uncertainty of labeled nodes; by default -λ.",
    "q": "Order of the Tsallis entropy: 2 is Gini, 1 is Shannon.",
    "balance": "Weight that keeps all classes in use, or, with a prior, near it.",
    "prior": "Class proportions: uniform, labels (a random sample), oracle (all labels), or shares as 0.5,0.3,0.2.",
    "sharpen_val": "Sharpen validation nodes too.",
}
"""The fields that commands offer as options, and what to say of each."""
_CALIBRATION = ("ece", "log_loss", "brier")
METRICS = ("macro_f1", *_CALIBRATION, "temperature", *(f"{name}_scaled" for name in _CALIBRATION), "class_use")
"""What records keep of the test nodes at the chosen epoch beside the score: ``_scaled`` is after temperature scaling on validation
labels; ``class_use`` says whether predictions use the classes as evenly as labels do (:func:`sharpen.objective.class_use`)."""
LAST = ("val_last", "test_last", *(f"{name}_last" for name in METRICS))
"""The same and the scores at the last epoch."""
_WORDS = ("batching", "model_args", "prior", "model_digest")
# Beyond these nothing is trained in this life, or kept in 64 bits.
_MOST = {"layers": 1000, "hidden": 2**16, "epochs": 10**8, "seed": 2**63 - 1}
_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "dropout": (lambda value: 0 <= value < 1, "a number from 0 up to but not including 1"),
    "lr": (lambda value: value >= 0, "a number of at least 0"),
    "weight_decay": (lambda value: value >= 0, "a number of at least 0"),
    "lam_max": (lambda value: value > 0, "a number above 0, or leave it out for a fixed λ"),
    "q": (lambda value: value > 0, "an order above 0, such as 2 (Gini) or 1 (Shannon)"),
}


def _numbers_that_cannot_be(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of a trial that hold what they cannot, each with what is wrong."""
    for name, value in given.items():
        kind, least = trial_types()[name], int(name != "seed")
        if kind is int and (int(value) != value or value < least):
            yield name, f"is {value}; give a whole number of at least {least}"
        if kind is int and value > _MOST[name]:
            yield name, f"is {value}; give a whole number of at most {_MOST[name]}"
        if kind is float and not math.isfinite(value):
            yield name, f"is {value}; give a finite number"
    for name, (holds, expected) in _RANGES.items():
        if name in given and not holds(given[name]):
            yield name, f"is {given[name]}; give {expected}"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training run: graph, split, model, objective, optimiser, seed.

    What is left at ``None`` takes the paper's setting for the dataset and model (:meth:`resolve` fills it in).

    Args:
        model: A name that :mod:`sharpen.models.registry` knows, such as ``gcn``; or a model of your own: ``my_net.py:MyNet``,
            ``package.module:MyNet``, or from Python a ``torch.nn.Module`` class, a function that makes a module, or a module.
        dataset: Name of the graph.
        split: The split, or its name; by default the first of the paper's.
        layers, hidden, dropout, norm, residual, input_linear: The architecture; norm is ``none``, ``layer`` or ``batch``.
        lr, weight_decay, epochs: The optimisation: Adam, full batch, a fixed number of epochs.
        lam: λ, the weight of the uncertainty of unlabeled predictions. 0 is plain training.
        lam_labeled: The weight of the uncertainty of labeled predictions; by default −λ.
        lam_max: If given, λ is not fixed: it is learned during training, between 0 and this (:mod:`sharpen.training.meta`).
            ``lam`` and ``lam_labeled`` then have nothing to say and stay 0; the labeled term's weight is −λ.
        q: The order of the Tsallis entropy; 2 is Gini, 1 is Shannon.
        balance: The weight with which the uncertainty of the mean unlabeled prediction is rewarded; or, with a prior, the weight of
            its divergence from that.
        prior: The class proportions that the mean unlabeled prediction is pulled towards (:mod:`sharpen.prior`): ``uniform``,
            ``labels``, ``oracle``, or one share for each class. It needs a balance.
        sharpen_val: Whether validation nodes count among the sharpened; test-only sharpening leaves them out, normaliser kept.
        seed: Decides first weights and dropout (and, where λ is learned, what is held out), and nothing else does.
        batching: If given, how the graph is cut into batches, such as ``clusters-64-4`` (:mod:`sharpen.batching`); an epoch is then
            a pass over all batches. By default every step sees the whole graph.
        model_args: Further arguments of the model, by name, such as ``{"hops": 5}``: numbers, words, or lists of them.

    A model of your own has its own defaults for the architecture: what is left at ``None`` there stays so.

    >>> Trial(model="gcn", dataset="cora", lam=0.25).resolve("balanced-20-500-1000-seed123").hidden
    512
    """

    model: str | Any = "gcn"
    dataset: str | None = None
    split: str | Any = None
    layers: int | None = None
    hidden: int | None = None
    dropout: float | None = None
    norm: str | None = None
    residual: bool | None = None
    input_linear: bool | None = None
    lr: float | None = None
    weight_decay: float | None = None
    epochs: int | None = None
    lam: float = 0.0
    lam_labeled: float | None = None
    lam_max: float | None = None
    q: float = 2.0
    balance: float = 0.0
    sharpen_val: bool = True
    seed: int = 0
    batching: str | None = None
    model_args: str | Any = None
    prior: str | Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            from sharpen.models.custom import register

            object.__setattr__(self, "model", register(self.model))
        check_model(self.model)
        object.__setattr__(self, "split", getattr(self.split, "name", self.split))
        object.__setattr__(self, "model_args", _canonical(self.model_args))
        object.__setattr__(self, "prior", canonical_prior(self.prior))
        if self.norm is not None:
            check_word("norm", self.norm, NORMS)
        types = {name: kind for name, kind in trial_types().items() if kind in (int, float, bool)}
        given = {name: value for name in types if (value := getattr(self, name)) is not None}
        for name, problem in _numbers_that_cannot_be(given):
            raise InputError(problem, field=name)
        if self.lam_max is not None:
            for name in ("lam", "lam_labeled"):
                if given.get(name):
                    why = f"is {given[name]}, but lam_max is given, so that λ is learned"
                    raise InputError(why, field=name, hint="give one of the two")
        if self.batching is not None:
            object.__setattr__(self, "batching", Batching.parse(self.batching).name)
            if self.lam_max is not None:
                why = f"is {self.batching!r} and lam_max is given, but λ is learned on the whole graph only"
                raise InputError(why, field="batching", hint="give one of the two")
        if self.prior is not None and not self.balance:
            why = f"is {self.prior}, but balance is 0, so that it would do nothing"
            raise InputError(why, field="prior", hint="give a balance, such as 0.25")
        for name, value in given.items():  # 1 and 1.0, 0 and −0, Python's and NumPy's are one description
            kind = types[name]
            object.__setattr__(self, name, kind(value) + 0.0 if kind is float else kind(value))

    def resolve(self, split: str, dataset: str | None = None) -> Trial:
        """This trial with nothing left open: the paper's setting, −λ for the labeled term, and the given default split."""
        dataset = self.dataset or dataset
        takes = model_info(self.model).settings
        published = setting(dataset, self.model).items()
        defaults = {name: value for name, value in published if name in takes or name not in ARCHITECTURE}
        defaults |= {"split": split, "dataset": dataset, "lam_labeled": -self.lam}
        return replace(self, **{k: v for k, v in defaults.items() if getattr(self, k) is None})

    @property
    def arguments(self) -> dict[str, Any]:
        """The model's further arguments, by name.

        >>> Trial(model="appnp", model_args={"hops": 5}).arguments
        {'hops': 5}
        """
        return {} if self.model_args is None else json.loads(self.model_args)

    @cached_property
    def id(self) -> str:
        """A stable hash of the description.

        What is left at ``None`` is no part of it. So a field that a later version adds is ``None`` by default, and ids of records
        and traces stay as they are.

        >>> Trial(lam=0.25).id == Trial(lam=0.25).id != Trial(lam=0.3).id
        True
        """
        return id_of({f.name: getattr(self, f.name) for f in fields(self)})


@cache
def trial_types() -> dict[str, type]:
    """The type of every field of a trial, ``None`` aside.

    >>> trial_types()["seed"], trial_types()["lr"]
    (<class 'int'>, <class 'float'>)
    """
    hints = get_type_hints(Trial)
    return {f.name: (get_args(hints[f.name]) or (hints[f.name],))[0] for f in fields(Trial)}


def id_of(description: Mapping[str, object]) -> str:
    """The id of the trial of this description: of all its fields by name, as a trial or a table of records has them.

    >>> from dataclasses import asdict
    >>> id_of(asdict(Trial(lam=0.25))) == Trial(lam=0.25).id
    True
    """
    text = json.dumps({k: v for k, v in description.items() if v is not None}, sort_keys=True, default=float)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _canonical(given: object) -> str | None:
    """The arguments of a model as one text, whatever the order in which they were given."""
    way_out = "give numbers, words, or lists of them by name, such as {'hops': 5}"
    try:
        names = json.loads(given) if isinstance(given, str) else given
        if not names:
            return None
        if isinstance(names, Mapping) and all(isinstance(name, str) and name.isidentifier() for name in names):
            return json.dumps(dict(names), sort_keys=True, allow_nan=False)
        way_out = "give arguments by name, such as {'hops': 5}"
    except (TypeError, ValueError, RecursionError):
        pass
    raise InputError(f"is {short(given, 200)}", field="model_args", hint=way_out)


@dataclass(frozen=True)
class Record:
    """What one trial gave.

    Args:
        trial: The trial, resolved.
        val, test: Scores at the chosen epoch, as fractions; NaN if the run diverged.
        best_epoch: The first epoch (from 0) with the best validation score; −1 if the run diverged.
        status: ``ok`` or ``diverged``.
        seconds: This trial's share of its population's training time; in a store, of the part that its runner had of the machine,
            where several runners shared it.
        device, precision: What it ran on, and in which arithmetic.
        versions: Of this package and of what it stands on.
        traces: Per epoch: ``loss``, ``cross_entropy``, ``entropy_labeled``, ``entropy_unlabeled`` of the training step; scores
            ``train`` and ``val`` of the evaluation after it; where λ is learned, the ``lam`` of the training step.
        logits: Class scores of all nodes at the chosen epoch, [N, C]; of trials with a batching only if weights were asked for.
        weights: Parameters and running statistics at the chosen epoch, by name, if they were asked for.
        members: How many trials were trained at once, this one among them.
        way: How they were computed: ``fused``, ``vmap, captured``, ``vmap`` or ``loop`` (:mod:`sharpen.training.ways`); and,
            after a colon, why it was no faster one.
        model_digest: Of a model of one's own: a digest of its source.
        metrics: What else is known of the test nodes, by name: :data:`METRICS` at the chosen epoch, :data:`LAST` at the last one.
            NaN if the run diverged, or where there are no nodes to tell from.
    """

    trial: Trial
    val: float
    test: float
    best_epoch: int
    status: str
    seconds: float
    device: str
    precision: str
    versions: dict[str, str] = field(default_factory=dict, repr=False)
    traces: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    logits: np.ndarray | None = field(default=None, repr=False, compare=False)
    weights: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    members: int = field(default=1, repr=False, compare=False)
    way: str = field(default="fused", repr=False, compare=False)
    model_digest: str | None = field(default=None, repr=False, compare=False)
    metrics: dict[str, float] = field(default_factory=dict, repr=False, compare=False)


RESULTS = ("val", "test", "best_epoch", "status", "seconds", "device", "precision", "way", "model_digest")
"""What a table says of a record, its metrics aside."""


def row_of(record: Record, unknown: float | None = None) -> dict[str, Any]:
    """A record as a row of a table: its description, its results and its metrics, some of which may be unknown."""
    row = asdict(record.trial) | {name: getattr(record, name) for name in RESULTS}
    return row | {name: record.metrics.get(name, unknown) for name in (*METRICS, *LAST)}


def to_frame(records: Sequence[Record]) -> pd.DataFrame:
    """A table with one row per trial: its description and what it gave. Where λ is fixed, ``lam_max`` is NaN.

    >>> record = Record(Trial(seed=3), 0.8, 0.7, 12, "ok", 0.5, "cpu", "float32")
    >>> to_frame([record])[["model", "seed", "val", "test"]].values.tolist()
    [['gcn', 3, 0.8, 0.7]]
    """
    import pandas as pd

    rows = [row_of(record, unknown=math.nan) for record in records]
    columns = [f.name for f in fields(Trial)] + [*RESULTS, *METRICS, *LAST]
    # All of them None would be a column of no type at all.
    return pd.DataFrame(rows, columns=columns).astype({"lam_max": float} | dict.fromkeys(_WORDS, "string"))
