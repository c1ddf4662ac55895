"""Hypothesis measures no time: the machines that run these tests are shared.

In CI it draws the same cases each time, so that a change is judged by what it changed. Everywhere
else the draws are new, and find what those did not.
"""

import os

from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "shared machine")
