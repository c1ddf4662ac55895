"""The n-gram kernel between texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwise.arrays import Array

PRODUCT_ENTRIES = 2**22  # entries of one sparse product, which is nearly dense


def ngram_kernel(
    texts: Sequence[str],
    column_texts: Sequence[str] | None = None,
    ngram_range: tuple[int, int] = (1, 3),
    shared: float = 0.0,
) -> Array:
    """Tanimoto similarity of the sets of n-grams, mixed with a constant.

    With the sets A and B of the n-grams of two texts,

        k = (1 − s) |A ∩ B| / |A ∪ B| + s

    which is 1 for equal texts, and s for texts that share no n-gram or are shorter than all
    n-grams.

    Parameters
    ----------
    texts, column_texts : sequence of str
        Texts, such as SMILES or protein sequences; `texts` again if `column_texts` is None.
    ngram_range : (int, int)
        Shortest and longest n-grams.
    shared : float
        s, the constant.

    Returns
    -------
    ndarray of shape (n_texts, n_columns)
        Kernel values.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    shortest, longest = ngram_range

    def ngrams(text: str) -> list[str]:
        lengths = range(shortest, min(longest, len(text)) + 1)
        return [text[start : start + n] for n in lengths for start in range(len(text) - n + 1)]

    n_texts = len(texts)
    all_texts = list(texts)
    n_columns = n_texts
    if column_texts is not None:
        all_texts.extend(column_texts)
        n_columns = len(column_texts)
    if not any(len(text) >= shortest for text in all_texts):
        return np.full((n_texts, n_columns), float(shared))
    counter = CountVectorizer(analyzer=ngrams, binary=True, dtype=np.float64)
    occurrences = counter.fit_transform(all_texts)
    set_sizes = np.asarray(occurrences.sum(axis=1)).ravel()
    A = occurrences[:n_texts]
    sizes_A = set_sizes[:n_texts]
    B = A
    sizes_B = sizes_A
    if column_texts is not None:
        B = occurrences[n_texts:]
        sizes_B = set_sizes[n_texts:]
    K = np.empty((n_texts, n_columns))
    chunk_size = max(1, PRODUCT_ENTRIES // max(1, n_columns))
    B_transposed = B.T.tocsr()
    for start in range(0, n_texts, chunk_size):
        rows = slice(start, start + chunk_size)
        intersection = (A[rows] @ B_transposed).toarray()
        union = sizes_A[rows, None] + sizes_B - intersection
        K[rows] = np.divide(intersection, union, out=np.zeros_like(intersection), where=union > 0)
    K *= 1 - shared
    K += shared
    return K
