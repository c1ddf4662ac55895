"""The command ``rankwise``, run as a user would."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import rankwise


def run(*arguments, code=None):
    start = ["-c", code] if code else ["-m", "rankwise"]
    return subprocess.run([sys.executable, *start, *arguments], capture_output=True, text=True)


def test_info_tells_whether_the_compiled_sweep_is_active():
    pytest.importorskip("typer")
    done = run("info")
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["rankwise"] == rankwise.__version__
    assert rows["compiled"] == "sweep  active"
    as_json = json.loads(run("info", "--json").stdout)
    assert as_json["compiled"] is True
    assert as_json["versions"]["rankwise"] == rankwise.__version__


def test_info_tells_that_the_compiled_sweep_is_missing():
    pytest.importorskip("typer")
    code = (
        "import sys; sys.modules['rankwise._compiled.order_sweep'] = None;"
        "from rankwise.cli import main; main()"
    )
    done = run("info", code=code)
    assert done.returncode == 0, done.stderr
    assert "missing: NumPy sweeps in use" in done.stdout


def test_without_typer_one_line_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from rankwise.cli import main; main()"
    done = run("info", code=code)
    assert done.returncode == 1
    assert (
        done.stderr == "rankwise: the command needs typer and rich; pip install 'rankwise[cli]'\n"
    )


def test_help_is_there_and_unknown_commands_fail():
    pytest.importorskip("typer")
    assert "info" in run("--help").stdout
    assert run("no-such-command").returncode == 2
