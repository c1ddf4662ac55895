"""What is wrong with a row of a LETOR file that the reader does not take, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.datasets.labels import MAX_LABEL, finite_number, show
from rankwise.errors import LetorFormatError

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


def split_row(line: bytes) -> tuple[bytes, bytes | None]:
    r"""Split a line into its row without qid and comment, and the qid.

    Examples
    --------
    >>> split_row(b"2 qid:7 1:0.5 3:1  # doc 4\r\n")
    (b'2 1:0.5 3:1  ', b'7')
    """
    body = line.partition(b"#")[0]
    label, qid, *features = [*body.split(None, 2), b"", b""][:3]
    return (b" ".join([label, *features]), qid[4:]) if qid.startswith(b"qid:") else (body, None)


def check_qid(qid: bytes, path: str, line: int) -> None:
    """Raise a LetorFormatError unless the qid is a short text in UTF-8."""
    problem = ""
    text = qid.decode("utf-8", "replace")
    if not qid:
        problem = "'qid:' has no group behind it. Write for example qid:7, without a space."
    elif text.encode("utf-8") != qid:
        problem = f"the qid {show(qid)} is not text in UTF-8. Use plain numbers or words."
    elif len(text) > MAX_LABEL:
        problem = (
            f"the qid {show(qid)} has {len(text)} characters, at most {MAX_LABEL} are read. "
            "Number the groups instead."
        )
    if problem:
        raise LetorFormatError(path, line, problem)


def refuse_line(path: str, number: int, line: bytes, rules: RowRules) -> None:
    """Raise a LetorFormatError that says why a line cannot be read, and what to do."""
    body, qid = split_row(line)
    if qid is not None:
        check_qid(qid, path, number)
    label, *words = body.split()
    problem, before = _label_problem(label), -1
    for word in words:
        problem = problem or _word_problem(word) or _feature_problem(word, before, rules)
        if problem:
            break
        before = int(word.partition(b":")[0])
    raise LetorFormatError(path, number, problem or "this row is not in the LETOR format.")


def _label_problem(label: bytes) -> str:
    if finite_number(label) is not None:
        return ""
    if b":" in label:
        return f"the row starts with {show(label)}, expected a label first: {_FORM}."
    return (
        f"the label is {show(label)}, expected a number, and a finite one: {_FORM}. "
        "Leave out the rows that have no label."
    )


def _word_problem(word: bytes) -> str:
    """What is wrong with the form of a feature and its value."""
    name, colon, _ = word.partition(b":")
    digits = name.removeprefix(b"+")
    if word.lower().startswith(b"qid"):
        return (
            f"{show(word)} is not in its place: the group is written once, in small letters, "
            f"right after the label, for {_FORM}."
        )
    if not colon:
        return f"got {show(word)}, expected feature:value without spaces: {_FORM}."
    if not (digits.isdigit() and len(digits) <= 10 and int(digits) <= LARGEST_FEATURE):
        return f"the feature id {show(name)} is not a whole number from 0 to {LARGEST_FEATURE}."
    return ""


def _feature_problem(word: bytes, before: int, rules: RowRules) -> str:
    """What is wrong with a feature or its value, after the feature `before`."""
    name, _, value = word.partition(b":")
    feature, number = int(name), finite_number(value)
    n_named = feature + 1 if rules.zero_based else feature
    if n_named == 0:
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
    if n_named > (rules.n_features or MOST_COLUMNS):
        return _too_many(feature, n_named, rules.n_features)
    if value.upper() in _MISSING:
        return (
            f"the value of feature {feature} is missing ({show(value)}). Fill it in before "
            "reading, for example with the smallest value of the feature in the query; or take a "
            "version of the data without gaps (LETOR: Feature-min); or delete the feature from the "
            "row, which means 0."
        )
    if number is None:
        return f"the value of feature {feature} is {show(value)}, expected a finite number."
    if abs(number) > float(np.finfo(rules.dtype).max):
        return f"feature {feature} is {show(value)}, too large for {rules.dtype}. Use float64."
    return ""


def _too_many(feature: int, n_named: int, n_features: int | None) -> str:
    if n_features is not None:
        return (
            f"feature {feature} does not fit into n_features={n_features}. "
            "Pass a larger n_features, or None to take the largest id of the file."
        )
    return (
        f"feature id {feature}: a coefficient for each feature up to it would take "
        f"{n_named / 2**27:.1f} GiB. Number the features of the file from 1 on (hashes: take "
        f"the remainder by 2**20 or so). If there are so many, pass n_features={n_named}."
    )
