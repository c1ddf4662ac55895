"""NDCG as the evaluation script of LETOR 3.0 counts it (that of 2.0, we assume, did the same)."""

import numpy as np

__all__ = ["letor_ndcg"]


def letor_ndcg(y, scores, groups, depth=10):
    """NDCG@1 … NDCG@depth, averaged over groups, shape (depth,).

    The script differs from `rankwise.metrics.ndcg` in three points: the discount at place p is
    1 / log2(max(p, 2)), so that the first two places count alike; tied scores stay in the order of
    rows; a group without relevant documents counts 0.
    """
    discount = 1 / np.log2(np.maximum(np.arange(1, depth + 1), 2))
    labels = np.unique(groups)
    total = np.zeros(depth)
    for label in labels:
        gain = 2.0 ** y[groups == label] - 1
        order = np.argsort(-scores[groups == label], kind="stable")
        found = _cumulate(gain[order], discount)
        ideal = _cumulate(np.sort(gain)[::-1], discount)
        total += np.divide(found, ideal, out=np.zeros(depth), where=ideal > 0)
    return total / len(labels)


def _cumulate(gain, discount):
    padded = np.zeros(len(discount))
    top = gain[: len(discount)]
    padded[: len(top)] = top
    return np.cumsum(padded * discount)
