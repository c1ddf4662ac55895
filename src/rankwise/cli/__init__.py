"""The command ``rankwise``; heavy imports wait until a command needs them."""

from __future__ import annotations

import signal
import sys
from io import TextIOWrapper

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # SIGTERM raises SystemExit, so that temporary files are deleted
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        from rankwise.cli.app import app
    except KeyboardInterrupt:  # before a command runs; commands report it themselves
        print("rankwise: interrupted", file=sys.stderr)
        sys.exit(130)
    except ImportError as error:
        if error.name != "click":
            raise
        sys.exit("rankwise: the command needs click; pip install click pyarrow")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # an encoding without Greek letters prints "?"
            stream.reconfigure(errors="replace")
    app(prog_name="rankwise")
