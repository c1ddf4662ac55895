"""Counts of real data sets; skipped where the data are not (they are not part of the project)."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise.datasets import read_group_sizes, read_letor, read_pairs
from rankwise.errors import LetorFormatError

FOLDER = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")


def real(*names):
    paths = [FOLDER / name for name in names]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        pytest.skip(f"no {missing[0]}; set RANKWISE_DATA to the folder of the real data")
    return paths


def counts(data):
    return (*data.X.shape, len(np.unique(data.groups)), np.bincount(data.y.astype(int)).tolist())


def n_pairs(data):
    sizes = np.unique(np.c_[data.groups, data.y], axis=0, return_counts=True)
    cells = {}
    for (group, _), size in zip(*sizes, strict=True):
        cells.setdefault(group, []).append(int(size))
    return sum((sum(c) ** 2 - sum(s * s for s in c)) // 2 for c in cells.values())


@pytest.mark.parametrize("version", ["QueryLevelNorm", "Feature-min"])
def test_ohsumed(version):
    data = read_letor(
        real(*(f"ohsumed/{version}/S{fold}.txt.gz" for fold in range(1, 6))), ids=True
    )
    assert counts(data) == (16_140, 45, 106, [11_303, 2_585, 2_252])
    assert n_pairs(data) == 582_588
    assert isinstance(data.X, np.ndarray)
    assert all(name.startswith("docid = ") for name in data.ids)


def test_ohsumed_with_missing_values():
    (path,) = real("ohsumed/Feature-null/S1.txt.gz")
    with pytest.raises(LetorFormatError, match=r"got '11:NULL'.*is left out") as e:
        read_letor(path)
    assert (e.value.path, e.value.line) == (str(path), 5)


def test_mq2008():
    data = read_letor(real(*(f"mq2008/S{fold}.txt.gz" for fold in range(1, 6))), ids=True)
    assert counts(data) == (15_211, 46, 784, [12_279, 2_001, 931])
    assert n_pairs(data) == 80_925
    assert " inc = " in data.ids[0]


@pytest.mark.parametrize("part, n_rows, n_groups", [("train", 3_005, 201), ("test", 768, 50)])
def test_lightgbm_example(part, n_rows, n_groups):
    path, side = real(f"lightgbm_rank/rank.{part}.gz", f"lightgbm_rank/rank.{part}.query.gz")
    data = read_letor(path, n_features=300)
    assert data.X.shape == (n_rows, 300)
    assert sp.issparse(data.X)
    assert np.bincount(data.groups).tolist() == read_group_sizes(side).tolist()
    assert data.groups.max() + 1 == n_groups
    assert set(data.y) == {0, 1, 2, 3, 4}
    assert read_letor(path, group_sizes=None).groups is None


@pytest.mark.parametrize("part, n_groups, pairs", [("train", 22, 163), ("test", 20, 174)])
def test_bioinfer_parses(part, n_groups, pairs):
    data = read_letor(real(f"bioinfer_parse/rank_{part}.light.gz"))
    assert sp.issparse(data.X)
    assert data.X.shape[0] == 100
    assert 190_000 < data.X.shape[1] < 200_000
    assert len(np.unique(data.groups)) == n_groups
    assert n_pairs(data) == pairs
    assert 0.18 <= data.y.min() < data.y.max() == 1


def test_tennis():
    paths = real(*(f"atp_tennis/atp_matches_{year}.csv.gz" for year in range(2010, 2020)))
    seasons = [read_pairs(path, winner="winner_id", loser="loser_id") for path in paths]
    assert sum(season.n_pairs for season in seasons) == 29_397
    assert len(set().union(*(season.items.tolist() for season in seasons))) == 1_272
