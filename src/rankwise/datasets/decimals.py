"""Many decimal numbers at once: parsed at the speed of compiled code, or declined."""

from __future__ import annotations

import functools
import io
import operator

import numpy as np
from numpy.typing import NDArray

__all__ = ["parse_decimals"]

_HEADER = b"%%%%MatrixMarket matrix array real general\n%d 1\n"
_DIGITS = b"0123456789"


def _masks(following: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """For every byte: the bit of its kind, and the bits of the kinds that may follow it."""
    own, allowed = bytearray(256), bytearray(256)
    for bit, kind in enumerate(following):
        for byte in kind:
            own[byte] = 1 << bit
    for kind, others in following.items():
        for byte in kind:
            allowed[byte] = functools.reduce(operator.or_, [own[other] for other in others])
    return bytes(own), bytes(allowed)


_NEIGHBOURS = _masks(
    {
        _DIGITS: _DIGITS + b".e\n",
        b"\n": _DIGITS + b".- ",
        b" ": _DIGITS + b".- ",
        b"-": _DIGITS + b".",
        b"+": _DIGITS,
        b".": _DIGITS,
        b"eE": _DIGITS + b"+-",
    }
)
# without digits and signs: one point, then one exponent
_PARTS = _masks({b"\n": b"\n.e", b".": b"e\n", b"eE": b"\n"})


def parse_decimals(text: bytes, n_numbers: int) -> NDArray[np.float64] | None:
    r"""Parse one number a line, or return None if anything about the text is out of the ordinary.

    None does not mean that the text is wrong, only that it takes a slower look: a plus sign, a
    blank after a number and a value beyond the range of floats are declined, too.  Minus zero is
    read as zero.

    Parameters
    ----------
    text : bytes
        Numbers such as ``-12``, ``.5`` or ``1.5e-07`` with a line feed between them, none at the
        end; blanks in front of a number are allowed.
    n_numbers : int
        How many there have to be.

    Examples
    --------
    >>> parse_decimals(b"1\n-.5\n 2e3", 3)
    array([ 1.e+00, -5.e-01,  2.e+03])
    >>> print(parse_decimals(b"1\n2", 3), parse_decimals(b"1\n2x", 2))
    None None

    Notes
    -----
    SciPy's reader of matrix files rounds every number correctly and is several times faster than
    Python's `float`, but stops at the first strange character of a line without a word.  So the
    form is checked beforehand: which byte may follow which, and no second point or exponent.
    """
    if text.count(b"\n") != n_numbers - 1 or not text[-1:].isdigit():
        return None
    parts = text.translate(None, b"+- 0123456789")
    if not (_follow(text, _NEIGHBOURS) and _follow(parts, _PARTS)):
        return None
    from scipy.io import mmread

    try:
        numbers = mmread(io.BytesIO(_HEADER % n_numbers + text + b"\n"))
    except (ValueError, OverflowError):
        return None
    flat: NDArray[np.float64] = np.asarray(numbers, dtype=np.float64).reshape(-1)
    return flat if len(flat) == n_numbers and bool(np.isfinite(flat).all()) else None


def _follow(text: bytes, masks: tuple[bytes, bytes]) -> bool:
    """Whether every byte may follow the one before it, and the first one a line feed."""
    own, allowed = masks
    is_kind = np.frombuffer(text.translate(own), dtype=np.uint8)
    may_be = np.frombuffer(text.translate(allowed), dtype=np.uint8)
    first = own[text[0]] & allowed[ord("\n")] if text else 1
    return bool(first) and bool((is_kind[1:] & may_be[:-1]).all())
