"""Comparisons and rankings that several tests of leaderboards use."""

import warnings

import numpy as np
from hypothesis import strategies as st

from rankwise import PairGraph
from rankwise.datasets import PairData
from rankwise.leaderboard import rate
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts


def random_games(n_items=7, n_games=60, seed=0, weights=(1.0,), levels=(0.0, 1.0, 2.5)):
    """Comparisons between random items, a chain among them so that the graph is connected."""
    rng = np.random.default_rng(seed)
    i = np.r_[np.arange(n_items - 1), rng.integers(n_items, size=n_games)]
    j = np.r_[np.arange(1, n_items), rng.integers(n_items, size=n_games)]
    i, j = i[i != j], j[i != j]
    return PairGraph(i, j, rng.choice(levels, len(i)), rng.choice(weights, len(i)), n_items=n_items)


def count_comparisons(graph):
    ends, items = (graph.winner, graph.loser), np.arange(graph.n_items)
    return ComparisonCounts.of(PairData(*ends, graph.edge_target, graph.edge_weight, items))


def consistent_games(truth, n_games, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    i = rng.integers(len(truth), size=n_games)
    j = (i + 1 + rng.integers(len(truth) - 1, size=n_games)) % len(truth)
    margin = truth[i] - truth[j] + noise * rng.standard_normal(n_games)
    won, lost = np.where(margin > 0, i, j), np.where(margin > 0, j, i)
    return PairGraph(won, lost, np.abs(margin), n_items=len(truth))


def games(seed=0, n=120, n_items=4, drift=0.0, ties=0.0, levels=2):
    """Outcomes of items whose ratings drift apart in time and differ by level."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_items, n)
    second = (first + rng.integers(1, n_items, n)) % n_items
    time, level = np.sort(rng.integers(0, 4, n)).astype(float), rng.integers(0, levels, n)
    base, slope = rng.normal(size=n_items), drift * rng.normal(size=n_items)
    rating = base + slope * time[:, None]
    rows = np.arange(n)
    chance = 1 / (1 + np.exp(rating[rows, second] - rating[rows, first]))
    said = np.where(rng.random(n) < chance, "left", "right")
    said = np.where(rng.random(n) < ties, "tie", said)
    names = np.array(list("abcdefghij"))
    return {
        "left": names[first], "right": names[second], "better": said, "year": time,
        "place": np.array(["home", "sea", "hill"])[level],
    }  # fmt: skip


COLUMNS = {"sides": ("left", "right"), "outcome": "better"}


IN_CONTEXT = {**COLUMNS, "time": "year", "context": "place"}


def random_lists(seed=0, n=60, names="abcde", shared=False):
    rng = np.random.default_rng(seed)
    lists = [
        list(rng.permutation(list(names))[: rng.integers(2, len(names) + 1)]) for _ in range(n)
    ]
    if shared:
        lists = [[*one[:-2], (one[-2], one[-1])] if len(one) > 2 else one for one in lists]
    return lists


@st.composite
def graphs(draw):
    """Graphs of 2 to 6 items, connected or not, with ties, weights and repeated pairs."""
    n = draw(st.integers(2, 6))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1])
    number = st.sampled_from([0.5, 1.0, 2.0, 3.25])
    edge = st.tuples(ends, st.one_of(st.just(0.0), number), number)
    edges = draw(st.lists(edge, min_size=1, max_size=12))
    winner, loser = np.array([ends for ends, _, _ in edges]).T
    magnitude, weight = (np.array([edge[k] for edge in edges]) for k in (1, 2))
    return PairGraph(winner, loser, magnitude, weight, n_items=n)


def quiet_rate(*arguments, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the items are in")
        return rate(*arguments, **options)
