"""Compare two files of `collect`: the largest differences by area, and a list of those that count.

A difference is the largest absolute difference of two arrays divided by the largest absolute value
in them. It is infinite if shapes, missing values or text differ, or if one file lacks the array.
The exit status is 1 if a difference exceeds the tolerance.
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.baseline.record import ABOUT

TINY = 1e-300
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Difference:
    """How far an array of the two files differs."""

    name: str
    size: float
    reason: str

    @property
    def area(self) -> str:
        """The area that the array belongs to."""
        return self.name.partition("/")[0]


def compare_arrays(name: str, old: np.ndarray, new: np.ndarray) -> Difference:
    """Return the relative difference of two arrays of one name."""
    if old.shape != new.shape:
        return Difference(name, np.inf, f"shape {old.shape}, now {new.shape}")
    is_number = old.dtype.kind in "biuf" and new.dtype.kind in "biuf"
    if not is_number:
        if np.array_equal(old.astype(str), new.astype(str)):
            return Difference(name, 0.0, "")
        return Difference(name, np.inf, f"{shorten(old)}, now {shorten(new)}")
    old = old.astype(np.float64)
    new = new.astype(np.float64)
    if not np.array_equal(np.isfinite(old), np.isfinite(new)):
        return Difference(name, np.inf, "other values are missing or infinite")
    is_finite = np.isfinite(old)
    if not np.array_equal(old[~is_finite], new[~is_finite], equal_nan=True):
        return Difference(name, np.inf, "other values are missing or infinite")
    largest_value = max(
        np.abs(old[is_finite]).max(initial=0), np.abs(new[is_finite]).max(initial=0)
    )
    largest_difference = np.abs(old[is_finite] - new[is_finite]).max(initial=0)
    if largest_difference == 0:
        return Difference(name, 0.0, "")
    size = float(largest_difference / max(largest_value, TINY))
    return Difference(name, size, f"by {largest_difference:.1e} of {largest_value:.1e}")


def shorten(array: np.ndarray) -> str:
    """Return the first characters of an array of text."""
    text = str(array.tolist())
    return text if len(text) <= 40 else text[:37] + "..."


def is_description(name: str) -> bool:
    """Return whether an array is the description of its problem, which is not compared."""
    return name.endswith(f"/{ABOUT}")


def describe(difference: Difference, old: Arrays, new: Arrays) -> str:
    """Return the description of the problem of a difference, by the first file that has it."""
    area, number, _ = difference.name.split("/", 2)
    name = f"{area}/{number}/{ABOUT}"
    return str(old.get(name, new.get(name, "no description")))


def compare_files(old: Arrays, new: Arrays) -> list[Difference]:
    """Return the difference of every array, those of the first file first."""
    differences = []
    for name in old:
        if is_description(name):
            continue
        if name in new:
            differences.append(compare_arrays(name, old[name], new[name]))
        else:
            differences.append(Difference(name, np.inf, "only in the first file"))
    for name in new:
        if name not in old and not is_description(name):
            differences.append(Difference(name, np.inf, "only in the second file"))
    return differences


def table(differences: list[Difference], tolerance: float) -> str:
    """Return a table: for each area the arrays, the differing ones and the largest difference."""
    by_area: dict[str, list[Difference]] = collections.defaultdict(list)
    for difference in differences:
        by_area[difference.area].append(difference)
    lines = [f"{'area':<28}  arrays  unequal  > {tolerance:<8.0e}  largest"]
    for area, members in by_area.items():
        n_unequal = sum(member.size > 0 for member in members)
        n_above = sum(member.size > tolerance for member in members)
        largest = max(member.size for member in members)
        lines.append(f"{area:<28}  {len(members):6}  {n_unequal:7}  {n_above:10}  {largest:7.1e}")
    return "\n".join(lines)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compare two files of tests.baseline.collect.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-12, help="relative; default 1e-12")
    parser.add_argument("--limit", type=int, default=50, help="differences to list; default 50")
    options = parser.parse_args()
    with np.load(options.old) as old_file, np.load(options.new) as new_file:
        old_arrays = dict(old_file)
        new_arrays = dict(new_file)
    differences = compare_files(old_arrays, new_arrays)
    print(table(differences, options.tolerance))
    above = [d for d in differences if d.size > options.tolerance]
    above.sort(key=lambda difference: -difference.size)
    print(f"\n{len(above)} of {len(differences)} arrays differ by more than {options.tolerance:g}.")
    for difference in above[: options.limit]:
        print(f"{difference.size:8.1e}  {difference.name}: {difference.reason}")
        print(f"          {describe(difference, old_arrays, new_arrays)}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
