"""The command ``rankwise``; heavy imports wait until a command needs them."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from rankwise.cli.app import app
    except ImportError as error:
        if error.name != "typer":
            raise
        sys.exit("rankwise: the command needs typer and rich; pip install typer rich pyarrow")
    for stream in (sys.stdout, sys.stderr):  # a terminal without Greek letters gets question marks
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="rankwise")
