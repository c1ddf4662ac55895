"""The baseline is deterministic, notices a changed number, and finds all of its names."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.baseline import names
from tests.baseline.compare import compare_arrays, compare_files
from tests.baseline.record import Record

SMALL_AREAS = ("rank_rls_pairs", "votes_to_flip")


def run_module(module, *arguments, hash_seed=0):
    return subprocess.run(
        [sys.executable, "-m", f"tests.baseline.{module}", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("baseline")
    areas = [argument for area in SMALL_AREAS for argument in ("--area", area)]
    for hash_seed, name in enumerate(("one.npz", "two.npz")):
        done = run_module("collect", folder / name, "--quick", *areas, hash_seed=hash_seed)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_two_processes_store_identical_numbers(files):
    with np.load(files / "one.npz") as one, np.load(files / "two.npz") as two:
        assert set(one) == set(two)
        assert {name.partition("/")[0] for name in one} == set(SMALL_AREAS)
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])
    done = run_module("compare", files / "one.npz", files / "two.npz", "--tolerance", 0)
    assert done.returncode == 0


def test_one_changed_number_is_listed(files):
    with np.load(files / "one.npz") as file:
        arrays = dict(file)
    name = next(name for name in arrays if name.endswith("/predict"))
    arrays[name] = arrays[name].copy()
    arrays[name][0] += 1e-9 * np.abs(arrays[name]).max()
    np.savez(files / "changed.npz", **arrays)
    done = run_module("compare", files / "one.npz", files / "changed.npz")
    assert done.returncode == 1
    assert name in done.stdout
    assert "1 of " in done.stdout
    about = str(arrays[name.replace("/predict", "/about")])
    assert " items, " in about
    assert about in done.stdout
    loose = run_module("compare", files / "one.npz", files / "changed.npz", "--tolerance", 1e-8)
    assert loose.returncode == 0


@pytest.mark.parametrize(
    "old, new",
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0]),
        ([1.0, np.nan], [1.0, 2.0]),
        ([1.0, np.inf], [1.0, -np.inf]),
        (["a"], ["b"]),
        ([1.0], ["1.0 m"]),
    ],
)
def test_other_shapes_missing_values_and_text_are_infinite_differences(old, new):
    assert compare_arrays("x", np.array(old), np.array(new)).size == np.inf
    assert compare_arrays("x", np.array(old), np.array(old)).size == 0


def test_differences_are_relative_to_the_largest_value():
    size = compare_arrays("x", np.array([100.0, 1.0]), np.array([100.0, 1.5])).size
    assert size == pytest.approx(0.005)


def test_an_array_of_one_file_only_is_a_difference():
    arrays = {"x": np.ones(2)}
    assert [d.size for d in compare_files(arrays, {})] == [np.inf]
    assert [d.size for d in compare_files({}, arrays)] == [np.inf]


def test_every_symbol_is_installed_under_one_of_its_spellings():
    for name in names.SYMBOLS:
        if name != "DistributedRankRLS":  # needs Dask
            assert names.find(name) is not None


def test_descriptions_are_not_compared():
    one = Record("area/0000")
    one.describe("RankRLS(alpha=1.0,\n        kernel=<function f at 0x7f00>)", "12 items")
    assert str(one.arrays["area/0000/about"]) == "RankRLS(alpha=1.0, kernel=<function f>); 12 items"
    assert compare_files(one.arrays, {"area/0000/about": np.array("other")}) == []
    assert compare_files({}, one.arrays) == []


def test_results_with_old_keys_are_stored_under_the_new_ones():
    record = Record("area/0000")
    record.add("row", {"holds_by": 3, "rating": None})
    assert set(record.arrays) == {"area/0000/row.votes_to_flip", "area/0000/row.rating"}
    assert np.isnan(record.arrays["area/0000/row.rating"])
