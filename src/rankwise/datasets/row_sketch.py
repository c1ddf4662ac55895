"""A short fingerprint of the rows of a data set, to recognize them later, in any order or in part.

Every row has a hash of 64 bits. The sketch keeps the smallest ones, so a row of other data whose
hash is below the largest of these was there if and only if its hash is one of them: such rows are
a fair sample of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 256
_ROWS = 1 << 12  # hashed at once


def sketch_rows(X: Any, y: NDArray[np.float64]) -> str:
    """The sketch of the rows of an array or a sparse matrix with their scores, as hexadecimals.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    >>> sketch = sketch_rows(X, y)
    >>> sketched_share(sketch, X[[7, 3]], y[[7, 3]]), sketched_share(sketch, X + 1, y)
    (1.0, 0.0)
    """
    return np.unique(_hashes(X, y))[:SIZE].astype(">u8").tobytes().hex()


def sketched_share(sketch: str, X: Any, y: NDArray[np.float64]) -> float:
    """About which share of these rows was there when the sketch was made; 0 if it is damaged.

    Equal rows count once: documents without any match are alike in all queries and prove nothing.
    """
    try:
        known = np.frombuffer(bytes.fromhex(sketch), dtype=">u8").astype(np.uint64)
    except ValueError:
        return 0.0
    found = np.unique(_hashes(X, y))
    if len(known) >= SIZE:
        found = found[found <= known.max()]
    return float(np.isin(found, known).mean()) if len(found) and len(known) else 0.0


def _hashes(X: Any, y: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Sums of the bits of a row, each times the odd number of its column: exact in any order."""
    factors = _mixed(np.arange(1, X.shape[1] + 2, dtype=np.uint64)) | np.uint64(1)
    found = _bits(y) * factors[-1]
    for start in range(0, len(y), _ROWS):
        rows = slice(start, start + _ROWS)
        part = X[rows].toarray() if hasattr(X, "tocsr") else np.asarray(X)[rows]
        found[rows] += _mixed(_bits(part)) @ factors[:-1]
    return _mixed(found)


def _bits(values: Any) -> NDArray[np.uint64]:
    floats = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # minus zero is zero
    return floats.view(np.uint64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The last step of the generator splitmix64: every bit depends on all."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
