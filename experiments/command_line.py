"""What the experiments have in common on the command line: where data are and plots go."""

import argparse
import os
from pathlib import Path

__all__ = ["DEFAULT_OUTPUT", "VARIABLE", "find_data", "make_parser"]

VARIABLE = "RANKWISE_DATA"
DEFAULT_OUTPUT = Path(__file__).resolve().parent / "output"


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
