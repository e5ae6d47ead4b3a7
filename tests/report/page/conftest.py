"""A browser for the tests that look at pages."""

from collections.abc import Iterator

import pytest

from tests.browser import Browser, find_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, or a skip that says how to have it."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or name one in SHARPEN_BROWSER")
    with Browser(path) as running:
        yield running
