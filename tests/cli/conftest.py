"""Files that the tests of the command read."""

import pytest

from rankwise.datasets import make_ranking, write_letor
from tests.cli.shell import NAMES, TABLE, succeed, write_table


@pytest.fixture(scope="module")
def problem():
    return make_ranking(
        n_queries=12, n_documents=(3, 8), n_features=3, noise=0.5, shuffle=True, random_state=0
    )


@pytest.fixture
def letor(tmp_path, problem):
    path = tmp_path / "train.txt"
    write_letor(path, *problem[:3])
    return path


@pytest.fixture
def table(tmp_path, problem):
    path = tmp_path / "train.csv"
    write_table(path, problem, NAMES)
    return path


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory, problem):
    folder = tmp_path_factory.mktemp("model")
    write_table(folder / "train.csv", problem, NAMES)
    succeed("train", folder / "train.csv", *TABLE, "-o", folder / "model.rw")
    return (folder / "model.rw").read_bytes()


@pytest.fixture
def model(tmp_path, model_bytes):
    path = tmp_path / "model.rw"
    path.write_bytes(model_bytes)
    return path
