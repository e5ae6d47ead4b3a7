"""Figures are drawn from part of the records: labelled, with data in every panel, the same bytes every time."""

import builtins
import itertools
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest

from sharpen.analysis.curves import Curve, Point, lambda_curves
from sharpen.analysis.dynamics import Dynamics, Trajectories, dynamics
from sharpen.analysis.outcome import Outcome, outcome
from sharpen.analysis.ranking import rankings
from sharpen.analysis.steps import offset_steps, retune_steps
from sharpen.errors import InputError
from sharpen.evaluation import paired_difference
from sharpen.report.blocks import Charts
from sharpen.report.figures import draw, save_figure
from sharpen.report.lambda_charts import curve_charts, glass_charts, improvement_charts
from sharpen.report.study_charts import (
    difference_charts,
    entropy_charts,
    offset_charts,
    ranking_charts,
    retune_charts,
)
from sharpen.studies import load_study
from tests.studies.fake import records, traces

pytest.importorskip("matplotlib", reason="figures need matplotlib")


@pytest.fixture(scope="module")
def drawn(told) -> dict:
    curves = lambda_curves(told("lambda-curves"))
    frame = records(load_study("entropy-dynamics"), "paper", datasets=["cora", "citeseer"])
    return {
        "panels": draw(curve_charts(curves)),
        "glass": draw(glass_charts(curves)),
        "improvements": draw(improvement_charts(curves)),
        "forest": forest(told("universal")),
        "entropy": draw(entropy_charts(dynamics(told("entropy-dynamics"), traces(frame)))),
        "ranking": draw(ranking_charts(rankings(load_study("comparison"), told("main")))),
        "offsets": draw(offset_charts(offset_steps(told("offset")))),
        "retuning": draw(retune_charts(retune_steps(told("retune")))),
    }


NAMES = ("panels", "glass", "improvements", "forest", "entropy", "ranking", "offsets", "retuning")


def forest(outcome: Outcome):
    """The differences of the first comparison."""
    return draw(difference_charts(outcome, outcome.study.compare))


def words_below(figure) -> str:
    return " ".join(figure.get_supxlabel().split())


def visible(figure) -> list:
    return [axes for axes in figure.axes if axes.axison]


def test_panels_are_labeled_where_their_row_begins_and_their_column_ends():
    points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, (lam - 0.5, lam + 0.5), lam) for lam in (0.0, 0.5, 1.0))
    cells = [("cora", "sage"), ("cora", "gcn"), ("photo", "gcn"), ("photo", "gat"), ("cs", "sage"), ("cs", "gat")]
    axes = draw(curve_charts([Curve(*cell, "accuracy", points, 5) for cell in cells])).axes
    titled = {a.get_title(loc="left"): a for a in axes}
    under = {title for title, a in titled.items() if a.get_xlabel() == "λ" and a.get_xticklabels()[0].get_visible()}
    assert under == {"CS SAGE", "Photo GCN", "CS GAT"}
    assert {title for title, a in titled.items() if a.get_ylabel()} == {"Cora SAGE", "Photo GCN", "CS SAGE"}


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_has_data(name, drawn):
    assert visible(drawn[name])
    for axes in visible(drawn[name]):
        assert axes.has_data()


@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_too_small_or_cut_off(name, drawn):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    figure = drawn[name]
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box, (width, height) = figure.get_tightbbox(canvas.get_renderer()), figure.get_size_inches()  # of all that is drawn
    assert box.x0 > -0.02
    assert box.y0 > -0.02
    assert box.x1 < width + 0.02
    assert box.y1 < height + 0.02
    for text in figure.findobj(Text):
        assert not text.get_text().strip() or text.get_fontsize() >= 7
    for axes in visible(figure):
        labels = [label.get_window_extent() for label in axes.get_yticklabels() if label.get_text()]
        inside = sorted(
            (b for b in labels if axes.bbox.y0 - 1 < (b.y0 + b.y1) / 2 < axes.bbox.y1 + 1), key=lambda b: b.y0
        )
        for below, above in itertools.pairwise(inside):
            assert above.y0 >= below.y1 - 1, f"labels overlap in {axes.get_title()}"


def test_a_figure_is_saved_as_picture_and_as_text(drawn, tmp_path: Path):
    save_figure(drawn["glass"], tmp_path / "glass.png")
    save_figure(drawn["glass"], tmp_path / "glass.svg")
    assert (tmp_path / "glass.png").read_bytes().startswith(b"\x89PNG")
    root = xml.etree.ElementTree.parse(tmp_path / "glass.svg").getroot()
    assert "Glass's Δ of the test score" in "".join(root.itertext())


def test_the_axes_say_what_they_are(drawn):
    assert drawn["glass"].axes[0].get_xlabel() == "λ"
    assert "Glass's Δ" in drawn["glass"].axes[0].get_ylabel()
    assert "percentage points" in drawn["forest"].axes[0].get_xlabel()
    assert drawn["panels"].axes[0].get_ylabel() == "test accuracy (%)"
    assert drawn["entropy"].axes[-1].get_xlabel() == "epoch"
    assert drawn["offsets"].axes[0].get_ylabel() == "gain (points)"


def test_a_forest_shows_every_cell_with_pairs_and_the_paper(drawn, told):
    shown = [effect for _, effect in told("universal").effects("ts-0.25 - baseline") if effect.difference]
    axes = drawn["forest"].axes[0]
    points = {round(float(line.get_xdata()[0]), 6) for line in axes.lines if len(line.get_xdata()) == 1}
    for effect in shown:
        assert round(effect.difference.difference, 6) in points
        assert round(effect.published, 6) in points
    partly = [text.get_text() for text in axes.texts if "of" in text.get_text()]
    assert [text.split("n = ")[1] for text in partly] == ["5 of 10"] * 2  # Squirrel
    assert "Dotted: 2 cells of which only part was run." in words_below(drawn["forest"])
    spans = [line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_xdata()[0] != line.get_xdata()[1]]
    assert sum(line.get_linestyle() == ":" for line in spans) == 2


def test_the_papers_difference_is_not_hidden_by_ours(drawn):
    axes = drawn["forest"].axes[0]
    heights = {marker: {line.get_ydata()[0] for line in axes.lines if line.get_marker() == marker} for marker in "do^"}
    assert heights["d"]
    assert not heights["d"] & (heights["o"] | heights["^"])


def test_a_choice_that_changes_nothing_is_said_to_beside_its_row():
    study = load_study("main")
    few = {"datasets": ["cora"], "models": ["gcn", "gat"]}
    frame = records(study, "paper", lambda t: (30 if t.model == "gat" else -30) * t.lam, **few)
    told = {
        text.get_text().split()[0]: text.get_text()
        for text in forest(outcome(study, "paper", frame, **few)).axes[0].texts
    }
    assert told["GCN"].endswith("λ = 0 chosen")
    assert told["GAT"].endswith("n = 5")


def test_a_panel_has_room_for_a_band_of_usual_width():
    """Noise within the band must not fill the panel and look like structure."""
    lams = [0.05 * i for i in range(41)]
    points = tuple(
        Point(lam, 80 + 0.1 * (i % 2) * (i > 0), 1.0, 5, 0.1 * (i % 2), (-2.0, 2.0) if i else None, 0.0)
        for i, lam in enumerate(lams)
    )
    low, high = draw(curve_charts([Curve("cora", "gcn", "accuracy", points, 5)])).axes[0].get_ylim()
    assert low <= 78
    assert high >= 82
    wide = (*points[:20], Point(lams[20], 80.0, 1.0, 5, 0.0, (-6.0, 6.0), 0.0), *points[21:])
    low, high = draw(curve_charts([Curve("cora", "gcn", "accuracy", wide, 5, chosen=lams[20])])).axes[0].get_ylim()
    assert low <= 74 < 86 <= high


def test_every_model_has_a_panel_of_its_own_on_one_scale(drawn):
    axes = drawn["glass"].axes
    assert [a.get_title(loc="left") for a in axes] == ["GCN (2 datasets)", "GAT (2 datasets)"]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    low, high = axes[0].get_ylim()
    for a in axes:
        ends = [value for line in a.lines for value in line.get_ydata() if len(line.get_ydata()) > 2]
        assert low < min(ends) <= max(ends) < high


def test_few_gains_are_points_whiskers_stay_on_the_axes_and_ties_are_explained():
    glasses = [[40.0, 0.0], [1.0, -0.5], [2.0, -90.0], [3.0, -1.0], [0.5, -2.0], [1.5, -3.0], [0.7, -70.0]]
    curves = [
        Curve(
            f"d{i}",
            "gcn",
            "accuracy",
            tuple(Point(lam, 80.0, 1.0, 5, g, None, g) for lam, g in zip((0, 0.5, 1), (0.0, *own), strict=True)),
            5,
        )
        for i, own in enumerate(glasses)
    ]
    figure = draw(improvement_charts(curves[:4]))
    assert not figure.axes[1].patches  # four gains are no box
    points = sorted(v for line in figure.axes[1].lines if line.get_marker() == "o" for v in line.get_ydata())
    assert points == sorted(g for own in glasses[:4] for g in own if g)
    assert "cells with exactly the score of λ = 0, at most 1 at a λ" in words_below(figure)
    figure = draw(improvement_charts(curves))
    assert len(figure.axes[1].patches) == 2
    low, high = figure.axes[1].get_ylim()
    whiskers = [v for line in figure.axes[1].lines for v in line.get_ydata()]
    assert low < min(whiskers) <= max(whiskers) < high


def test_lambdas_that_were_not_run_are_named_below():
    points = tuple(Point(lam, 80 + lam, 1.0, 5, lam, None, lam) for lam in (0.0, 0.5, 1.0))
    for charts in (curve_charts, glass_charts, improvement_charts):
        figure = draw(charts([Curve("cora", "gcn", "accuracy", points, 5)], "λ = 2 not run yet"))
        assert words_below(figure).endswith("Missing: λ = 2 not run yet.")


def test_datasets_with_every_lambda_are_a_dashed_line_of_their_own():
    def curve(dataset: str, *lams: float) -> Curve:
        return Curve(dataset, "gcn", "accuracy", tuple(Point(lam, 80, 1.0, 5, lam, None, lam) for lam in lams), 5)

    whole = [curve(name, -1.0, -0.5, 0.0, 0.5) for name in ("cora", "citeseer", "pubmed")]
    figure = draw(glass_charts([*whole, curve("cs", 0.0, 0.5)]))
    (dashed,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert list(dashed.get_xdata()) == [-1, -0.5, 0, 0.5]
    assert "Dashed and pale: the datasets with every λ, 3 (GCN)." in words_below(figure)
    assert "Dashed" not in words_below(draw(glass_charts(whole)))


def test_one_run_that_collapses_does_not_move_the_line():
    fine, collapsed = np.full((4, 9), 0.1), np.full((1, 9), 0.9)
    runs = Trajectories("baseline", np.concatenate([fine, collapsed]), np.full((5, 9), 0.2))
    cell = Dynamics("cora", "gcn", "gini", runs, runs, paired_difference([0.1, 0.2], [0.1, 0.1]), above=0.5)
    labeled, unlabeled, gap = draw(entropy_charts([cell])).axes
    (thick, *_) = [line for line in labeled.lines if line.get_label() == "baseline"]
    assert set(thick.get_ydata()) == {0.1}
    assert max(max(line.get_ydata()) for line in labeled.lines) == 0.9  # and is seen all the same
    assert labeled.get_ylim() == unlabeled.get_ylim()
    assert labeled.get_ylim()[0] == 0
    assert all(axes.get_ylabel() for axes in (labeled, gap))


def test_a_dataset_without_a_panel_is_named_with_its_reason(drawn):
    text = words_below(drawn["ranking"])
    assert "Left out (data not at hand): WikiCS, Amazon-Ratings, Roman-Empire." in text


def test_an_interval_that_leaves_the_axes_ends_in_an_arrow():
    study = load_study("universal")
    wild = lambda t: 30 * (t.seed % 2) * t.lam if t.dataset == "photo" else 0.0  # noqa: E731
    axes = forest(outcome(study, "paper", records(study, "paper", wild, models=["gcn"]), models=["gcn"])).axes[0]
    left, right = axes.get_xlim()
    arrows = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if line.get_marker() in "<>"}
    assert arrows == {"<": left, ">": right}


@pytest.mark.parametrize(
    ("charts", "nothing"),
    [
        (curve_charts, []),
        (glass_charts, []),
        (improvement_charts, []),
        (entropy_charts, []),
        (ranking_charts, []),
        (offset_charts, {}),
        (retune_charts, {}),
    ],
)
def test_nothing_to_draw_is_said(charts, nothing):
    with pytest.raises(InputError, match="yet"):
        draw(charts(nothing))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"graph-sharpen\[figures\]"):
        draw(Charts("Nothing", {}))
