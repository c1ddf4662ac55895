# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# cython: initializedcheck=False
"""Rows ``label qid:group feature:value ... # comment`` of a text, in one pass.

The readable truth is in `letor_rows_fallback.py`, with the same name and signature. Decimals become the
nearest double, as Python's `float` has it: by one exact product where digits and power of ten are
small (Clinger, 1990), else by the 128 bits of a power of five (Lemire, "Number parsing at a
gigabyte per second", 2021), and by Python itself where these bits do not decide.
"""

from libc.float cimport DBL_MAX
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

import numpy as np

ctypedef const unsigned char* Text

cdef enum:
    LEAST_POWER = -342
    LARGEST_POWER = 308
    MOST_DIGITS = 19  # the decimal digits that fit in 64 bits

cdef double[23] TENS  # the powers of ten that are doubles
cdef int _k
for _k in range(23):
    TENS[_k] = float(f"1e{_k}")


def _powers_of_five():
    """The first 128 bits of every power, in two halves; rounded up where 5^-power has 64 bits."""
    table = np.empty((LARGEST_POWER - LEAST_POWER + 1, 2), dtype=np.uint64)
    for power, row in zip(range(LEAST_POWER, LARGEST_POWER + 1), table):
        five = pow(5, abs(power))
        bits = five << 128 if power >= 0 else (1 << five.bit_length() + 256) // five
        bits >>= bits.bit_length() - 128
        bits += -27 <= power < 0
        row[0], row[1] = bits >> 64, bits & ((1 << 64) - 1)
    return table


cdef uint64_t[:, ::1] FIVES = _powers_of_five()


def read_rows(const unsigned char[::1] text, bint zero_based, int64_t n_columns, double largest):
    """Read rows up to the first that is not right."""
    cdef Text start = NULL, p, end, line_start
    cdef int64_t n_rows = 0, n_entries = 0, n_heads = 0, line = 0, n_lines = 0, n_colons = 0
    cdef int64_t column, before, shift = 0 if zero_based else 1
    cdef double value
    cdef bint is_read = True
    if text.shape[0]:
        if text[text.shape[0] - 1] != 10:
            raise ValueError("the text has to end with a line feed")
        start = &text[0]
    p, end = start, start + text.shape[0]
    with nogil:
        _count(text, &n_lines, &n_colons)
    labels, sizes = np.empty(n_lines), np.empty(n_lines, dtype=np.int64)
    lines, heads = np.empty(n_lines, dtype=np.int64), np.empty(n_lines, dtype=np.int64)
    qids, comments = np.empty((n_lines, 2), np.int64), np.empty((n_lines, 2), np.int64)
    columns, values = np.empty(n_colons, dtype=np.int32), np.empty(n_colons)
    cdef double[::1] out_labels = labels, out_values = values
    cdef int64_t[::1] out_sizes = sizes, out_lines = lines, out_heads = heads
    cdef int64_t[:, ::1] out_qids = qids, out_comments = comments
    cdef int32_t[::1] out_columns = columns
    cdef int64_t first
    with nogil:
        while p < end:
            line_start = p
            p = _skip_blanks(p)
            if p[0] == 10 or p[0] == 35:  # nothing, or a comment
                p = <Text> memchr(p, 10, end - p) + 1
                line += 1
                continue
            p = _decimal(p, &value)
            if p == NULL or not _ends_word(p[0]) or not -DBL_MAX <= value <= DBL_MAX:
                is_read = False
                break
            out_labels[n_rows] = value
            p = _skip_blanks(p)
            out_qids[n_rows, 0] = out_qids[n_rows, 1] = -1
            if p[0] == 113 and p[1] == 105 and p[2] == 100 and p[3] == 58:  # qid:
                p += 4
                out_qids[n_rows, 0] = p - start
                while not _ends_word(p[0]):
                    p += 1
                out_qids[n_rows, 1] = p - start
            before, first = -1, n_entries
            while True:
                p = _skip_blanks(p)
                if p[0] == 10 or p[0] == 35:
                    break
                p = _feature(p, &column)
                if p == NULL:
                    is_read = False
                    break
                column -= shift
                p = _decimal(p, &value)
                if (
                    p == NULL
                    or column <= before
                    or column >= n_columns
                    or not _ends_word(p[0])
                    or not -largest <= value <= largest
                ):
                    is_read = False
                    break
                before = column
                out_columns[n_entries] = <int32_t> column
                out_values[n_entries] = value
                n_entries += 1
            if not is_read:
                n_entries = first
                break
            out_comments[n_rows, 0] = p - start + (p[0] == 35)
            p = <Text> memchr(p, 10, end - p)
            out_comments[n_rows, 1] = p - start
            p += 1
            out_sizes[n_rows] = n_entries - first
            out_lines[n_rows] = line
            if n_rows == 0 or not _equal(start, out_qids, n_rows):
                out_heads[n_heads] = n_rows
                n_heads += 1
            n_rows += 1
            line += 1
        if not is_read:
            end = line_start
    return (
        labels[:n_rows],
        sizes[:n_rows],
        columns[:n_entries],
        values[:n_entries],
        lines[:n_rows],
        qids[:n_rows],
        heads[:n_heads],
        comments[:n_rows],
        end - start,
    )


cdef void _count(
    const unsigned char[::1] text, int64_t* n_lines, int64_t* n_colons
) noexcept nogil:
    cdef Py_ssize_t k
    cdef int64_t ends = 0, colons = 0
    for k in range(text.shape[0]):
        ends += text[k] == 10
        colons += text[k] == 58
    n_lines[0], n_colons[0] = ends, colons


cdef inline Text _skip_blanks(Text p) noexcept nogil:
    """Over spaces, tabs, carriage returns, vertical tabs and form feeds."""
    while p[0] == 32 or p[0] == 9 or 11 <= p[0] <= 13:
        p += 1
    return p


cdef inline bint _ends_word(unsigned char c) noexcept nogil:
    return c == 32 or c == 10 or c == 35 or c == 9 or 11 <= c <= 13


cdef inline bint _equal(Text start, int64_t[:, ::1] qids, int64_t row) noexcept nogil:
    """Whether a row has the qid of the row before it."""
    cdef int64_t size = qids[row, 1] - qids[row, 0]
    if (qids[row, 0] < 0) != (qids[row - 1, 0] < 0) or size != qids[row - 1, 1] - qids[row - 1, 0]:
        return False
    return qids[row, 0] < 0 or memcmp(start + qids[row, 0], start + qids[row - 1, 0], size) == 0


cdef inline Text _feature(Text p, int64_t* feature) noexcept nogil:
    """Behind the colon of a feature id of at most 31 bits; NULL if there is none."""
    cdef int64_t number = 0
    cdef Text start
    if p[0] == 43:  # a plus sign
        p += 1
    start = p
    while 48 <= p[0] <= 57 and p - start < 11:
        number = 10 * number + (p[0] - 48)
        p += 1
    if p == start or p[0] != 58 or p - start > 10 or number > 2147483647:
        return NULL
    feature[0] = number
    return p + 1


cdef inline Text _decimal(Text p, double* value) noexcept nogil:
    """Behind a decimal number; NULL if there is none.

    The text goes on with a line feed at some time, so that no step leads out of it.
    """
    cdef Text start = p, first, point
    cdef bint is_negative = p[0] == 45, is_less
    cdef uint64_t digits = 0
    cdef int64_t n_digits, power = 0, exponent = 0
    if is_negative or p[0] == 43:
        p += 1
    first = p
    while 48 <= p[0] <= 57:
        digits = 10 * digits + (p[0] - 48)
        p += 1
    n_digits = p - first
    if p[0] == 46:
        p += 1
        point = p
        while 48 <= p[0] <= 57:
            digits = 10 * digits + (p[0] - 48)
            p += 1
        power = point - p
        n_digits -= power
    if n_digits == 0:
        return NULL
    if p[0] == 101 or p[0] == 69:  # an e
        p += 1
        is_less = p[0] == 45
        if is_less or p[0] == 43:
            p += 1
        if not 48 <= p[0] <= 57:
            return NULL
        while 48 <= p[0] <= 57:
            if exponent < 100000:
                exponent = 10 * exponent + (p[0] - 48)
            p += 1
        power += -exponent if is_less else exponent
    if n_digits > MOST_DIGITS:
        while n_digits > MOST_DIGITS and (first[0] == 48 or first[0] == 46):
            n_digits -= first[0] == 48
            first += 1
    if n_digits > MOST_DIGITS:
        value[0] = _exact(start, p)
    elif digits <= 9007199254740992ULL and -22 <= power <= 22:
        value[0] = digits / TENS[-power] if power < 0 else digits * TENS[power]
        if is_negative:
            value[0] = -value[0]
    elif not _scaled(digits, power, is_negative, value):
        value[0] = _exact(start, p)
    return p


cdef double _exact(Text start, Text end) noexcept nogil:
    with gil:
        return float(start[: end - start])


cdef inline uint64_t _product(uint64_t a, uint64_t b, uint64_t* low) noexcept nogil:
    """The upper and the lower half of a product of 128 bits."""
    cdef uint64_t a0 = a & 0xFFFFFFFFULL, a1 = a >> 32, b0 = b & 0xFFFFFFFFULL, b1 = b >> 32
    cdef uint64_t middle = a1 * b0 + (a0 * b0 >> 32)
    cdef uint64_t other = a0 * b1 + (middle & 0xFFFFFFFFULL)
    low[0] = a * b
    return a1 * b1 + (middle >> 32) + (other >> 32)


cdef bint _scaled(uint64_t digits, int64_t power, bint is_negative, double* value) noexcept nogil:
    """The double nearest to digits · 10^power, or False where that takes more bits."""
    cdef uint64_t high, low, more, unused, mantissa
    cdef int64_t binary
    cdef int zeros = 0, upper
    if digits == 0 or power < LEAST_POWER or power > LARGEST_POWER:
        return False
    while not digits >> 63:
        digits <<= 1
        zeros += 1
    high = _product(digits, FIVES[power - LEAST_POWER, 0], &low)
    if high & 0x1FF == 0x1FF:  # the bits below those kept may carry
        more = _product(digits, FIVES[power - LEAST_POWER, 1], &unused)
        low += more
        high += low < more
    if low == 0xFFFFFFFFFFFFFFFFULL and not -27 <= power <= 55:
        return False
    upper = <int> (high >> 63)
    mantissa = high >> (upper + 9)
    # 217706 / 2^16 is the logarithm of ten to the base two
    binary = (217706 * power >> 16) + 63 + upper - zeros + 1023
    if binary <= 0 or binary >= 2046:
        return False
    if low <= 1 and -4 <= power <= 23 and mantissa & 3 == 1 and mantissa << (upper + 9) == high:
        mantissa &= ~(<uint64_t> 1)  # half way between two doubles: to the even one
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >> 53:
        mantissa >>= 1
        binary += 1
    mantissa = (mantissa & 0xFFFFFFFFFFFFFULL) | (<uint64_t> binary << 52)
    mantissa |= <uint64_t> is_negative << 63
    memcpy(value, &mantissa, 8)
    return True
