"""Hypothesis measures no time: the machines that run these tests are shared.

In CI it draws the same cases each time, so that a change is judged by what it changed. Everywhere
else the draws are new, and find what those did not.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "shared machine")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A Chromium for all tests of pages in this process."""
    from tests.browser import start_browser

    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()
