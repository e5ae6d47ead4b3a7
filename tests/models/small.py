"""Settings that keep the methods of the field small in tests: fields of a trial, by model."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, dict[str, Any]] = {
    "polynormer": {
        "layers": 2,
        "hidden": 16,
        "model_args": {"heads": 2, "global_layers": 1, "local_epochs": 8, "input_dropout": 0.0},
    },
    "nagphormer": {"layers": 1, "hidden": 16, "model_args": {"heads": 2, "hops": 2, "positions": 2}},
    "graphgps": {"layers": 1, "hidden": 16},
    "exphormer": {"layers": 1, "hidden": 16},
    "ogformer": {"hidden": 16},
    "goat": {"layers": 1, "hidden": 32, "model_args": {"centroids": 16}},
    "nodeformer": {"layers": 1, "hidden": 8, "model_args": {"heads": 2, "random_features": 8, "draws": 2}},
    "m3dphormer": {"layers": 1, "hidden": 16, "model_args": {"heads": 2, "clusters": 8}},
    "bunn": {"layers": 1, "hidden": 16, "model_args": {"bundles": 4, "rounds": 1}},
}
