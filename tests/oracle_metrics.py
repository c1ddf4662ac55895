"""Slow truths for ranking metrics: double loops over pairs, every order of tied items."""

from itertools import chain, permutations, product
from math import log2, sqrt

import numpy as np


def orders_of(score):
    """Every order of the items that goes from high to low scores."""
    blocks = [[i for i, s in enumerate(score) if s == v] for v in sorted(set(score), reverse=True)]
    for parts in product(*(permutations(block) for block in blocks)):
        yield list(chain(*parts))


def expected(value_of_list, y, score):
    """Mean over all orders of the tied items."""
    return float(np.mean([value_of_list([y[i] for i in order]) for order in orders_of(score)]))


def resolved(value_of_list, y, score, tied_scores):
    """Value for one order of the tied items."""
    second = {
        "optimistic": lambda i: -y[i],
        "pessimistic": lambda i: y[i],
        "order": lambda i: i,
    }[tied_scores]
    order = sorted(range(len(y)), key=lambda i: (-score[i], second(i)))
    return value_of_list([y[i] for i in order])


def ndcg_of_list(ys, k=None, gain="exponential"):
    def dcg(items):
        gains = [2**y - 1 if gain == "exponential" else y for y in items[:k]]
        return sum(g / log2(place + 2) for place, g in enumerate(gains))

    best = dcg(sorted(ys, reverse=True))
    return dcg(ys) / best if best > 0 else np.nan


def average_precision_of_list(ys, k=None, relevant=None, normalizer="relevant"):
    hits = [y > 0 if relevant is None else y >= relevant for y in ys]
    if not any(hits):
        return np.nan
    cut = len(ys) if k is None else min(k, len(ys))
    earned = sum(sum(hits[: p + 1]) / (p + 1) for p in range(cut) if hits[p])
    best = sum(hits) if normalizer == "relevant" or k is None else min(sum(hits), k)
    return earned / best


def precision_of_list(ys, k, relevant=None):
    return sum(y > 0 if relevant is None else y >= relevant for y in ys[:k]) / k


def recall_of_list(ys, k, relevant=None):
    hits = [y > 0 if relevant is None else y >= relevant for y in ys]
    return sum(hits[:k]) / sum(hits) if any(hits) else np.nan


def reciprocal_rank_of_list(ys, k=None, relevant=None):
    hits = [y > 0 if relevant is None else y >= relevant for y in ys]
    if not any(hits):
        return np.nan
    place = hits.index(True) + 1
    return 1 / place if k is None or place <= k else 0.0


def rbp_of_list(ys, k=None, p=0.8):
    return (1 - p) * sum(p**place for place, y in enumerate(ys[:k]) if y > 0)


def hit_of_list(ys, k=1):
    return float(max(ys) in ys[:k]) if len(set(ys)) > 1 else np.nan


def err_of_list(ys, k=None, max_grade=4):
    if not any(y > 0 for y in ys):
        return np.nan
    total, arrives = 0.0, 1.0
    for place, y in enumerate(ys[:k], start=1):
        stop = (2**y - 1) / 2**max_grade
        total += arrives * stop / place
        arrives *= 1 - stop
    return total


def disagreement(y, score, tied_scores="half", weights=None):
    """(weight of wrong pairs, weight of pairs), by a double loop."""
    weights = [1] * len(y) if weights is None else weights
    wrong = total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j]:
                w = weights[i] * weights[j]
                total += w
                if score[i] < score[j]:
                    wrong += w
                elif score[i] == score[j]:
                    wrong += w * (0.5 if tied_scores == "half" else 1.0)
    return wrong, total


def disagreement_error(y, score, **options):
    wrong, total = disagreement(y, score, **options)
    return wrong / total if total > 0 else np.nan


def kendall_tau(y, score, variant="b"):
    n, surplus, pairs, y_pairs, score_pairs = len(y), 0, 0, 0, 0
    for i in range(n):
        for j in range(i):
            surplus += np.sign(y[i] - y[j]) * np.sign(score[i] - score[j])
            pairs += 1
            y_pairs += y[i] != y[j]
            score_pairs += score[i] != score[j]
    if y_pairs == 0:
        return np.nan
    if score_pairs == 0:
        return 0.0
    return surplus / (sqrt(y_pairs * score_pairs) if variant == "b" else pairs)


def auc(y, score, relevant):
    won = [
        (score[i] > score[j]) + 0.5 * (score[i] == score[j])
        for i in range(len(y))
        for j in range(len(y))
        if y[i] >= relevant > y[j]
    ]
    return float(np.mean(won)) if won else np.nan


def delong(y, score, clusters=None):
    """AUC of labels 0 and 1 and its standard error, from the matrix of all pairs.

    The variance of a mean over pairs of a positive and a negative item: covariances of pairs that
    share the positive item, or the negative one, or, with clusters, of any that share a cluster.
    """
    clusters = np.arange(len(y)) if clusters is None else clusters
    y, score = np.asarray(y), np.asarray(score, dtype=float)
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    won = np.sign(score[positive][:, None] - score[negative]) / 2 + 0.5
    area, variance, sums = won.mean(), 0.0, {}
    for rows, axis in ((positive, 1), (negative, 0)):
        away = won.mean(axis=axis) - area
        sums[axis] = {c: away[clusters[rows] == c].sum() / len(rows) for c in set(clusters[rows])}
        n = len(sums[axis])
        variance += n / (n - 1) * sum(value**2 for value in sums[axis].values())
    n = len(set(clusters))
    shared = sums[0].keys() & sums[1].keys()
    variance += 2 * n / (n - 1) * sum(sums[0][c] * sums[1][c] for c in shared)
    return area, sqrt(variance)


def by_group(value, y, score, groups):
    """Apply ``value(y, score)`` to each group, in the order of the sorted labels."""
    found = []
    for label in sorted(set(groups)):
        rows = [i for i, g in enumerate(groups) if g == label]
        found.append(value([y[i] for i in rows], [score[i] for i in rows]))
    return np.array(found)


def inversions(values, starts, weights=None):
    """Pairs p < q of a group with values[p] > values[q], from the matrix of all pairs."""
    values = np.asarray(values, dtype=np.int64)
    weights = np.ones(len(values)) if weights is None else weights
    counts = []
    for low, high in zip(starts, [*starts[1:], len(values)], strict=True):
        v, w = values[low:high], weights[low:high]
        inverted = np.triu(v[:, None] > v[None, :], k=1)
        counts.append(w @ inverted @ w)
    return np.array(counts)


def weighted_ndcg(y, score, weights, k=None):
    """Mean over the orders of tied items of DCG with gains (2^y − 1) w, over that of the best."""
    gains = [(2**grade - 1) * w for grade, w in zip(y, weights, strict=True)]

    def dcg(order):
        return sum(gains[i] / log2(place + 2) for place, i in enumerate(order[:k]))

    best = dcg(sorted(range(len(y)), key=lambda i: -gains[i]))
    return float(np.mean([dcg(order) for order in orders_of(score)])) / best if best else np.nan


def weighted_tau(y, score, weights, variant="b"):
    """Kendall's tau by a double loop in which a pair counts the product of its weights."""
    surplus = pairs = y_pairs = score_pairs = 0.0
    for i in range(len(y)):
        for j in range(i):
            w = weights[i] * weights[j]
            surplus += w * np.sign(y[i] - y[j]) * np.sign(score[i] - score[j])
            pairs += w
            y_pairs += w * (y[i] != y[j])
            score_pairs += w * (score[i] != score[j])
    if y_pairs == 0:
        return np.nan
    if score_pairs == 0:
        return 0.0
    return surplus / (sqrt(y_pairs * score_pairs) if variant == "b" else pairs)
