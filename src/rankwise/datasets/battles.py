"""Battles: two sides, and a column that says which of them won."""

from __future__ import annotations

from rankwise.datasets.labels import show

__all__ = ["outcome"]

TIE_WORDS = frozenset({"tie", "draw", "both", "tie (bothbad)", "bothbad", "both bad", "both_bad"})


def outcome(verdict: str, names: tuple[str, str], labels: tuple[str, str]) -> tuple[int, bool]:
    """Which side won, 0 or 1, and whether it is a tie.

    Parameters
    ----------
    verdict : str
        The name of the column of a side, the label of one of the two items, or a word for a tie.
    names : pair of str
        Names of the columns of the two sides.
    labels : pair of str
        What these columns hold.

    Raises
    ------
    ValueError
        If the verdict is none of these, or says both.

    Examples
    --------
    >>> outcome("model_b", ("model_a", "model_b"), ("gpt", "llama"))
    (1, False)
    >>> outcome("gpt", ("model_a", "model_b"), ("gpt", "llama"))
    (0, False)
    >>> outcome("tie (bothbad)", ("model_a", "model_b"), ("gpt", "llama"))
    (0, True)
    """
    word = verdict.lower()
    said = {
        (side, False) for side in (0, 1) if word == names[side].lower() or verdict == labels[side]
    }
    if word in TIE_WORDS:
        said.add((0, True))
    if len(said) == 1:
        return said.pop()
    expected = f"{show(names[0])}, {show(names[1])}, {show(labels[0])}, {show(labels[1])} or 'tie'"
    if not said:
        raise ValueError(f"the winner is {show(verdict)}, expected {expected}.")
    raise ValueError(
        f"the winner {show(verdict)} can be understood in two ways: expected one of {expected}, "
        "with different meanings. Rename the item or the column."
    )
