# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# cython: initializedcheck=False
"""Passes over a block of rows while it is in the cache: sums by group, centered and scaled rows.

The readable truth of both functions is in `group_sums_fallback.py`, with the same name and signature.
"""

from cython cimport floating


def add_rows(
    const floating[:, ::1] X,
    const Py_ssize_t[::1] group,
    const double[::1] target,
    double[:, ::1] sums,
    double[::1] moment,
    const double[::1] row_weight=None,
):
    """Add each row to the sums of its group, and ``Xᵀ target`` to the moment."""
    cdef Py_ssize_t i = 0, k, n_rows = X.shape[0], n_columns = X.shape[1]
    if n_columns == 0:
        return
    if row_weight is not None:
        with nogil:
            for k in range(n_rows):
                _add_weighted(
                    &X[k, 0], n_columns, target[k], row_weight[k], &sums[group[k], 0], &moment[0]
                )
        return
    with nogil:
        while i + 4 <= n_rows:
            if group[i] == group[i + 1] == group[i + 2] == group[i + 3]:
                _add_four(&X[i, 0], n_columns, &target[i], &sums[group[i], 0], &moment[0])
                i += 4
            else:
                for k in range(i, i + 4):
                    _add_one(&X[k, 0], n_columns, target[k], &sums[group[k], 0], &moment[0])
                i += 4
        for k in range(i, n_rows):
            _add_one(&X[k, 0], n_columns, target[k], &sums[group[k], 0], &moment[0])


def scale_rows(
    const floating[:, ::1] X,
    const Py_ssize_t[::1] group,
    const double[:, ::1] means,
    const double[::1] scale,
    double[:, ::1] out,
    const double[::1] factor=None,
):
    """Write ``scale (x − mean)`` of each row, by the mean and the scale of its group."""
    cdef Py_ssize_t i, n_columns = X.shape[1]
    cdef bint is_centered = means is not None, has_factor = factor is not None
    cdef double by
    if n_columns == 0:
        return
    with nogil:
        for i in range(X.shape[0]):
            by = scale[group[i]] * factor[i] if has_factor else scale[group[i]]
            if is_centered:
                _center(&X[i, 0], n_columns, &means[group[i], 0], by, &out[i, 0])
            else:
                _scale(&X[i, 0], n_columns, by, &out[i, 0])


cdef void _add_four(
    const floating* x, Py_ssize_t n, const double* target, double* sums, double* moment
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double a, b, c, d, u = target[0], v = target[1], w = target[2], z = target[3]
    for j in range(n):
        a, b, c, d = x[j], x[n + j], x[2 * n + j], x[3 * n + j]
        sums[j] += (a + b) + (c + d)
        moment[j] += (u * a + v * b) + (w * c + z * d)


cdef void _add_one(
    const floating* x, Py_ssize_t n, double target, double* sums, double* moment
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        sums[j] += x[j]
        moment[j] += target * x[j]


cdef void _add_weighted(
    const floating* x, Py_ssize_t n, double target, double row_weight, double* sums, double* moment
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        sums[j] += row_weight * x[j]
        moment[j] += target * x[j]


cdef void _center(
    const floating* x, Py_ssize_t n, const double* mean, double scale, double* out
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = scale * (x[j] - mean[j])


cdef void _scale(const floating* x, Py_ssize_t n, double scale, double* out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = scale * x[j]
