"""What is wrong with a row of a LETOR file that the reader does not take, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.datasets.labels import MAX_LABEL, finite_number, show
from rankwise.errors import LetorFormatError

__all__ = ["MOST_COLUMNS", "RowRules", "check_qid", "refuse_line", "split_row"]

LARGEST_FEATURE = 2**31 - 1
#: More columns are read only if the caller says so: a model has a coefficient for each.
MOST_COLUMNS = 2**27
_MISSING = {b"", b"NULL", b"NA", b"N/A", b"NAN", b"NONE", b"?", b"-"}
_FORM = "a row reads 'label qid:group feature:value feature:value ... # comment'"


class RowRules(NamedTuple):
    """What a row must satisfy besides its form."""

    zero_based: bool
    n_features: int | None
    dtype: np.dtype[Any]


def split_row(line: bytes) -> tuple[bytes, bytes | None, bytes]:
    r"""Split a line into its row without the qid, the qid and the comment.

    Examples
    --------
    >>> split_row(b"2 qid:7 1:0.5 3:1  # doc 4\r\n")
    (b'2 1:0.5 3:1  ', b'7', b' doc 4\r\n')
    >>> split_row(b"2 1:0.5")
    (b'2 1:0.5', None, b'')
    """
    body, _, comment = line.partition(b"#")
    words = body.split(None, 2)
    if len(words) < 2 or not words[1].startswith(b"qid:"):
        return body, None, comment
    features = words[2] if len(words) == 3 else b""
    return words[0] + b" " + features, words[1][4:], comment


def check_qid(qid: bytes, path: str, line: int) -> None:
    """Raise a LetorFormatError unless the qid is a short text in UTF-8."""
    if not qid:
        raise LetorFormatError(
            path, line, "'qid:' has no group behind it. Write for example qid:7, without a space."
        )
    try:
        text = qid.decode("utf-8")
    except UnicodeDecodeError:
        raise LetorFormatError(
            path, line, f"the qid {show(qid)} is not text in UTF-8. Use plain numbers or words."
        ) from None
    if len(text) > MAX_LABEL:
        raise LetorFormatError(
            path,
            line,
            f"the qid {show(qid)} has {len(text)} characters, at most {MAX_LABEL} are read. "
            "Number the groups instead.",
        )


def refuse_line(path: str, number: int, line: bytes, rules: RowRules) -> None:
    """Raise a LetorFormatError that says why a line cannot be read, and what to do."""
    body, qid, _ = split_row(line)
    if qid is not None:
        check_qid(qid, path, number)
    problem = _row_problem(body, rules) or "this row is not in the LETOR format."
    raise LetorFormatError(path, number, problem)


def _row_problem(body: bytes, rules: RowRules) -> str | None:
    """What is wrong with a row without qid and comment."""
    words = body.split()
    problem = _label_problem(words[0])
    before = -1
    for word in words[1:]:
        if problem is not None:
            return problem
        name, colon, value = word.partition(b":")
        if not colon or name.lower().startswith(b"qid"):
            return _word_problem(word)
        if not _is_feature_id(name):
            return f"the feature id {show(name)} is not a whole number from 0 to {LARGEST_FEATURE}."
        feature = int(name)
        problem = _feature_problem(feature, before, rules) or _value_problem(feature, value, rules)
        before = feature
    return problem


def _is_feature_id(name: bytes) -> bool:
    digits = name.removeprefix(b"+")
    return digits.isdigit() and len(digits) <= 10 and int(digits) <= LARGEST_FEATURE


def _label_problem(label: bytes) -> str | None:
    if finite_number(label) is not None:
        return None
    if label.upper() in _MISSING or label.lower() in (b"inf", b"-inf"):
        return (
            f"the label is {show(label)}, expected a finite number. "
            "Leave out the rows that have no label."
        )
    if b":" in label:
        return f"the row starts with {show(label)}, expected a label first: {_FORM}."
    return f"the label is {show(label)}, expected a number: {_FORM}."


def _word_problem(word: bytes) -> str:
    if word.lower().startswith(b"qid"):
        return (
            f"{show(word)} is not in its place: the group is written once, in small letters, "
            f"right after the label, for {_FORM}."
        )
    return f"got {show(word)}, expected feature:value without spaces: {_FORM}."


def _feature_problem(feature: int, before: int, rules: RowRules) -> str | None:
    if feature == 0 and not rules.zero_based:
        return (
            "feature id 0, but ids are expected to start at 1. "
            "Pass zero_based=True if the file counts from 0."
        )
    if feature == before:
        return f"feature {feature} is given twice in one row. Keep one of its values."
    if feature < before:
        return (
            f"feature {feature} comes after feature {before}; ids must increase along a row. "
            "Sort the features of each row by id."
        )
    n_named = feature + 1 if rules.zero_based else feature
    if rules.n_features is not None and n_named > rules.n_features:
        return (
            f"feature {feature} does not fit into n_features={rules.n_features}. "
            "Pass a larger n_features, or None to take the largest id of the file."
        )
    if rules.n_features is None and n_named > MOST_COLUMNS:
        return (
            f"feature id {feature}: a coefficient for each feature up to it would take "
            f"{n_named / 2**27:.1f} GiB. Number the features of the file from 1 on (hashes: take "
            f"the remainder by 2**20 or so); if there are so many, pass n_features={n_named}."
        )
    return None


def _value_problem(feature: int, value: bytes, rules: RowRules) -> str | None:
    number = finite_number(value)
    if number is not None:
        largest = float(np.finfo(rules.dtype).max)
        if abs(number) <= largest:
            return None
        return f"feature {feature} is {show(value)}, too large for {rules.dtype}. Use float64."
    if value.upper() in _MISSING:
        return (
            f"the value of feature {feature} is missing ({show(value)}); missing values are not "
            "read. Fill it in before reading, for example with the smallest value of the feature "
            "in the query; or take a version of the data without gaps (LETOR: Feature-min); or "
            f"delete '{feature}:{value.decode('ascii')}' from the row, which means 0."
        )
    return f"the value of feature {feature} is {show(value)}, expected a finite number."
