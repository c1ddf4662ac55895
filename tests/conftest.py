"""Settings and fixtures of all tests.

Tests run in random order, so no test may leave anything behind for the next one:
`restored_global_state` closes figures and restores the settings of the process.

Hypothesis measures no time: the machines that run these tests are shared. In CI it draws the same
cases each time, so that a change is judged by what it changed. Everywhere else the draws are new,
and find what those did not.
"""

import os
import sys

import numpy as np
import pytest
import sklearn
from hypothesis import settings

from rankwise.preprocessing import group_columns

settings.register_profile("shared machine", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "shared machine")


@pytest.fixture(autouse=True)
def restored_global_state():
    """Close figures, and restore configurations, environment and directory after each test.

    pytest restores the filters of warnings, and pytest-randomly seeds `random` and `numpy.random`
    before each test.
    """
    environment = dict(os.environ)
    directory = os.getcwd()
    sklearn_config = sklearn.get_config()
    numpy_errors = np.geterr()
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    os.chdir(directory)
    sklearn.set_config(**sklearn_config)
    np.seterr(**numpy_errors)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A Chromium for all tests of pages in this process; tests ask for `browser`."""
    from tests.browser import start_browser

    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """The Chromium of this process, on a blank page and with an empty log.

    A page that stays open keeps sending requests after its server has stopped, and the failed
    requests would be in the log that a later test reads.
    """
    yield chromium
    chromium.get("about:blank")
    chromium.get_log("browser")


@pytest.fixture(autouse=True)
def rearm_warning_of_one_list(monkeypatch):
    """Let the warning that comes once per process come in each test, whatever ran before."""
    monkeypatch.setattr(group_columns, "_has_warned_of_one_list", False)
