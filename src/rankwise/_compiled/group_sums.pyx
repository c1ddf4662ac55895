# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# cython: initializedcheck=False
"""Passes over a block of rows while it is in the cache: sums by family, centered and scaled rows.

The readable truth of both functions is in `group_sums_fallback.py`, with the same name and signature.
"""

from cython cimport floating


def add_rows(
    const floating[:, ::1] X,
    const Py_ssize_t[::1] family,
    const double[::1] weight,
    double[:, ::1] sums,
    double[::1] moment,
    const double[::1] mass=None,
):
    """Add each row to the sums of its family, and ``Xᵀ weight`` to the moment."""
    cdef Py_ssize_t i = 0, k, n_rows = X.shape[0], n_columns = X.shape[1]
    if n_columns == 0:
        return
    if mass is not None:
        with nogil:
            for k in range(n_rows):
                _add_mass(
                    &X[k, 0], n_columns, weight[k], mass[k], &sums[family[k], 0], &moment[0]
                )
        return
    with nogil:
        while i + 4 <= n_rows:
            if family[i] == family[i + 1] == family[i + 2] == family[i + 3]:
                _add_four(&X[i, 0], n_columns, &weight[i], &sums[family[i], 0], &moment[0])
                i += 4
            else:
                for k in range(i, i + 4):
                    _add_one(&X[k, 0], n_columns, weight[k], &sums[family[k], 0], &moment[0])
                i += 4
        for k in range(i, n_rows):
            _add_one(&X[k, 0], n_columns, weight[k], &sums[family[k], 0], &moment[0])


def scale_rows(
    const floating[:, ::1] X,
    const Py_ssize_t[::1] family,
    const double[:, ::1] means,
    const double[::1] scale,
    double[:, ::1] out,
    const double[::1] factor=None,
):
    """Write ``scale (x − mean)`` of each row, by the mean and the scale of its family."""
    cdef Py_ssize_t i, n_columns = X.shape[1]
    cdef bint is_centered = means is not None, has_factor = factor is not None
    cdef double by
    if n_columns == 0:
        return
    with nogil:
        for i in range(X.shape[0]):
            by = scale[family[i]] * factor[i] if has_factor else scale[family[i]]
            if is_centered:
                _center(&X[i, 0], n_columns, &means[family[i], 0], by, &out[i, 0])
            else:
                _scale(&X[i, 0], n_columns, by, &out[i, 0])


cdef void _add_four(
    const floating* x, Py_ssize_t n, const double* weight, double* sums, double* moment
) noexcept nogil:
    cdef Py_ssize_t j
    cdef double a, b, c, d, u = weight[0], v = weight[1], w = weight[2], z = weight[3]
    for j in range(n):
        a, b, c, d = x[j], x[n + j], x[2 * n + j], x[3 * n + j]
        sums[j] += (a + b) + (c + d)
        moment[j] += (u * a + v * b) + (w * c + z * d)


cdef void _add_one(
    const floating* x, Py_ssize_t n, double weight, double* sums, double* moment
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        sums[j] += x[j]
        moment[j] += weight * x[j]


cdef void _add_mass(
    const floating* x, Py_ssize_t n, double weight, double mass, double* sums, double* moment
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        sums[j] += mass * x[j]
        moment[j] += weight * x[j]


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
