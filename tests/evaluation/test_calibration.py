"""Calibration against independent formulas: sklearn, torch, and sums written out by hand."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn import metrics

from sharpen.errors import InputError
from sharpen.evaluation.calibration import (
    brier,
    coverage_curve,
    ece,
    fit_pool,
    fit_temperature,
    log_loss,
    reliability,
    temperature_for_confidence,
)


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overconfident logits of 400 nodes, their probabilities, and classes drawn at half that sharpness."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 4)) * 4
    p = softmax(logits / 2, axis=1)
    y = np.array([rng.choice(4, p=row) for row in p])
    return logits, softmax(logits, axis=1), y


def test_log_loss_is_sklearns(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, p, y = sample
    assert log_loss(p, y) == pytest.approx(metrics.log_loss(y, p, labels=range(4)), rel=1e-12)


def test_log_loss_of_a_certain_mistake_is_finite() -> None:
    assert 700 < log_loss([[1.0, 0.0]], [1]) < 710


def test_brier_of_two_classes_is_twice_sklearns_binary_one(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, p, y = sample
    two = np.stack([1 - p[:, 0], p[:, 0]], 1)
    assert brier(two, (y == 0).astype(int)) == pytest.approx(2 * metrics.brier_score_loss(y == 0, p[:, 0]))


def test_brier_is_the_sum_over_classes_of_sklearns(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, p, y = sample
    assert brier(p, y) == pytest.approx(sum(metrics.brier_score_loss(y == c, p[:, c]) for c in range(4)))


def test_ece_of_a_table_worked_out_by_hand() -> None:
    # Bins of a tenth: {0.95 right, 0.93 wrong} and {0.65 right}: 2/3 * |0.5 - 0.94| + 1/3 * |1 - 0.65|
    p = [[0.95, 0.05], [0.93, 0.07], [0.35, 0.65]]
    assert ece(p, [0, 1, 1], bins=10) == pytest.approx(2 / 3 * 0.44 + 1 / 3 * 0.35)


def test_ece_matches_torchmetrics(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    functional = pytest.importorskip("torchmetrics.functional.classification", reason="torchmetrics is not installed")
    _, p, y = sample
    theirs = functional.multiclass_calibration_error(torch.from_numpy(p), torch.from_numpy(y), 4, n_bins=15)
    assert ece(p, y) == pytest.approx(float(theirs), abs=1e-6)


def test_a_bin_is_open_below_and_closed_above() -> None:
    table = reliability([[0.5, 0.5], [0.51, 0.49], [1.0, 0.0]], [0, 0, 0], bins=2)
    assert table.nodes.tolist() == [1, 2]
    assert table.confidence[0] == 0.5


def test_the_bins_hold_every_node_once(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, p, y = sample
    table = reliability(p, y, bins=7)
    used = table.nodes > 0
    assert table.nodes.sum() == 400
    assert (table.nodes[used] * table.accuracy[used]).sum() == pytest.approx((p.argmax(1) == y).sum())
    assert np.isnan(table.accuracy[~used]).all()


def test_the_temperature_is_the_one_that_torch_finds(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    logits, _, y = sample
    log_t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_t], max_iter=200, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(torch.from_numpy(logits) / log_t.exp(), torch.from_numpy(y))
        loss.backward()
        return loss

    optimizer.step(closure)
    assert fit_temperature(logits, y) == pytest.approx(log_t.exp().item(), rel=1e-4)
    assert 1.6 < fit_temperature(logits, y) < 2.5  # the classes were drawn at 2


def test_scaling_lowers_log_loss_and_ece_and_keeps_predictions(
    sample: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    logits, p, y = sample
    scaled = softmax(logits / fit_temperature(logits, y), axis=1)
    assert log_loss(scaled, y) < log_loss(p, y) - 0.1
    assert ece(scaled, y) < ece(p, y) - 0.05
    assert (scaled.argmax(1) == p.argmax(1)).all()


def test_a_perfect_model_gets_a_finite_temperature() -> None:
    assert 0.05 <= fit_temperature(np.eye(3) * 5, [0, 1, 2]) < 0.2


def test_a_flat_mean_gets_the_confidence_that_it_is_to_have(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, p, _ = sample
    t = temperature_for_confidence(p, 0.6)
    assert softmax(np.log(p) / t, axis=1).max(1).mean() == pytest.approx(0.6, abs=1e-9)
    assert t > 1
    assert temperature_for_confidence(p, 1.0) == 0.05
    assert temperature_for_confidence(p, 0.1) == 20


def test_smoothing_keeps_a_perfect_model_from_certainty() -> None:
    logits = np.eye(3)[[0, 1, 2, 0]] * 5
    t = fit_temperature(logits, [0, 1, 2, 0], smoothing=1 / 6)
    assert softmax(logits / t, axis=1).max(1) == pytest.approx(5 / 6, abs=1e-4)


def test_accuracy_rises_with_the_threshold_on_calibrated_probabilities(
    sample: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    _, p, y = sample
    curve = coverage_curve(p, y, [0.0, 0.6, 0.9])
    sure = p.max(1) >= 0.9
    assert curve.coverage.tolist() == [1, (p.max(1) >= 0.6).mean(), sure.mean()]
    assert curve.accuracy[2] == (p.argmax(1) == y)[sure].mean()
    assert curve.accuracy[2] > curve.accuracy[0]


def test_nobody_answered_is_not_a_number_and_no_warning() -> None:
    assert np.isnan(coverage_curve([[0.6, 0.4]], [0], [0.9]).accuracy[0])


@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        ([[0.5, 0.5]], [2], "classes from 0 to 1"),
        ([[0.5, 0.5]], [-1], "unknown class"),
        ([[0.5, 0.6]], [0], "sum to 1"),
        ([[0.5, 0.5]], [0, 1], "shape"),
        ([[2.0, -1.0]], [0], "sum to 1"),
    ],
)
def test_what_is_no_probability_is_named(p: list[list[float]], y: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        brier(p, y)


def test_a_pool_of_one_is_a_temperature() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    logits = rng.normal(size=(60, 3)) + 2 * np.eye(3)[y]
    assert fit_pool([logits], y, 0.02)[0] == pytest.approx(1 / fit_temperature(logits, y, 0.02), rel=1e-3)


def test_a_pool_is_the_best_on_a_grid() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 80)
    opinions = np.stack([rng.normal(size=(80, 3)) + strength * np.eye(3)[y] for strength in (1.5, 0.7)])
    found = fit_pool(opinions, y)

    def loss(weights: np.ndarray) -> float:
        return float(metrics.log_loss(y, softmax(np.tensordot(weights, opinions, 1), axis=1)))

    grid = [np.array([a, b]) for a in np.linspace(0, 3, 31) for b in np.linspace(0, 3, 31)]
    assert loss(found) <= min(loss(weights) for weights in grid) + 1e-9
    with pytest.raises(InputError, match=r"give .K, N, C. and .N."):
        fit_pool(opinions[0], y)
