"""The models there are, by name: one line each, and the only place that knows a model's title, colour, marker and cost.

A model of your own need not be here: it is named by its file or package, ``my_net.py:MyNet`` or ``package.module:MyNet``
(:mod:`sharpen.models.custom`). Nothing in this module imports torch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sharpen.errors import InputError, did_you_mean

_LAYERED = ("layers", "hidden", "dropout")
_WIDE = ("hidden", "dropout")
_PAPER = (*_LAYERED, "norm", "residual", "input_linear")


@dataclass(frozen=True)
class Model:
    """What is known of a model beside its code.

    Args:
        name: What trials, options and files call it.
        title: In tables and figures.
        home: Its module in this folder, and its class there; the methods of the field are in ``zoo``.
        about: What it computes, in a line.
        reference: Where it is from.
        settings: The fields of a trial that describe its architecture; further ones go by ``model_args``.
        cost: The time of a run, a GCN's of the same size being 1.
        maps: How many linear maps a layer has, a residual connection aside.
        gathers: What gathering from neighbours costs beside a plain sum of them; 0 where it does not happen.
        effort: How many times longer an epoch takes than layers, width, maps and gathers tell: from counted operations and bytes
            of the published settings on Cora and PubMed.
        all_pairs: Whether every node attends to every other by itself, which takes time that grows with the square of the nodes.
        color: A name of :mod:`sharpen.report.palette`.
        marker, dash: As matplotlib has them.
        phrase: In a sentence; empty: its title.
        paper: Whether it is one of the paper's.
    """

    name: str
    title: str
    home: str
    about: str
    reference: str
    settings: tuple[str, ...] = _LAYERED
    cost: float = 1.0
    color: str = "ink"
    marker: str = "o"
    dash: str = "solid"
    phrase: str = ""
    paper: bool = False
    maps: int = 1
    gathers: float = 1.0
    effort: float = 1.0
    all_pairs: bool = False

    @property
    def sentence(self) -> str:
        """What to call it in a sentence, with an article where it needs one."""
        return self.phrase or self.title

    @property
    def noun(self) -> str:
        """The same without the article."""
        return self.sentence.removeprefix("an ").removeprefix("a ")

    @property
    def uses_graph(self) -> bool:
        """Whether neighbours count."""
        return self.gathers > 0

    @property
    def of_the_field(self) -> bool:
        """Whether it is one of the methods whose published settings are what a trial takes (:mod:`sharpen.models.zoo`)."""
        return self.home.startswith("zoo.")

    def load(self) -> Any:
        """Its class: a ``torch.nn.Module``, described for one run."""
        module, name = self.home.split(":")
        return getattr(import_module(f"sharpen.models.{module}"), name)


# fmt: off
REGISTRY: dict[str, Model] = {model.name: model for model in (
    Model("mlp", "MLP", "mlp:MLP", "no graph at all", "", _PAPER,
          cost=0.7, color="grey", marker="v", dash="dashdot", phrase="an MLP", paper=True, gathers=0.0),
    Model("gcn", "GCN", "gcn:GCN", "a symmetric mean of the neighbours", "Kipf and Welling, ICLR 2017", _PAPER,
          color="blue", marker="o", dash="solid", phrase="a GCN", paper=True),
    Model("sage", "SAGE", "sage:SAGE", "a mean of the neighbours, beside the node", "Hamilton et al., NeurIPS 2017", _PAPER,
          cost=1.4, color="vermilion", marker="s", dash="dashed", phrase="GraphSAGE", paper=True, maps=2),
    Model("gat", "GAT", "gat:GAT", "a learned mean of the neighbours", "Veličković et al., ICLR 2018", _PAPER,
          cost=2.0, color="green", marker="^", dash="dotted", phrase="a GAT", paper=True, gathers=2.0),
    Model("s2gc", "S²GC", "s2gc:S2GC", "a linear map of features averaged over hops", "Zhu and Koniusz, ICLR 2021", (),
          cost=0.4, color="amber", marker="D", dash="dashed"),
    Model("appnp", "APPNP", "appnp:APPNP", "an MLP, then personalised PageRank", "Gasteiger et al., ICLR 2019",
          color="pink", marker="P", dash="dotted", effort=3.0),
    Model("gprgnn", "GPRGNN", "gprgnn:GPRGNN", "an MLP, then a learned weight for each hop", "Chien et al., ICLR 2021",
          cost=1.2, color="sky", marker="X", dash="dashdot", effort=3.0),
    Model("grand", "GRAND", "grand:GRAND", "whole nodes dropped at random, and predictions that agree", "Feng et al., NeurIPS 2020",
          ("hidden", "dropout"), cost=3.0, color="wine", marker="*", dash="solid", effort=6.0),
    # The methods of the field: their published settings are data, in zoo/settings.
    Model("fsgnn", "FSGNN", "zoo.fsgnn:FSGNN", "features of every hop, each mapped and weighed", "Maurya et al., JOCS 2022", _WIDE,
          cost=1.5, effort=15.0),
    Model("h2gcn", "H2GCN", "zoo.h2gcn:H2GCN", "neighbours one and two steps away, kept apart", "Zhu et al., NeurIPS 2020", _WIDE,
          cost=2.5, effort=6.0),
    Model("gcnii", "GCNII", "zoo.gcnii:GCNII", "a deep GCN with its first layer in sight", "Chen et al., ICML 2020",
          cost=5.0, effort=2.5),
    Model("linkx", "LINKX", "zoo.linkx:LINKX", "adjacency and features, each embedded by itself", "Lim et al., NeurIPS 2021",
          cost=1.2, effort=3.0),
    Model("sgformer", "SGFormer", "zoo.sgformer:SGFormer", "linear attention of all nodes beside a GCN", "Wu et al., NeurIPS 2023",
          cost=2.5, effort=3.5),
    Model("normprop", "NormProp", "zoo.normprop:NormProp", "unit vectors propagated, cosines to classes", "Zhang et al., AAAI 2025",
          _WIDE, effort=5.0),
    Model("cpgnn", "CPGNN", "zoo.cpgnn:CPGNN", "beliefs propagated by a learned compatibility", "Zhu et al., AAAI 2021",
          effort=3.0),
    Model("glognn", "GloGNN", "zoo.glognn:GloGNN", "all nodes gather from all, in closed form", "Li et al., ICML 2022", _WIDE,
          cost=2.0, effort=2.0),
    Model("coed", "CoED", "zoo.coed:CoED", "messages both ways, by an angle on every edge", "Pahng and Hormoz, ICLR 2025",
          cost=3.0, effort=20.0),
    Model("elugcn", "ELU-GCN", "zoo.elugcn:ELUGCN", "a GCN on the graph and on one made from labels", "Huang et al., ICML 2025",
          _WIDE, cost=3.0, effort=90.0),
    Model("polynormer", "Polynormer", "zoo.polynormer:Polynormer", "polynomials of neighbours, then of all nodes, by attention",
          "Deng et al., ICLR 2024", cost=20.0, color="wine", marker="<", dash="dotted", gathers=2.0, maps=3, effort=14.0),
    Model("nagphormer", "NAGphormer", "zoo.nagphormer:NAGphormer", "a transformer over what a node gathers from each distance",
          "Chen et al., ICLR 2023", cost=30.0, color="olive", marker=">", dash="dashdot", maps=6, effort=60.0),
    Model("graphgps", "GraphGPS", "zoo.graphgps:GraphGPS", "message passing beside attention of all nodes to all",
          "Rampášek et al., NeurIPS 2022", cost=55.0, color="vermilion", marker="*", dash="solid", maps=9,
          effort=12.0, all_pairs=True),
    Model("exphormer", "Exphormer", "zoo.exphormer:Exphormer", "message passing beside attention along a random expander",
          "Shirzad et al., ICML 2023", cost=15.0, color="pink", marker="*", dash="dotted", gathers=2.0, maps=8, effort=7.0),
    Model("ogformer", "OGFormer", "zoo.ogformer:OGFormer", "squared correlations as attention, corrected by the graph",
          "Zhang et al., Scientific Reports", ("hidden",), cost=100.0, color="amber", marker="<", dash="solid", maps=2,
          effort=130.0),
    Model("goat", "GOAT", "zoo.goat:GOAT", "attention to neighbours and to a codebook of all nodes",
          "Kong et al., ICML 2023", cost=25.0, color="sky", marker="v", dash="dashed", gathers=2.0, maps=9, effort=14.0),
    Model("nodeformer", "NodeFormer", "zoo.nodeformer:NodeFormer", "linear attention of all nodes to all, with Gumbel noise",
          "Wu et al., NeurIPS 2022", cost=40.0, color="blue", marker="D", dash="dashdot", maps=4, effort=55.0),
    Model("m3dphormer", "M3Dphormer", "zoo.m3dphormer:M3Dphormer", "attention to neighbours, cluster and classes, mixed by gates",
          "Xing et al., NeurIPS 2025", cost=15.0, color="green", marker="s", dash="dashdot", gathers=2.0, maps=9, effort=6.5),
    Model("bunn", "BuNN", "zoo.bunn:BuNN", "diffusion between orthogonal frames of the nodes",
          "Bamberger et al., ICLR 2025", cost=30.0, color="ink", marker="P", dash="dashed", gathers=20.0, maps=4),
)}
# fmt: on

# What a fit may choose beside these; no networks, so no trial has one.
# fmt: off
ESTIMATORS: dict[str, Model] = {model.name: model for model in (
    Model("logistic", "S²GC, logistic regression", "", "logistic regression on features averaged over hops",
          "Zhu and Koniusz, ICLR 2021", (), cost=0.1, color="amber", marker="D", phrase="logistic regression on S²GC features"),
    Model("self-training", "S²GC, self-training", "", "the same, the surest nodes taken for labeled, more and more of them",
          "Li, Han and Wu, AAAI 2018", (), cost=0.8, color="olive", marker="d", phrase="self-training on S²GC features"),
    Model("linear", "linear, neighbours", "", "logistic regression on columns and those of neighbours", "",
          (), cost=0.2, color="sky", marker="p", phrase="a linear model of columns and neighbours"),
    Model("trees", "boosted trees, neighbours", "", "boosted trees on columns and those of neighbours",
          "Ke et al., NeurIPS 2017", (), cost=1.0, color="ink", marker="h", phrase="boosted trees on columns and neighbours"),
)}
# fmt: on

MODELS = tuple(REGISTRY)
PAPER_MODELS = tuple(model.name for model in REGISTRY.values() if model.paper)
MODELS_SHORT = f"{', '.join(PAPER_MODELS)}, another that `sharpen models` lists"
"""The models as a message or a help text names them: they are many."""
CONVOLUTIONS = tuple(name for name in PAPER_MODELS if REGISTRY[name].uses_graph)
_COLORS = ("pink", "amber", "sky", "wine", "olive", "ink")
_MARKERS = ("D", "P", "X", "<", ">", "*")


def is_own(name: str) -> bool:
    """Whether a model is somebody's own, and not known here.

    >>> is_own("my_net.py:MyNet"), is_own("gcn"), is_own("trees")
    (True, False, False)
    """
    return name not in REGISTRY and name not in ESTIMATORS


def model_info(name: str) -> Model:
    """What is known of a model; of one that is not here, what its name says, and a look of its own.

    >>> model_info("gcn").title, model_info("nets/my_net.py:MyNet").title
    ('GCN', 'MyNet')
    """
    if name in REGISTRY or name in ESTIMATORS:
        return REGISTRY.get(name) or ESTIMATORS[name]
    title = name.rsplit(":", 1)[-1].split("@")[0]
    number = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[0]
    look = _COLORS[number % len(_COLORS)], _MARKERS[number % len(_MARKERS)]
    return Model(name, title, "", "a model of your own", "", (), 2.0, *look, "dashed")


def check_model(name: str, where: str | None = None, auto: bool = False) -> str:
    """The name, if it can be one; ``where`` is its place in a file. With ``auto``, for a fit, that and estimators are choices.

    >>> check_model("gnc")
    Traceback (most recent call last):
    sharpen.errors.InputError: model is 'gnc'; did you mean 'gcn'? Choose one of mlp, gcn, sage, gat, another that `sharpen models`
    lists, or your own as my_net.py:MyNet
    """
    known = (*MODELS, *ESTIMATORS) if auto else MODELS
    if name in known or (isinstance(name, str) and ":" in name and all(name.rpartition(":")[::2])):
        return name
    near = did_you_mean(name, known)
    one_of = f"{'auto, or ' * auto}one of {MODELS_SHORT}, or your own as my_net.py:MyNet"
    choice = f"{'Choose' if near else 'choose'} {one_of}"
    raise InputError(f"is {name!r}; {near}{choice}", field="model", place=where)
