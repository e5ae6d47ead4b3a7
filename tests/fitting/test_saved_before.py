"""Models that the version before has written are read, and predict what they did then."""

from pathlib import Path

import numpy as np
import pytest

from sharpen import NodeClassifier
from tests.fitting.camps import two_camps
from tests.test_estimator import two_rings

SAVED = Path(__file__).parent / "saved"


def test_models_of_the_format_before_predict_the_same(tmp_path: Path) -> None:
    wanted = np.load(SAVED / "before.npz")
    camps, rings = (NodeClassifier.load(SAVED / f"before_{name}.safetensors") for name in ("camps", "rings"))
    assert camps.predict_proba(two_camps()) == pytest.approx(wanted["camps"], abs=1e-6)
    assert rings.predict_proba(two_rings(20)) == pytest.approx(
        wanted["rings"], abs=1e-6
    )  # with the labels it remembers
    assert rings.predict_proba(two_rings(10, seed=1)) == pytest.approx(wanted["other"], abs=1e-6)  # and with none
    camps.save(tmp_path / "again.safetensors")  # in the format of now
    again = NodeClassifier.load(tmp_path / "again.safetensors")
    assert again.predict_proba(two_camps()) == pytest.approx(wanted["camps"], abs=1e-6)
