"""Predictions with a saved model, for graphs as files hold them: what ``sharpen predict`` and ``sharpen serve`` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from sharpen.errors import InputError
from sharpen.estimator import NodeClassifier
from sharpen.files import Columns, FeatureEncoder, GraphTables, read_nodes_and_edges, to_graph
from sharpen.files.labels import UNKNOWN
from sharpen.fitting.predictions import prediction_frame


@dataclass(frozen=True)
class Predictor:
    """A saved model that knows how its features were made."""

    name: str  # the file as the user named it
    classifier: NodeClassifier = field(repr=False)
    encoder: FeatureEncoder = field(repr=False)
    columns: Mapping[str, str | None]  # what they were called when the model was fitted

    @classmethod
    def load(cls, path: Path | str, device: str = "auto") -> Predictor:
        """Reads a model that ``sharpen fit`` saved."""
        classifier = NodeClassifier.load(path, device=device)
        if "encoder" not in classifier.extra_:
            why = "does not know how to make features from tables"
            raise InputError(why, place=str(path), hint="give a model that sharpen fit has saved")
        saved = classifier.extra_.get("columns")
        if not isinstance(saved, dict) or not all(value is None or isinstance(value, str) for value in saved.values()):
            raise InputError(f"{path}: does not say which columns it was fitted on; it is damaged, so fit again")
        return cls(str(path), classifier, FeatureEncoder.from_json(classifier.extra_["encoder"]), saved)

    @property
    def classes(self) -> list[str]:
        """The names of the classes in order."""
        return [str(name) for name in self.classifier.classes_]

    def meaning(self, named: Mapping[str, str | None] | None = None, *, strict: bool = False) -> Columns:
        """What columns mean: as they are named now, else as when the model was fitted."""
        named = named or {}
        keys = ("id", "label", "source", "target", "weight")
        columns: dict[str, Any] = {key: named.get(key) or self.columns.get(key) for key in keys}
        made_classes = any(name.lower() in UNKNOWN for name in self.classes)  # a word for unknown, by the fit
        return Columns(
            **columns,
            decimal_commas=self.encoder.decimal_commas,
            weight_comma=self.encoder.weight_comma,
            unknown_labels=() if made_classes else None,
            strict=strict,
        )

    def read(
        self,
        nodes: Path | str,
        edges: Path | str | None,
        named: Mapping[str, str | None] | None = None,
        *,
        strict: bool = False,
    ) -> GraphTables:
        """The tables of a graph to predict, which need not have labels."""
        columns = self.meaning(named, strict=strict)
        if not (named or {}).get("label") and columns.label is not None:
            try:
                return self._checked(read_nodes_and_edges(nodes, edges, columns))
            except InputError:  # most likely there is no such column; anything else is said again below
                columns = replace(columns, label="")  # none, and none guessed: a feature must not be taken for it
        return self._checked(read_nodes_and_edges(nodes, edges, columns))

    def _checked(self, tables: GraphTables) -> GraphTables:
        """Refuses to do without edges what was learnt with them, unless that is said."""
        count = self.classifier.extra_.get("edges")
        if type(count) is not int or count < 0:
            why = "does not say how many edges it was fitted with"
            raise InputError(why, place=self.name, hint="it is damaged, so fit again")
        if count and not tables.edges_given:
            why = f"was fitted with {count} edge{'s' * (count != 1)}, but none are given"
            way_out = f"give the edges file after {tables.name}, one with a header only if there are none"
            raise InputError(why, place=self.name, hint=way_out)
        return tables

    def predict(
        self, tables: GraphTables, notes: list[str], *, abstain: float | None = None, every_class: bool = False
    ) -> pd.DataFrame:
        """A row for each node, as :func:`sharpen.fitting.predictions.prediction_frame` makes it."""
        classifier, encoder = self.classifier, self.encoder
        graph = to_graph(tables, encoder.transform(tables, notes), self.classes, unit=encoder.unit, notes=notes)
        if graph.edge_weight is not None and encoder.unit is not None:
            notes.append(f"edge weights are divided by {encoder.unit:g}, their mean when the model was fitted")
        labeled = graph.y.numpy() >= 0
        known = [None if c < 0 else classifier.classes_[c] for c in graph.y.tolist()] if labeled.any() else None
        if classifier.lacks_labels(graph, known):
            notes.append(
                "no label of this graph is known: what would be spread is left out, and the rest of the model decides; "
                "to use labels, give them in a column"
            )
        p = classifier.predict_proba(graph, known)
        return prediction_frame(tables.ids, p, self.classes, labeled, abstain=abstain, every_class=every_class)
