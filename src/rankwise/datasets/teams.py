"""Teams: sides of comparisons that have several items as members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property


@dataclass(frozen=True, eq=False)
class Teams:
    """Members of teams, one row for each member of each team.

    Attributes
    ----------
    team : ndarray of int, shape (n_rows,)
        Number of the team, in increasing order from 0.
    item : ndarray of int, shape (n_rows,)
        Position of the member in the labels of the items.
    share : ndarray of shape (n_rows,)
        Weight of the member in the team: 1, or less for a member who played a part of the time.

    Examples
    --------
    >>> from rankwise.datasets import pairs_from_frame
    >>> games = {"winner": [("Ann", "Bob")], "loser": [("Cleo", "Dan")]}
    >>> data = pairs_from_frame(games)
    >>> teams = data.teams
    >>> teams.n_teams, teams.sizes, data.items[teams.item]
    (2, array([2, 2]), array(['Ann', 'Bob', 'Cleo', 'Dan'], dtype='<U4'))
    """

    team: Indices
    item: Indices
    share: Array

    @property
    def n_teams(self) -> int:
        """Number of teams."""
        return int(self.team[-1]) + 1

    @cached_property
    def sizes(self) -> Indices:
        """Number of members of each team."""
        return np.bincount(self.team)

    def take(self, teams: Indices) -> Teams:
        """Return some of the teams, numbered in increasing order.

        Parameters
        ----------
        teams : ndarray of int
            Numbers of the teams.

        Returns
        -------
        Teams
            The teams.
        """
        new_number_of_team = np.full(self.n_teams, -1)  # -1: not taken
        new_number_of_team[teams] = np.arange(len(teams))
        # a row is a member of a team
        new_team_of_row = new_number_of_team[self.team]
        is_row_taken = new_team_of_row >= 0
        return Teams(
            team=new_team_of_row[is_row_taken],
            item=self.item[is_row_taken],
            share=self.share[is_row_taken],
        )

    def compact(self) -> tuple[Teams, Indices]:
        """Return the same teams of the items that are members, and the positions of these items.

        Returns
        -------
        tuple of Teams and ndarray
            The teams, and the old position of each item.
        """
        # items that are members of a team, and the position among them of each member
        old_positions, new_position_of_member = np.unique(self.item, return_inverse=True)
        return Teams(self.team, new_position_of_member, self.share), old_positions
