# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# cython: initializedcheck=False
"""Sweeps over sorted scores: counts and sums over pairs in O(m log m), no pair ever formed.

The readable truth of every function is in `pair_counts_fallback.py`, with the same name and signature. The items
of a group lie next to each other, ``starts`` says where each group starts, and ``level`` is the
rank of an item's target in its group, 0 for the lowest.

A sweep walks the items of a group in the order of their scores. A second pointer runs ahead by a
margin of one and puts the items it passes in a Fenwick tree over the levels, whose prefix sums say
how many of them have a lower target. The tree only grows: the window of an item contains that of
the item before it.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

import numpy as np

cdef enum:
    RUN = 16  # runs of this length are sorted by insertion


def sort_by_group(
    const Py_ssize_t[::1] order, const int32_t[::1] group, const Py_ssize_t[::1] starts
):
    """Sort an order of all items by group, stably."""
    cdef Py_ssize_t i
    cdef Py_ssize_t[::1] place = np.array(starts)
    out = np.empty(order.shape[0], dtype=np.intp)
    cdef Py_ssize_t[::1] put = out
    with nogil:
        for i in range(order.shape[0]):
            put[place[group[order[i]]]] = order[i]
            place[group[order[i]]] += 1
    return out


def sort_in_groups(
    const double[::1] scores, const Py_ssize_t[::1] order, const Py_ssize_t[::1] starts
):
    """Sort the items of each group by score; for many small groups, by insertion and merging."""
    cdef Py_ssize_t g, first, last, width, low
    out = np.array(order)
    cdef Py_ssize_t[::1] items = out, spare = np.empty_like(out)
    with nogil:
        for g in range(starts.shape[0]):
            first, last = starts[g], _end(starts, g, order.shape[0])
            low = first
            while low < last:
                _insert(scores, items, low, min(low + RUN, last))
                low += RUN
            width = RUN
            while width < last - first:
                low = first
                while low + width < last:
                    _merge(scores, items, spare, low, low + width, min(low + 2 * width, last))
                    low += 2 * width
                width *= 2
    return out


def count_violated(
    const floating[::1] scores, const int32_t[::1] level, const Py_ssize_t[::1] starts
):
    """Count, for items sorted by score inside groups, the violated pairs they lose and win."""
    cdef Py_ssize_t g, i, j, first, last
    cdef int32_t size
    lost, won = np.zeros(len(scores), dtype=np.int64), np.zeros(len(scores), dtype=np.int64)
    cdef int64_t[::1] c = lost, d = won
    cdef int32_t[::1] tree = np.zeros(_n_levels(level, 0, len(level)) + 1, dtype=np.int32)
    with nogil:
        for g in range(starts.shape[0]):
            first, last = starts[g], _end(starts, g, scores.shape[0])
            size = _n_levels(level, first, last)
            if size < 2:
                continue
            memset(&tree[0], 0, (size + 1) * sizeof(int32_t))
            j = first
            for i in range(first, last):
                while j < last and <double>scores[j] < <double>scores[i] + 1.0:
                    _count(&tree[0], size, size - level[j])
                    j += 1
                c[i] = _counted(&tree[0], size - level[i] - 1)
            memset(&tree[0], 0, (size + 1) * sizeof(int32_t))
            j = last - 1
            for i in range(last - 1, first - 1, -1):
                while j >= first and <double>scores[i] < <double>scores[j] + 1.0:
                    _count(&tree[0], size, level[j] + 1)
                    j -= 1
                d[i] = _counted(&tree[0], level[i])
    return lost, won


def sum_violated(
    const floating[::1] scores,
    const int32_t[::1] level,
    const Py_ssize_t[::1] starts,
    const double[::1] values,
):
    """Sum, for items sorted by score inside groups, the values over the pairs they lose and win."""
    cdef Py_ssize_t g, i, j, first, last
    cdef int32_t size
    lost, won = np.zeros(len(scores)), np.zeros(len(scores))
    cdef double[::1] c = lost, d = won, tree = np.zeros(_n_levels(level, 0, len(level)) + 1)
    with nogil:
        for g in range(starts.shape[0]):
            first, last = starts[g], _end(starts, g, scores.shape[0])
            size = _n_levels(level, first, last)
            if size < 2:
                continue
            memset(&tree[0], 0, (size + 1) * sizeof(double))
            j = first
            for i in range(first, last):
                while j < last and <double>scores[j] < <double>scores[i] + 1.0:
                    _add(&tree[0], size, size - level[j], values[j])
                    j += 1
                c[i] = _sum(&tree[0], size - level[i] - 1)
            memset(&tree[0], 0, (size + 1) * sizeof(double))
            j = last - 1
            for i in range(last - 1, first - 1, -1):
                while j >= first and <double>scores[i] < <double>scores[j] + 1.0:
                    _add(&tree[0], size, level[j] + 1, values[j])
                    j -= 1
                d[i] = _sum(&tree[0], level[i])
    return lost, won


def count_inversions(const int32_t[::1] level, const Py_ssize_t[::1] starts):
    """Count, in each group, the pairs ``p < q`` with ``level[p] > level[q]``."""
    cdef Py_ssize_t g, i, first, last
    cdef int32_t size
    cdef int64_t found
    out = np.zeros(len(starts), dtype=np.int64)
    cdef int64_t[::1] counts = out
    cdef int32_t[::1] tree = np.zeros(_n_levels(level, 0, len(level)) + 1, dtype=np.int32)
    with nogil:
        for g in range(starts.shape[0]):
            first, last = starts[g], _end(starts, g, level.shape[0])
            size, found = _n_levels(level, first, last), 0
            memset(&tree[0], 0, (size + 1) * sizeof(int32_t))
            for i in range(first, last):
                found += _counted(&tree[0], size - level[i] - 1)
                _count(&tree[0], size, size - level[i])
            counts[g] = found
    return out


def weigh_inversions(
    const int32_t[::1] level, const Py_ssize_t[::1] starts, const double[::1] weights
):
    """Sum ``weights[p] * weights[q]`` over the pairs that `count_inversions` counts."""
    cdef Py_ssize_t g, i, first, last
    cdef int32_t size
    cdef double found
    out = np.zeros(len(starts))
    cdef double[::1] sums = out, tree = np.zeros(_n_levels(level, 0, len(level)) + 1)
    with nogil:
        for g in range(starts.shape[0]):
            first, last = starts[g], _end(starts, g, level.shape[0])
            size, found = _n_levels(level, first, last), 0.0
            memset(&tree[0], 0, (size + 1) * sizeof(double))
            for i in range(first, last):
                found += weights[i] * _sum(&tree[0], size - level[i] - 1)
                _add(&tree[0], size, size - level[i], weights[i])
            sums[g] = found
    return out


cdef inline Py_ssize_t _end(
    const Py_ssize_t[::1] starts, Py_ssize_t g, Py_ssize_t n_items
) noexcept nogil:
    return starts[g + 1] if g + 1 < starts.shape[0] else n_items


cdef inline void _insert(
    const double[::1] scores, Py_ssize_t[::1] items, Py_ssize_t low, Py_ssize_t high
) noexcept nogil:
    cdef Py_ssize_t i, j, item
    for i in range(low + 1, high):
        item, j = items[i], i
        while j > low and scores[items[j - 1]] > scores[item]:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


cdef inline void _merge(
    const double[::1] scores,
    Py_ssize_t[::1] items,
    Py_ssize_t[::1] spare,
    Py_ssize_t low,
    Py_ssize_t middle,
    Py_ssize_t high,
) noexcept nogil:
    cdef Py_ssize_t i = low, j = middle, k
    for k in range(low, high):
        if j >= high or (i < middle and scores[items[i]] <= scores[items[j]]):
            spare[k] = items[i]
            i += 1
        else:
            spare[k] = items[j]
            j += 1
    for k in range(low, high):
        items[k] = spare[k]


cdef int32_t _n_levels(const int32_t[::1] level, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef int32_t largest = -1
    cdef Py_ssize_t i
    for i in range(first, last):
        if level[i] > largest:
            largest = level[i]
    return largest + 1


cdef inline void _count(int32_t* tree, int32_t size, int32_t at) noexcept nogil:
    while at <= size:
        tree[at] += 1
        at += at & -at


cdef inline int32_t _counted(const int32_t* tree, int32_t upto) noexcept nogil:
    cdef int32_t total = 0
    while upto > 0:
        total += tree[upto]
        upto &= upto - 1
    return total


cdef inline void _add(double* tree, int32_t size, int32_t at, double amount) noexcept nogil:
    while at <= size:
        tree[at] += amount
        at += at & -at


cdef inline double _sum(const double* tree, int32_t upto) noexcept nogil:
    cdef double total = 0.0
    while upto > 0:
        total += tree[upto]
        upto &= upto - 1
    return total
