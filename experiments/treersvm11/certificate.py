"""No paper: is the lower bound of RankSVM ever above what another solver achieves?

    python -m experiments.treersvm11.certificate [--problems 10000] [--seed 0]

Small random problems of every nasty kind, see `draw_problem`. The minimum is approached from above
by an independent solver over explicit pairs; every value it achieves, and that of the model itself,
is computed in long double from the features as they were given. The bound may not be above the
lowest of them, not even by rounding: an allowance for rounding has been taken off it.
"""

import warnings
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import PairGraph, RankSVM, ScoreGraph

__all__ = ["Judged", "Problem", "draw_problem", "judge", "main"]

EXACT = np.longdouble
TIGHT = 1e-6  # relative distance at which the independent solver has found the minimum


class Problem(NamedTuple):
    """A RankSVM with its data, and the pairs that it never forms."""

    kinds: tuple[str, ...]
    model: RankSVM
    X: Any
    graph: ScoreGraph | PairGraph
    winner: np.ndarray
    loser: np.ndarray
    share: np.ndarray

    def differences(self):
        """Of the features of each pair, in long double."""
        X = self.X
        if sp.issparse(X):
            X = X.toarray()
        X = X.astype(EXACT)
        return X[self.winner] - X[self.loser]


class Judged(NamedTuple):
    """What a bound is worth, relative to the lowest objective known."""

    excess: float  # of the bound over it; positive is wrong
    gap: float  # what the model says of itself
    distance: float  # of the lowest objective from the dual value of the independent solver
    end: str


def draw_problem(rng):
    """Scales 1e±12, offsets, duplicates, constant and collinear columns, p > m, one pair, …"""
    precision = str(rng.choice(["float32", "float64"]))
    loss = _draw_loss(rng)
    solver = str(rng.choice(["auto", "auto", "lbfgs", "bmrm"]))
    kinds = [precision, loss, solver]
    n_items = int(rng.integers(2, 13))
    n_features = int(rng.integers(1, 7))
    if rng.random() < 0.15:
        n_features = n_items + int(rng.integers(1, 9))
        kinds.append("p > m")
    X = _draw_features(n_items, n_features, rng, kinds).astype(precision)
    graph, edges = _draw_graph(n_items, rng, kinds)
    winner, loser, weight = (np.array(column) for column in zip(*edges, strict=True))

    differences = X[winner].astype(float) - X[loser].astype(float)
    mean_squared_length = float(np.sum(differences**2)) / len(edges)
    alpha = 10.0 ** rng.uniform(-9, 1)
    if mean_squared_length > 0 and rng.random() < 0.8:
        alpha *= mean_squared_length
    else:
        kinds.append("alpha of another scale")
    if rng.random() < 0.15:
        X = sp.csr_matrix(X)
        kinds.append("sparse")
    options = {"tol": 10.0 ** rng.uniform(-9, -2), "max_iter": int(rng.choice([1, 5, 200]))}
    model = RankSVM(alpha, loss=loss, solver=solver, **options)
    return Problem(tuple(kinds), model, X, graph, winner, loser, weight / weight.sum())


def _draw_loss(rng):
    return str(rng.choice(["hinge", "squared_hinge"]))


def _draw_features(n_items, n_features, rng, kinds):
    X = rng.normal(size=(n_items, n_features))
    if rng.random() < 0.2:
        X = X[rng.integers(0, n_items, n_items)]
        kinds.append("duplicates")
    if rng.random() < 0.2:
        X[:, rng.integers(n_features)] = X[:, rng.integers(n_features)] * -3
        kinds.append("collinear columns")
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-6, 6, n_features)
        kinds.append("columns of any scale")
    if rng.random() < 0.4:
        largest_exponent = 12
        if kinds[0] == "float32":
            largest_exponent = 7
        size = 10.0 ** rng.integers(1, largest_exponent + 1)
        X = X + size * rng.normal(size=n_features)
        kinds.append("offset")
    if rng.random() < 0.2:
        X[:, rng.integers(n_features)] = 10.0 ** rng.uniform(-6, 6)
        kinds.append("constant column")
    if rng.random() < 0.5:
        X = X * 10.0 ** rng.uniform(-12, 12)
        kinds.append("scale 1e±12")
    return X


def _draw_graph(n_items, rng, kinds):
    """A graph, and its edges (winner, loser, weight)."""
    kind = str(rng.choice(["one list", "groups", "groups alike", "PairGraph", "one pair"]))
    kinds.append(kind)
    if kind == "one pair":
        return _draw_pair_graph(n_items, 1, rng)
    if kind == "PairGraph":
        return _draw_pair_graph(n_items, int(rng.integers(1, 25)), rng)
    return _draw_score_graph(n_items, kind, rng)


def _draw_pair_graph(n_items, n_pairs, rng):
    winner = rng.integers(0, n_items, n_pairs)
    loser = (winner + rng.integers(1, n_items, n_pairs)) % n_items
    weight = rng.random(n_pairs) + 0.1
    graph = PairGraph(winner, loser, weight=weight, n_items=n_items)
    return graph, list(zip(winner, loser, weight, strict=True))


def _draw_score_graph(n_items, kind, rng):
    y = rng.integers(0, 5, n_items).astype(float)
    y[:2] = 0, 1  # at least one pair
    if kind == "one list":
        groups = np.zeros(n_items, int)
    else:
        groups = np.r_[0, 0, rng.integers(0, 3, n_items - 2)]
    pairs = [
        (i, j)
        for i in range(n_items)
        for j in range(n_items)
        if y[i] > y[j] and groups[i] == groups[j]
    ]
    if kind == "groups alike":  # all groups have the same total weight
        n_pairs_of_group = Counter(groups[i] for i, _ in pairs)
        edges = [(i, j, 1 / n_pairs_of_group[groups[i]]) for i, j in pairs]
        return ScoreGraph(y, groups, cost="sign", group_weight="groups"), edges
    edges = [(i, j, 1.0) for i, j in pairs]
    return ScoreGraph(y, groups, cost="sign", group_weight="pairs"), edges


def judge(problem):
    """Fit the model, and compare its bound with what is achieved."""
    model = problem.model
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(problem.X, problem.graph)
    differences = problem.differences()
    candidates, dual = independent(
        differences.astype(float), problem.share, model.alpha, model.loss
    )
    lowest = min(objective(differences, problem, w) for w in [model.coef_, *candidates])
    excess = (EXACT(model.lower_bound_) - lowest) / lowest
    message = "RankSVM converged"
    if caught:
        message = str(caught[0].message)
    end = " ".join(message.split()[1:3])
    return Judged(float(excess), model.gap_, float((lowest - dual) / lowest), end)


def objective(differences, problem, w):
    """J from explicit pairs, in long double."""
    w = np.asarray(w).astype(EXACT)
    cost_of_pair = np.maximum(0, 1 - differences @ w)
    if problem.model.loss != "hinge":
        cost_of_pair = cost_of_pair**2
    return problem.share.astype(EXACT) @ cost_of_pair + EXACT(problem.model.alpha) * (w @ w)


def independent(D, share, alpha, loss):
    """Weights near the minimum, and a value of the dual.

    With w = Σ λ_k d_k/(2α) the dual is Σ λ_k − ‖Σ λ_k d_k‖²/(4α) over 0 ≤ λ_k ≤ share_k for the
    hinge; its square has −λ_k²/(4 share_k) instead of the upper limit. This is least squares
    with bounds, solved by BVLS; multipliers strictly between the bounds are then solved for.
    """
    if loss == "hinge":
        upper = share
        curvature = np.zeros(len(share))
    else:
        upper = np.full(len(share), np.inf)
        curvature = 1 / (2 * share)
    # the dual is Σ λ_k − λᵀ Q λ / 2
    Q = D @ D.T / (2 * alpha) + np.diag(curvature)
    n_pairs = len(Q)
    scale = float(np.trace(Q)) or 1.0
    root = np.linalg.cholesky(Q / scale + 1e-14 * n_pairs * np.eye(n_pairs))
    target = np.linalg.solve(root, np.ones(n_pairs)) / np.sqrt(scale)
    multipliers = scipy.optimize.lsq_linear(
        root.T * np.sqrt(scale), target, (0, upper), method="bvls", tol=1e-15
    ).x

    is_free = (multipliers > 1e-12 * share) & (multipliers < upper * (1 - 1e-12))
    polished = multipliers.copy()
    if is_free.any():
        gradient_of_bounded = 1 - Q[np.ix_(is_free, ~is_free)] @ multipliers[~is_free]
        Q_free = Q[np.ix_(is_free, is_free)]
        polished[is_free] = np.linalg.lstsq(Q_free, gradient_of_bounded, rcond=1e-15)[0]
        polished = np.clip(polished, 0, upper)

    solutions = [multipliers, polished]
    dual = max(float(x.sum() - 0.5 * x @ Q @ x) for x in solutions)
    weights = [np.zeros(D.shape[1]), *(D.T @ x / (2 * alpha) for x in solutions)]
    return weights, dual


def main(arguments=None):
    """Judge many problems, and count by kind."""
    parser = make_parser(__doc__)
    parser.add_argument("--problems", type=int, default=10_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first one (%(default)s)")
    options = parser.parse_args(arguments)
    judged_of_kind = defaultdict(list)
    for seed in range(options.seed, options.seed + options.problems):
        problem = draw_problem(np.random.default_rng(seed))
        judged = judge(problem)
        for kind in ("all", *problem.kinds):
            judged_of_kind[kind].append(judged)
        if judged.excess > 0:
            print(f"seed {seed}: bound too high by {judged.excess:.1e} {problem.kinds}", flush=True)
    header = (
        "problems",
        "number",
        "wrong",
        "largest\nexcess",
        "minimum\nfound",
        "converged",
        "stalled",
    )
    kinds = ["all", *sorted(set(judged_of_kind) - {"all"})]
    rows = [_row(kind, judged_of_kind[kind]) for kind in kinds]
    print_table("Lower bounds of RankSVM", header, rows)
    print_notes(
        "wrong: the bound is above an objective that was achieved; excess is relative to it, and "
        "negative where the bound is below.",
        f"minimum found: the independent solver is within {TIGHT:g} of its own dual value.",
        "neither converged nor stalled: ended by max_iter, which is 1, 5 or 200.",
    )


def _row(kind, judged):
    ends = Counter(one.end for one in judged)
    return (
        kind,
        len(judged),
        sum(one.excess > 0 for one in judged),
        f"{max(one.excess for one in judged):.0e}",
        sum(one.distance <= TIGHT for one in judged),
        ends["converged"],
        ends["cannot go"],
    )


if __name__ == "__main__":
    record(main)
