"""Rankings of PrefLib are read as ballots of voters."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise.datasets import pairs_from_frame, read_pairs
from rankwise.errors import TableFormatError
from rankwise.leaderboard import rate

HEAD = """# FILE NAME: 1.toi
# DATA TYPE: toi
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: Ann
# ALTERNATIVE NAME 2: Bob
# ALTERNATIVE NAME 3: Cleo
# ALTERNATIVE NAME 4: Bob
"""


@pytest.fixture
def ballots(tmp_path):
    file = tmp_path / "votes.toi"
    file.write_text(HEAD + "2: 1,{2,3},4\n1: 3, 1\n")
    return file


def test_ballots_are_those_of_lists_of_items(ballots):
    votes = [["Ann", ("Bob (2)", "Cleo"), "Bob (4)"]] * 2 + [["Cleo", "Ann"]]
    read = read_pairs(ballots)
    expected = pairs_from_frame(votes)
    assert read.items.tolist() == expected.items.tolist()
    for name in ("first", "second", "outcome", "weight", "clusters"):
        np.testing.assert_array_equal(getattr(read, name), getattr(expected, name))


def test_unlisted_alternatives_can_be_last(ballots):
    n_pairs = [read_pairs(ballots, unlisted=unlisted).n_pairs for unlisted in ("absent", "last")]
    assert n_pairs == [6 + 6 + 1, 6 + 6 + 5]


def test_preflib_ballots_become_a_board(ballots):
    board = rate(read_pairs(ballots), alpha=0.1)
    assert board["Ann"].rating > board["Bob (4)"].rating


@pytest.mark.parametrize("line", ["1,2,3", "x: 1,2", "2: 1,{2,3", "1: "])
def test_a_bad_order_is_refused_with_its_line(tmp_path, line):
    file = tmp_path / "votes.soc"
    file.write_text(f"{HEAD}1: 1,2\n{line}\n")
    with pytest.raises(TableFormatError, match=r"votes\.soc:9"):
        read_pairs(file)


def test_a_file_without_orders_is_refused(tmp_path):
    file = tmp_path / "votes.soi"
    file.write_text(HEAD)
    with pytest.raises(TableFormatError, match="no orders"):
        read_pairs(file)
