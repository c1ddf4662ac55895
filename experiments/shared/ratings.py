"""Ratings of Jester and MovieLens, and how many of them are equal."""

import numpy as np

from experiments.shared.command_line import find_data

__all__ = ["read_jester", "read_movielens", "tied_share"]

NOT_RATED = 99


def read_jester(data):
    """Ratings of shape (n_users, 100), NaN where there is none."""
    (path,) = find_data(data, "jester/jester-data-1.csv.gz")
    ratings = np.loadtxt(path, delimiter=",")[:, 1:]
    return np.where(ratings == NOT_RATED, np.nan, ratings)


def read_movielens(data):
    """Ratings of shape (n_users, n_movies), NaN where there is none."""
    (path,) = find_data(data, "movielens100k/u.data.gz")
    user, movie, rating = np.loadtxt(path, dtype=int)[:, :3].T
    ratings = np.full((user.max(), movie.max()), np.nan)
    ratings[user - 1, movie - 1] = rating
    return ratings


def tied_share(y):
    """Share of the pairs of items that have the same rating."""
    _, counts = np.unique(y, return_counts=True)
    n_tied_ordered_pairs = (counts * (counts - 1)).sum()
    n_ordered_pairs = len(y) * (len(y) - 1)
    return float(n_tied_ordered_pairs / n_ordered_pairs)
