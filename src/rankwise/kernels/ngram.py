"""The n-gram kernel between texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwise.arrays import Array

NGRAM_ENTRIES = 2**22  # of a sparse product at a time, which is nearly dense


def ngram_kernel(
    texts: Sequence[str],
    others: Sequence[str] | None = None,
    ngram_range: tuple[int, int] = (1, 3),
    shared: float = 0.0,
) -> Array:
    """Tanimoto similarity of the sets of n-grams, mixed with a constant.

    With the sets A and B of all pieces of so many characters in two texts,

        k = (1 − s) |A ∩ B| / |A ∪ B| + s

    which is 1 for equal texts and s for texts that share nothing or are shorter than all n-grams.
    Products are sparse.

    Parameters
    ----------
    texts, others : sequence of str
        Texts, such as SMILES or protein sequences; `texts` again if `others` is None.
    ngram_range : (int, int)
        Shortest and longest n-grams.
    shared : float
        s, the share of what all texts have in common.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    shortest, longest = ngram_range

    def pieces(text: str) -> list[str]:
        lengths = range(shortest, min(longest, len(text)) + 1)
        return [text[k : k + n] for n in lengths for k in range(len(text) - n + 1)]

    counter = CountVectorizer(analyzer=pieces, binary=True, dtype=np.float64)
    n = len(texts)
    every = list(texts) if others is None else [*texts, *others]
    if not any(len(text) >= shortest for text in every):
        return np.full((n, len(every) - n or n), float(shared))
    shown = counter.fit_transform(every)
    A, B = shown[:n], shown[:n] if others is None else shown[n:]
    sizes = np.asarray(shown.sum(axis=1)).ravel()
    of_A, of_B = sizes[:n], sizes[:n] if others is None else sizes[n:]
    K = np.empty((A.shape[0], B.shape[0]))
    size = max(1, NGRAM_ENTRIES // max(1, B.shape[0]))
    by_column = B.T.tocsr()
    for start in range(0, len(K), size):
        rows = slice(start, start + size)
        common = (A[rows] @ by_column).toarray()
        rest = of_A[rows, None] + of_B - common
        K[rows] = np.divide(common, rest, out=np.zeros_like(common), where=rest > 0)
    K *= 1 - shared
    K += shared
    return K
