"""``python -m rankwise`` is the command ``rankwise``."""

from rankwise.cli import main

main()
