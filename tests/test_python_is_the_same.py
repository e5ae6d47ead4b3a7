"""A fit from Python: DataFrames as files, the report, the page, the notebook, and scikit-learn's own tools."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin, get_type_hints, is_typeddict

import networkx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from sharpen import Frames, InputError, NodeClassifier, NodeIndexClassifier
from sharpen.files import Columns
from sharpen.fitting.calibrated import Point
from sharpen.fitting.report import Answer, Chosen, Expected, Guessing, Isolated, Report, Size, Surest, Tried
from tests.cli.test_files_as_they_are import CLUB, people
from tests.cli.test_fit import run

SMALL = {"model": ["gcn", "mlp"], "lam": 0.25, "balance": 0.0, "hidden": 8, "epochs": 20, "device": "cpu"}
OPTIONS = (
    "--model",
    "gcn,mlp",
    "--lam",
    "0.25",
    "--balance",
    "0",
    "--hidden",
    "8",
    "--epochs",
    "20",
    "--device",
    "cpu",
)
TRUTH = np.array([CLUB.nodes[node]["club"] for node in CLUB])


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    days = pd.Timestamp("2019-03-30") + pd.to_timedelta(np.arange(34), unit="D")
    nodes = people().assign(
        joined=days, belt=pd.Categorical(["white", "black"] * 17), about=["a small text"] * 17 + ["other"] * 17
    )
    nodes["label"] = nodes["label"].replace("", None)
    edges = pd.DataFrame(
        [(f"m{a}", f"m{b}", 1.0 + (a + b) % 3) for a, b in CLUB.edges], columns=["source", "target", "weight"]
    )
    return nodes, edges


@pytest.fixture(scope="module")
def fitted() -> NodeClassifier:
    return NodeClassifier(**SMALL).fit(frames())


def test_dataframes_give_what_the_same_files_give(fitted: NodeClassifier, tmp_path: Path) -> None:
    nodes, edges = frames()
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    run("fit", tmp_path / "nodes.parquet", tmp_path / "edges.parquet", *OPTIONS, "--no-page", "--out", tmp_path / "out")
    files = pd.read_csv(tmp_path / "out" / "predictions.csv")
    p = fitted.predict_proba(frames())
    assert p.max(1) == pytest.approx(files["probability"].to_numpy(), abs=1e-6)
    assert fitted.predict(frames()).tolist() == files["label"].tolist()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["expectation"] == fitted.report_["expectation"]
    assert set(fitted.report_) <= set(summary)
    assert set(summary) - set(fitted.report_) == {
        "abstain",
        "predictions",
        "reasons",
        "suggestions",
        "total_seconds",
        "command",
    }
    assert "joined: date, as days" in " ".join(fitted.report_["columns"])


def test_the_label_may_be_named_or_given_as_the_series_of_its_column() -> None:
    nodes, edges = frames()
    nodes = nodes.rename(columns={"label": "side"})
    named = NodeClassifier(**SMALL).fit((nodes, edges), "side")
    series = NodeClassifier(**SMALL).fit((nodes, edges), nodes["side"])
    asked = NodeClassifier(**SMALL).fit(Frames(nodes, edges, Columns(label="side")))
    for classifier in (named, series, asked):
        assert classifier.n_features_in_ == named.n_features_in_
        assert classifier.predict((nodes, edges)).tolist() == named.predict((nodes, edges)).tolist()


def test_an_index_of_ids_is_the_column_of_ids() -> None:
    nodes, edges = frames()
    assert Frames(nodes.set_index("id"), edges).tables().edge_index.shape == (2, 78)


def test_what_is_wrong_with_frames_is_told_at_once() -> None:
    nodes, edges = frames()
    nodes.loc[3, "id"] = "m2"
    edges.loc[0, "weight"] = -1.0
    with pytest.raises(InputError) as caught:
        NodeClassifier(**SMALL).fit((nodes, edges))
    assert "2 problems" in str(caught.value)


def test_a_saved_model_of_frames_predicts_frames(fitted: NodeClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.safetensors")
    again = NodeClassifier.load(tmp_path / "model.safetensors")
    assert np.allclose(again.predict_proba(frames()), fitted.predict_proba(frames()))
    with pytest.raises(InputError, match="there is no graph to show"):
        again.page(tmp_path / "page.html")


def test_the_report_is_what_its_types_say(fitted: NodeClassifier) -> None:
    report: Report = fitted.report_
    parts = {
        Report: report,
        Expected: report["expected"],
        Guessing: report["guessing"],
        Answer: report["verdicts"][0],
        Surest: report["surest"],
        Chosen: report["chosen"][0],
        Tried: report["candidates"][0],
        Isolated: report["isolated"],
        Point: report["coverage"][0],
        Size: report["graph"],
    }
    for kind, part in parts.items():
        hints = get_type_hints(kind)
        assert part is not None
        assert set(part) == set(hints), kind.__name__
        for key, hint in hints.items():
            kinds = tuple(
                get_origin(one) or one for one in (get_args(hint) if isinstance(hint, UnionType) else (hint,))
            )
            assert is_typeddict(kinds[0]) or isinstance(
                part[key], (*kinds, *[int] * (float in kinds), *[tuple] * (list in kinds))
            )


def test_the_page_and_the_notebook_say_what_the_report_says(fitted: NodeClassifier, tmp_path: Path) -> None:
    fitted.page(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "How good is it beside guessing?" in text
    assert "m33" in text
    shown = fitted._repr_html_()
    assert fitted.report_["expectation"].split("(")[0] in shown
    assert "without the graph" in shown
    assert "<" in NodeClassifier()._repr_html_()  # scikit-learn's own drawing, before there is something to tell


def test_a_pickle_does_not_hold_the_graph(fitted: NodeClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert not hasattr(again, "_graph")
    assert np.allclose(again.predict_proba(frames()), fitted.predict_proba(frames()))


def by_index(**more: object) -> NodeIndexClassifier:
    graph = (np.eye(34), networkx.to_scipy_sparse_array(CLUB))
    return NodeIndexClassifier(graph, NodeClassifier(**{**SMALL, "model": "gcn", **more}))


def test_cross_validation_scores_labels_that_were_held_out() -> None:
    scores = cross_val_score(by_index(), np.arange(34), TRUTH, cv=StratifiedKFold(3, shuffle=True, random_state=0))
    assert scores.shape == (3,)
    assert scores.mean() > 0.75


def test_a_grid_over_the_parameters_of_the_classifier() -> None:
    grid = GridSearchCV(by_index(), {"classifier__hidden": [4, 8]}, cv=2).fit(np.arange(34)[:, None], TRUTH)
    assert grid.best_params_["classifier__hidden"] in (4, 8)
    assert grid.best_estimator_.graph is not None
    assert grid.predict_proba([[0], [33]]).shape == (2, 2)


def test_the_graph_of_node_indices_may_be_dataframes() -> None:
    nodes, edges = frames()
    hidden = np.arange(34) % 3 == 0
    estimator = NodeIndexClassifier((nodes, edges), NodeClassifier(**SMALL))
    found = cross_val_score(estimator, np.arange(34), TRUTH, cv=2, error_score="raise")
    assert found.mean() > 0.7
    estimator.fit(
        np.flatnonzero(~hidden), TRUTH[~hidden]
    )  # the column of labels, which is recognised, is not looked at
    without = NodeIndexClassifier((nodes.drop(columns="label"), edges), NodeClassifier(**SMALL))
    without.fit(np.flatnonzero(~hidden), TRUTH[~hidden])
    assert estimator.predict_proba(np.arange(34)) == pytest.approx(without.predict_proba(np.arange(34)))


def test_a_pipeline_hands_indices_on() -> None:
    pipeline = Pipeline([("same", FunctionTransformer()), ("nodes", by_index())])
    assert pipeline.fit(np.arange(20)[:, None], TRUTH[:20]).predict(np.arange(34)[:, None]).shape == (34,)


def test_a_clone_shares_the_graph() -> None:
    one = by_index()
    assert clone(one).graph is one.graph
    assert clone(one).classifier is not one.classifier


@pytest.mark.parametrize(
    ("nodes", "says"),
    [([0, 99], "holds node 99"), ([[0, 1]], "give node indices"), (["a"], "whole numbers"), ([0.5], "whole numbers")],
)
def test_what_is_no_node_is_named(nodes: list[object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        by_index().fit(nodes, ["x"] * len(nodes))


# These bring features of their own as X, where this classifier takes the indices of the nodes of its graph.
NOT_INDICES = {
    "check_classifier_data_not_an_array", "check_classifiers_classes", "check_classifiers_one_label",
    "check_classifiers_regression_target", "check_classifiers_train", "check_complex_data", "check_dict_unchanged",
    "check_dont_overwrite_parameters", "check_dtype_object", "check_estimator_sparse_array", "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag", "check_estimators_dtypes", "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self", "check_estimators_nan_inf", "check_estimators_overwrite_params",
    "check_estimators_pickle", "check_f_contiguous_array_estimator", "check_fit2d_1feature", "check_fit2d_1sample",
    "check_fit2d_predict1d", "check_fit_check_is_fitted", "check_fit_idempotent", "check_fit_score_takes_y",
    "check_methods_sample_order_invariance", "check_methods_subset_invariance", "check_n_features_in",
    "check_n_features_in_after_fitting", "check_pipeline_consistency", "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input", "check_requires_y_none", "check_supervised_y_2d",
}  # fmt: skip


def test_scikit_learns_checks_pass_where_they_apply() -> None:
    results = check_estimator(by_index(), on_skip=None, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= NOT_INDICES
    assert sum(result["status"] == "passed" for result in results) >= 16
