"""Running the command inside a test, and the tables that its tests share."""

from __future__ import annotations

import subprocess
import sys

from click.testing import CliRunner

NAMES = ["size", "age", "stars"]


def shell(*arguments, code=None, **options):
    start = ["-c", code] if code else ["-m", "rankwise"]
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)], capture_output=True, text=True, **options
    )


def run(*arguments, input=None):
    from rankwise.cli.app import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)


def succeed(*arguments, code=0, input=None):
    done = run(*arguments, input=input)
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done


def fail(*arguments):
    """The one line that a failure prints."""
    done = run(*arguments)
    assert done.exit_code == 1, done.output
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("rankwise: ")
    return lines[0].removeprefix("rankwise: ")


def lines_of(path):
    return path.read_text().splitlines()


def write_table(path, problem, names, extra=()):
    """The problem as CSV, its feature columns in the order of `names`."""
    X, y, groups = problem[:3]
    columns = dict(zip(NAMES, X.T, strict=True))
    rows = [",".join([*names, "shop", "rating", *extra])]
    for k in range(len(y)):
        cells = [repr(float(columns[name][k])) for name in names]
        rows.append(",".join([*cells, f"s{groups[k]}", str(y[k]), *("x" for _ in extra)]))
    path.write_text("\n".join(rows) + "\n")


TABLE = ["--target", "rating", "--group", "shop"]
