"""The command ``rankwise``; heavy imports wait until a command needs them."""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # ends as Python does, so that temporary files go with the process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        from rankwise.cli.app import app
    except KeyboardInterrupt:  # before a command runs, which tells it itself
        print("rankwise: interrupted", file=sys.stderr)
        sys.exit(130)
    except ImportError as error:
        if error.name != "typer":
            raise
        sys.exit("rankwise: the command needs typer and rich; pip install typer rich pyarrow")
    for stream in (sys.stdout, sys.stderr):  # a terminal without Greek letters gets question marks
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="rankwise")
