"""What the experiments have in common on the command line: where data are and plots go."""

import argparse
from pathlib import Path

__all__ = ["DEFAULT_DATA", "DEFAULT_OUTPUT", "find_data", "make_parser"]

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DEFAULT_OUTPUT = Path(__file__).resolve().parent / "output"


def make_parser(doc, *, output=False):
    """A parser with ``--data`` and ``--output``, described by a module's docstring."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=DEFAULT_DATA, help="folder of the data sets (%(default)s)"
    )
    if output:
        parser.add_argument(
            "--output", type=Path, default=DEFAULT_OUTPUT, help="folder for plots (%(default)s)"
        )
    return parser


def find_data(folder, *names):
    """Paths of the files, or the end of the program with a message that says what to do."""
    paths = [Path(folder) / name for name in names]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise SystemExit(
            f"The file {missing[0]} does not exist ({len(missing)} of {len(paths)} are missing). "
            "The data are not part of the project; pass their folder with --data."
        )
    return paths
