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

    def find_ngrams(text: str) -> list[str]:
        ngrams = []
        for length in range(shortest, min(longest, len(text)) + 1):
            for start in range(len(text) - length + 1):
                ngrams.append(text[start : start + length])
        return ngrams

    n_texts = len(texts)
    all_texts = list(texts)
    n_columns = n_texts
    if column_texts is not None:
        all_texts.extend(column_texts)
        n_columns = len(column_texts)
    if not any(len(text) >= shortest for text in all_texts):
        return np.full((n_texts, n_columns), float(shared))

    # sets of n-grams as rows of zeros and ones
    counter = CountVectorizer(analyzer=find_ngrams, binary=True, dtype=np.float64)
    occurrences = counter.fit_transform(all_texts)
    set_sizes = np.asarray(occurrences.sum(axis=1)).ravel()
    A = occurrences[:n_texts]
    A_sizes = set_sizes[:n_texts]
    B = A
    B_sizes = A_sizes
    if column_texts is not None:
        B = occurrences[n_texts:]
        B_sizes = set_sizes[n_texts:]

    # similarity of two sets (Jaccard): the size of their intersection over that of their union
    similarity = np.zeros((n_texts, n_columns))
    B_transposed = B.T.tocsr()
    n_rows_of_chunk = max(1, PRODUCT_ENTRIES // max(1, n_columns))
    for start in range(0, n_texts, n_rows_of_chunk):
        rows = slice(start, start + n_rows_of_chunk)
        intersection = (A[rows] @ B_transposed).toarray()
        union = A_sizes[rows, None] + B_sizes - intersection
        np.divide(intersection, union, out=similarity[rows], where=union > 0)
    # from `shared` (no common n-gram) to 1; in place, as the matrix may take most of the memory
    similarity *= 1 - shared
    similarity += shared
    return similarity
