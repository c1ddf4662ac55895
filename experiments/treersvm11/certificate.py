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
        X = (self.X.toarray() if sp.issparse(self.X) else self.X).astype(EXACT)
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
    kinds = [precision, loss, str(rng.choice(["auto", "auto", "lbfgs", "bmrm"]))]
    m = int(rng.integers(2, 13))
    p = int(rng.integers(1, 7))
    if rng.random() < 0.15:
        p = m + int(rng.integers(1, 9))
        kinds.append("p > m")
    X = _draw_features(m, p, rng, kinds).astype(precision)
    graph, edges = _draw_graph(m, rng, kinds)
    winner, loser, weight = (np.array(part) for part in zip(*edges, strict=True))
    typical = float(np.sum((X[winner].astype(float) - X[loser].astype(float)) ** 2)) / len(edges)
    alpha = 10.0 ** rng.uniform(-9, 1)
    if typical > 0 and rng.random() < 0.8:
        alpha *= typical
    else:
        kinds.append("alpha of another scale")
    if rng.random() < 0.15:
        X = sp.csr_matrix(X)
        kinds.append("sparse")
    options = {"tol": 10.0 ** rng.uniform(-9, -2), "max_iter": int(rng.choice([1, 5, 200]))}
    model = RankSVM(alpha, loss=loss, solver=kinds[2], **options)
    return Problem(tuple(kinds), model, X, graph, winner, loser, weight / weight.sum())


def _draw_loss(rng):
    return str(rng.choice(["hinge", "squared_hinge"]))


def _draw_features(m, p, rng, kinds):
    X = rng.normal(size=(m, p))
    if rng.random() < 0.2:
        X = X[rng.integers(0, m, m)]
        kinds.append("duplicates")
    if rng.random() < 0.2:
        X[:, rng.integers(p)] = X[:, rng.integers(p)] * -3
        kinds.append("collinear columns")
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-6, 6, p)
        kinds.append("columns of any scale")
    if rng.random() < 0.4:
        size = 10.0 ** rng.integers(1, 8 if kinds[0] == "float32" else 13)
        X = X + size * rng.normal(size=p)
        kinds.append("offset")
    if rng.random() < 0.2:
        X[:, rng.integers(p)] = 10.0 ** rng.uniform(-6, 6)
        kinds.append("constant column")
    if rng.random() < 0.5:
        X = X * 10.0 ** rng.uniform(-12, 12)
        kinds.append("scale 1e±12")
    return X


def _draw_graph(m, rng, kinds):
    """A graph, and its edges (winner, loser, weight)."""
    how = str(rng.choice(["one list", "groups", "groups alike", "PairGraph", "one pair"]))
    kinds.append(how)
    if how in ("PairGraph", "one pair"):
        n = 1 if how == "one pair" else int(rng.integers(1, 25))
        winner = rng.integers(0, m, n)
        loser = (winner + rng.integers(1, m, n)) % m
        weight = rng.random(n) + 0.1
        graph = PairGraph(winner, loser, weight=weight, n_items=m)
        return graph, list(zip(winner, loser, weight, strict=True))
    y = rng.integers(0, 5, m).astype(float)
    y[:2] = 0, 1
    groups = np.zeros(m, int) if how == "one list" else np.r_[0, 0, rng.integers(0, 3, m - 2)]
    pairs = [(i, j) for i in range(m) for j in range(m) if y[i] > y[j] and groups[i] == groups[j]]
    in_group = Counter(groups[i] for i, _ in pairs)
    alike = how == "groups alike"
    graph = ScoreGraph(y, groups, cost="sign", group_weight="groups" if alike else "pairs")
    return graph, [(i, j, 1 / in_group[groups[i]] if alike else 1.0) for i, j in pairs]


def judge(problem):
    """Fit the model, and compare its bound with what is achieved."""
    model = problem.model
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(problem.X, problem.graph)
    D = problem.differences()
    weights, dual = independent(D.astype(float), problem.share, model.alpha, model.loss)
    best = min(objective(D, problem, w) for w in [model.coef_, *weights])
    end = str(caught[0].message) if caught else "RankSVM converged"
    relative = (EXACT(model.lower_bound_) - best) / best
    return Judged(
        float(relative), model.gap_, float((best - dual) / best), " ".join(end.split()[1:3])
    )


def objective(D, problem, w):
    """J from explicit pairs, in long double."""
    w = np.asarray(w).astype(EXACT)
    short = np.maximum(0, 1 - D @ w)
    cost = short if problem.model.loss == "hinge" else short**2
    return problem.share.astype(EXACT) @ cost + EXACT(problem.model.alpha) * (w @ w)


def independent(D, share, alpha, loss):
    """Weights near the minimum, and a value of the dual.

    With w = Σ λ_k d_k/(2α) the dual is Σ λ_k − ‖Σ λ_k d_k‖²/(4α) over 0 ≤ λ_k ≤ share_k for the
    hinge; its square has −λ_k²/(4 share_k) instead of the upper limit. This is least squares
    with bounds, solved by BVLS; multipliers strictly between the bounds are then solved for.
    """
    hinge = loss == "hinge"
    upper = share if hinge else np.full(len(share), np.inf)
    bend = np.zeros(len(share)) if hinge else 1 / (2 * share)
    Q = D @ D.T / (2 * alpha) + np.diag(bend)
    n = len(Q)
    scale = float(np.trace(Q)) or 1.0
    root = np.linalg.cholesky(Q / scale + 1e-14 * n * np.eye(n))
    right = np.linalg.solve(root, np.ones(n)) / np.sqrt(scale)
    found = scipy.optimize.lsq_linear(
        root.T * np.sqrt(scale), right, (0, upper), method="bvls", tol=1e-15
    ).x
    free = (found > 1e-12 * share) & (found < upper * (1 - 1e-12))
    polished = found.copy()
    if free.any():
        rest = 1 - Q[np.ix_(free, ~free)] @ found[~free]
        polished[free] = np.linalg.lstsq(Q[np.ix_(free, free)], rest, rcond=1e-15)[0]
        polished = np.clip(polished, 0, upper)
    both = [found, polished]
    dual = max(float(x.sum() - 0.5 * x @ Q @ x) for x in both)
    return [np.zeros(D.shape[1]), *(D.T @ x / (2 * alpha) for x in both)], dual


def main(arguments=None):
    """Judge many problems, and count by kind."""
    parser = make_parser(__doc__)
    parser.add_argument("--problems", type=int, default=10_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first one (%(default)s)")
    options = parser.parse_args(arguments)
    found = defaultdict(list)
    for seed in range(options.seed, options.seed + options.problems):
        problem = draw_problem(np.random.default_rng(seed))
        judged = judge(problem)
        for kind in ("all", *problem.kinds):
            found[kind].append(judged)
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
    kinds = ["all", *sorted(set(found) - {"all"})]
    print_table("Lower bounds of RankSVM", header, [_row(kind, found[kind]) for kind in kinds])
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
