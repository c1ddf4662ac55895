"""What the experiments have in common on the command line: where data are, and where results go."""

import argparse
import contextlib
import csv
import datetime
import gzip
import inspect
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from experiments.shared.code_hash import code_hash

__all__ = [
    "DEFAULT_OUTPUT",
    "VARIABLE",
    "commit",
    "find_data",
    "is_current",
    "make_parser",
    "read_rows",
    "record",
]

VARIABLE = "RANKWISE_DATA"
EXPERIMENTS = Path(__file__).resolve().parents[1]
DEFAULT_OUTPUT = EXPERIMENTS / "output"


def make_parser(doc, *, output=False):
    """A parser with ``--data`` and ``--output``, described by a module's docstring."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(VARIABLE) or None,
        help=f"folder of the data sets (the environment variable {VARIABLE})",
    )
    if output:
        parser.add_argument(
            "--output", type=Path, default=DEFAULT_OUTPUT, help="folder for plots (%(default)s)"
        )
    return parser


def find_data(folder, *names):
    """Paths of the files, or the end of the program with a message that says what to do."""
    if folder is None:
        raise SystemExit(
            f"This experiment reads {names[0]}, and nobody said where it is. The data are not part "
            f"of the project; pass their folder with --data, or set {VARIABLE} to it."
        )
    paths = [Path(folder) / name for name in names]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise SystemExit(
            f"The file {missing[0]} does not exist ({len(missing)} of {len(paths)} are missing). "
            f"The data are not part of the project; pass their folder with --data, or set "
            f"{VARIABLE} to it."
        )
    return paths


def read_rows(folder, name):
    """The rows of a compressed table, a dict each."""
    (path,) = find_data(folder, name)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def record(main):
    """Run `main`; what it prints is also written to ``results/NAME.txt`` beside its file.

    Options other than ``--data`` and ``--output`` become part of the name. The first line of the
    file is the command, the second has the date, the commit, the processor time and the hash of the
    code (`code_hash`), by which ``python -m experiments --stale`` finds results of older code.
    """
    options = re.sub(r"--(data|output)[ =]\S+ ?", "", " ".join(sys.argv[1:])).strip()
    script = Path(inspect.getfile(inspect.unwrap(main))).resolve()
    module = ".".join(script.relative_to(EXPERIMENTS).with_suffix("").parts)

    start = time.process_time()
    with contextlib.redirect_stdout(_Copy(sys.stdout)) as printed:
        main()
    seconds = time.process_time() - start

    command_line = f"python -m experiments.{module} {options}".rstrip()
    today = datetime.datetime.now(datetime.UTC).date()
    code = code_hash(f"experiments.{module}")
    run_line = f"{today}, commit {commit()}, {seconds:.0f} s of processor time, code {code}"
    tables = printed.getvalue().strip("\n").replace(f"{EXPERIMENTS.parent}/", "")

    path = result_path(module, options)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{command_line}\n{run_line}\n\n{tables}\n", encoding="utf-8")


def is_current(module, options=""):
    """Whether the result of a module was recorded with the code as it is now."""
    path = result_path(module, options)
    if not path.is_file():
        return False
    run_line = path.read_text(encoding="utf-8").splitlines()[1]
    code = code_hash(f"experiments.{module}")
    return run_line.endswith(f", code {code}")


def result_path(module, options=""):
    """Where `record` writes what this module prints with these options."""
    *folder, name = module.split(".")
    words = re.findall(r"[\w.]+", options)
    return EXPERIMENTS.joinpath(*folder, "results", "-".join([name, *words]) + ".txt")


def commit():
    """The commit that runs, or a word where there is none."""
    command = ["git", "-C", str(EXPERIMENTS), "rev-parse", "--short", "HEAD"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return process.stdout.strip() or "unknown"


class _Copy(io.StringIO):
    """Keeps what is printed and passes it on."""

    def __init__(self, screen):
        super().__init__()
        self.screen = screen

    def write(self, text):
        self.screen.write(text)
        self.screen.flush()
        return super().write(text)
