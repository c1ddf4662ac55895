"""A MinHash fingerprint of the rows of a data set, to detect overlap of training and test data.

Each row has a 64-bit hash of its columns, its score and its group. The fingerprint consists of the
smallest hashes (bottom-k). A row of other data whose hash is below the largest of them was in the
data set if and only if its hash is among them, and such rows are a uniform sample.

New rows may have duplicates in the training data by chance. Their share is estimated by that of the
training rows with a duplicate among the other training rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from rankwise.arrays import Array, Labels
from rankwise.datasets.column_values import distinct_cells, is_number
from rankwise.datasets.vocabulary import finite_number

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

Hashes: TypeAlias = NDArray[np.uint64]
FINGERPRINT_SIZE = 256  # hashes
MIN_SHARE_TO_REPORT = 0.1
STANDARD_ERRORS = 3.0  # by which the share of duplicates must exceed that of the training data
_BLOCK_ROWS = 1 << 12  # converted to a dense array at a time


def fingerprint_rows(
    X: Array | csr_matrix | pa.Table, y: Array, groups: Labels | None = None
) -> str:
    """Return the fingerprint of rows: their share of duplicates, and hashes in hexadecimal.

    Parameters
    ----------
    X : ndarray, sparse matrix or pyarrow.Table
        Columns; the columns of a table are identified by name, in any order.
    y : ndarray of shape (n_rows,)
        Scores.
    groups : ndarray of shape (n_rows,), optional
        Group labels.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    >>> fingerprint = fingerprint_rows(X, y)
    >>> share_seen(fingerprint, X[[7, 3]], y[[7, 3]]), share_seen(fingerprint, X + 1, y)
    (1.0, 0.0)
    """
    # The smallest hashes are a random sample of the distinct rows.
    sorted_hashes, n_rows_of_hash = np.unique(_row_hashes(X, y, groups), return_counts=True)
    smallest_hashes = sorted_hashes[:FINGERPRINT_SIZE]
    n_rows = n_rows_of_hash[:FINGERPRINT_SIZE]
    # The share of the rows that are equal to another row
    duplicate_share = n_rows[n_rows > 1].sum() / max(1, n_rows.sum())
    hexadecimal = smallest_hashes.astype(">u8").tobytes().hex()
    return f"{duplicate_share:.4f} {hexadecimal}"


def share_seen(
    fingerprint: str, X: Array | csr_matrix | pa.Table, y: Array, groups: Labels | None = None
) -> float:
    """Estimate the share of these rows that were in the data of a fingerprint.

    Equal rows count once. The share is 0 unless the rows have duplicates there more often, by
    three standard errors, than the rows of that data have among themselves. A damaged fingerprint
    gives 0.
    """
    try:
        duplicate_text, _, hash_text = fingerprint.partition(" ")
        duplicate_share = float(duplicate_text)
        training_hashes = np.frombuffer(bytes.fromhex(hash_text), dtype=">u8").astype(np.uint64)
    except ValueError:
        return 0.0
    hashes = np.unique(_row_hashes(X, y, groups))
    is_truncated = len(training_hashes) >= FINGERPRINT_SIZE
    if is_truncated:
        # Larger hashes may have been in the training data, but are not in the fingerprint.
        hashes = hashes[hashes <= training_hashes.max()]
    if not len(hashes) or not len(training_hashes):
        return 0.0

    share_in_training = float(np.isin(hashes, training_hashes).mean())
    # Rows that are new coincide with training rows as often as training rows among themselves:
    # the duplicate share, here smoothed so that it is never 0 or 1.
    n_training = len(training_hashes)
    expected_share = (duplicate_share * n_training + 1) / (n_training + 2)
    standard_error = np.sqrt(expected_share * (1 - expected_share) / len(hashes))
    excess = share_in_training - duplicate_share
    if excess <= 0 or excess < STANDARD_ERRORS * standard_error:
        return 0.0
    # share_in_training = share + (1 − share) · duplicate_share, solved for the share. The excess is
    # positive, so the duplicate share is below 1.
    return excess / (1 - duplicate_share)


def describe_overlap(share: float, model: str, rows: str = "items") -> str:
    """Return a warning about evaluation on training rows; an empty text if the rows are new."""
    if share < MIN_SHARE_TO_REPORT:
        return ""
    quantity = f"about {share:.0%}"
    if share > 0.99:
        quantity = "all"
    return (
        f"{model} was trained on {quantity} of these {rows}, so these metrics are optimistic; "
        f"evaluate on unseen {rows}, or by cross-validation"
    )


def _row_hashes(X: Array | csr_matrix | pa.Table, y: Array, groups: Labels | None) -> Hashes:
    """Return a hash of each row: the sum of the cells' hashes times an odd number per column."""
    # Each column adds its hashes times an odd number: a sum does not depend on their order.
    hash_sums = _mix_bits(_bits_of_floats(y)) * _text_hash("y")
    if groups is not None:
        labels, codes = np.unique(np.asarray(groups), return_inverse=True)
        hash_of_label = _text_hashes([str(label) for label in labels.tolist()])
        hash_sums += hash_of_label[codes] * _text_hash("group")
    is_table = hasattr(X, "column_names")
    if is_table:
        hash_sums += _hash_sums_of_table(X)
    else:
        hash_sums += _hash_sums_of_matrix(X)
    return _mix_bits(hash_sums)


def _hash_sums_of_table(table: pa.Table) -> Hashes:
    """Return the sum of the cells' hashes in each row; columns are identified by name."""
    sums = np.zeros(table.num_rows, dtype=np.uint64)
    for name, column in zip(table.column_names, table.columns, strict=True):
        sums += _cell_hashes(column) * _text_hash(name)
    return sums


def _hash_sums_of_matrix(X: Array | csr_matrix) -> Hashes:
    """Return the sum of the cells' hashes in each row; columns are identified by position."""
    n_rows, n_columns = X.shape
    # The hash of a row is the sum of the hashes of its cells, each times a factor of the column.
    column_numbers = np.arange(1, n_columns + 1, dtype=np.uint64)
    factor_of_column = _mix_bits(column_numbers) | np.uint64(1)  # odd: a product keeps all bits
    sums = np.zeros(n_rows, dtype=np.uint64)
    for start in range(0, n_rows, _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        block: csr_matrix = X[rows]
        cells: Array = block
        if issparse(block):
            cells = block.toarray()
        sums[rows] = _mix_bits(_bits_of_floats(cells)) @ factor_of_column
    return sums


def _cell_hashes(column: pa.ChunkedArray) -> Hashes:
    """Return a hash of each cell of an Arrow column: of its number, or of its text."""
    if is_number(column.type):
        values = column.cast("double", safe=False).to_numpy()
        return _mix_bits(_bits_of_floats(values))
    codes, texts = distinct_cells(column)
    # A text that spells a number has the hash of the number, and a missing cell that of NaN.
    number_of_text = [np.nan if text == "" else finite_number(text) for text in texts]
    is_number_text = np.array([number is not None for number in number_of_text])
    numbers = [number for number in number_of_text if number is not None]
    hash_of_text = _text_hashes(texts)
    hash_of_text[is_number_text] = _mix_bits(_bits_of_floats(numbers))
    return hash_of_text[codes]


def _text_hashes(texts: Sequence[str]) -> Hashes:
    return np.array([_text_hash(text) for text in texts], dtype=np.uint64)


def _text_hash(text: str) -> np.uint64:
    """Return an odd 64-bit hash of a text."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest) | 1)  # odd, so that a product with it keeps all bits


def _bits_of_floats(values: ArrayLike) -> Hashes:
    """Return the bits of numbers; −0.0 equals 0.0, and all NaNs are equal."""
    floats = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # minus zero becomes zero
    with_equal_nans = np.where(np.isnan(floats), np.nan, floats)
    return with_equal_nans.view(np.uint64)


def _mix_bits(values: Hashes) -> Hashes:
    """Mix the bits of each number, as the last step of the generator splitmix64 does."""
    # the finalizer of splitmix64: similar numbers become unrelated ones
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
