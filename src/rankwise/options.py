"""Options given by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def check_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise a ValueError that lists the choices unless the value is one of them."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(
            f"{name}={value!r} is unknown; {suggestion(value, allowed)}choose one of {choices}."
        )


def suggestion(value: object, allowed: Sequence[str]) -> str:
    """Return ``"did you mean 'x'? "`` if some allowed word looks like `value`, else nothing."""
    words = {word.lower(): word for word in reversed(allowed)}
    close = difflib.get_close_matches(str(value).lower(), words, n=1)
    return f"did you mean {words[close[0]]!r}? " if close else ""
