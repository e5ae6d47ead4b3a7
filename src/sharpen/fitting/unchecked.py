"""A fit with so few labels that none can be held out: a fixed choice, and no promise.

With one or two labels in a class nothing can be compared by labels. What is used is self-training on features averaged over hops,
which was best at one label per class on the graphs tried, or the model that was asked for, without sharpening. Its probabilities
are made as sure, in the mean, as its answers agree with those of the same model before it taught itself: an estimate of how often
it is right, and no more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sharpen.errors import InputError
from sharpen.evaluation.calibration import temperature_for_confidence
from sharpen.fitting.backbone import Backbone
from sharpen.fitting.candidates import Candidate
from sharpen.fitting.ensemble import Ensemble, Part
from sharpen.fitting.fitted import Fitted
from sharpen.fitting.folds import all_labels, unchecked_classes
from sharpen.fitting.identity import identify
from sharpen.fitting.report import FitReport, size_of
from sharpen.fitting.runs import Run
from sharpen.graph import Graph


def settle(
    graph: Graph,
    backbone: Backbone,
    candidates: Sequence[Candidate],
    *,
    automatic: bool,
    metric: str,
    seed: int,
    settings: Mapping[str, Any],
    notes: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Fitted:
    """Trains what is best at so few labels on all of them.

    Args:
        graph: With labels of at least two classes.
        backbone: What trains.
        candidates: What was asked for.
        automatic: Whether models are chosen automatically.
        metric, seed, settings, notes, columns: As for :func:`sharpen.fitting.fitted.conclude`.
    """
    y = graph.y.numpy()
    plain = [candidate for candidate in candidates if not candidate.sharpens]
    chosen = Candidate("self-training") if automatic else (plain or list(candidates))[0]
    first, run = (
        backbone.train(graph, [Run(candidate, all_labels(y), 1000 * seed)])[0]
        for candidate in (Candidate("logistic"), chosen)
    )
    if not run.ok:
        raise InputError(f"{chosen.name} diverged; lower lr, or scale the features")
    part = Part(chosen, 1.0, [1.0], [run.weights])
    unlabeled = np.flatnonzero(y < 0)
    said = [
        Ensemble([own], 1.0).probabilities(graph, y, graph.num_classes, backbone)
        for own in (part, Part(first.candidate, 1.0, [1.0], [first.weights]))
    ]
    nodes = unlabeled if len(unlabeled) else np.arange(graph.num_nodes)
    agree = float((said[0][nodes].argmax(1) == said[1][nodes].argmax(1)).mean())
    used = Ensemble([part], temperature_for_confidence(said[0][nodes], agree))
    predicted = np.bincount(said[0][unlabeled].argmax(1), minlength=graph.num_classes)
    count = np.bincount(y[y >= 0], minlength=graph.num_classes).tolist()
    entry = asdict(chosen) | {"name": chosen.name, "score": None, "members": 1, "share": 1.0}
    report = FitReport(
        chosen=[entry],
        guessing={},
        predicted=dict(zip(graph.class_names, predicted.tolist(), strict=True)),
        verdicts=[],
        expected={
            "nodes": 0,
            "accuracy": None,
            "accuracy_interval": [0.0, 1.0],
            "balanced_accuracy": None,
            "balanced_accuracy_interval": [0.0, 1.0],
        },
        baselines={},
        coverage=[],
        surest={},
        candidates=[entry | {"diverged": 0}],
        labels=dict(zip(graph.class_names, count, strict=True)),
        unchecked=unchecked_classes(count, graph.class_names),
        runs=2,
        rounds=0,
        seconds=0.0,
        metric=metric,
        settings=dict(settings),
        seed=seed,
        notes=[
            *notes,
            *backbone.notes,
            f"probabilities are made as sure as two models agree, on {100 * agree:.0f} % of the nodes; no label says whether "
            "that is true",
        ],
        temperature=used.temperature,
        isolated=None,
        graph=size_of(graph),
        columns=list(columns),
    ).to_dict()
    known, name = (y, identify(graph)) if used.uses_labels else (np.empty(0, dtype=np.int64), "")
    without = used if used.uses_labels else None
    curves = {"chosen": [run.traces] if run.traces else []}
    return Fitted(
        used, without, known, name, graph.num_features, graph.num_classes, report, dict(backbone.cuts), curves
    )
