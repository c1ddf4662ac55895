"""Numbers that an option gives as text."""

from __future__ import annotations


def numbers_in(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        auto = "auto, " if option == "--alpha" else ""
        raise ValueError(
            f"{option} {text}: expected {auto}a number, or numbers separated by commas."
        ) from None


def number_in(option: str, text: str) -> float:
    """A single number."""
    found = numbers_in(option, text)
    if len(found) > 1:
        raise ValueError(f"{option} {text}: expected auto or one number.")
    return found[0]
