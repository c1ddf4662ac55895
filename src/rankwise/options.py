"""Options given by name."""

from __future__ import annotations

__all__ = ["check_option"]


def check_option(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise a ValueError that lists the choices unless the value is one of them."""
    if value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name}={value!r} is unknown; choose one of {choices}.")
