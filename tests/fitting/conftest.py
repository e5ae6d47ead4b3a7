"""Fixtures of the tests of fitting."""

import pytest

from sharpen.graph import Graph
from tests.fitting.camps import two_camps


@pytest.fixture
def camps() -> Graph:
    """Forty nodes in two camps, sixteen of them labeled."""
    return two_camps()
