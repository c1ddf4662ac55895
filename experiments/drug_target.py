"""Drugs and targets: new drugs, new targets, both, or only new pairs; and what it costs.

    python -m experiments.drug_target [--sets davis,nr,gpcr,ic] [--growth]

Rows are drugs (Davis) or targets (Yamanishi), columns the other; kernels are the published
similarities, made positive semidefinite. ConditionalRankRLS ranks the columns of each row; plain
kernel ridge on the same Kronecker kernel (KronRLS) regresses the cells less their mean. Both see
the same five folds (three times three for both new), and for both the best of 5 alphas is shown,
chosen on the same held-out cells: a little optimistic, for both alike. Concordance is the mean over
rows; for Davis also that over all pairs of cells, as the literature has it.

--growth measures time and memory of a complete table, and of the explicit kernel where it fits.
"""

import gzip
import time
import tracemalloc

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from experiments.command_line import find_data, make_parser
from experiments.tables import print_notes, print_table
from rankwise import ConditionalRankRLS, RankRLS
from rankwise.metrics import get_metric

SETTINGS = {"cells": "known drug and target", "rows": "new row", "columns": "new column"}
SETTINGS["both"] = "both new"
ALPHAS = np.logspace(-4, 0, 5)
PUBLISHED = 0.871
CONCORDANCE = get_metric("concordance")


def read_matrix(path, skip_names):
    """Numbers of a text file; the first line and column are names where there are some."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        lines = [line.split() for line in stream if line.strip()]
    lines = [line[1:] for line in lines[1:]] if skip_names else lines
    return np.array(lines, dtype=float)


def positive(K):
    """The nearest symmetric matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def read_set(data, name):
    """Kernels of rows and columns, and the table."""
    if name == "davis":
        folder = "drug_target/davis/"
        kd, drugs, targets = find_data(
            data,
            folder + "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt.gz",
            folder + "drug-drug_similarities_2D.txt.gz",
            folder + "target-target_similarities_WS.txt.gz",
        )
        Y = 9.0 - np.log10(read_matrix(kd, False))  # pKd of nanomoles
        return positive(read_matrix(drugs, False)), positive(read_matrix(targets, False) / 100), Y
    ending = ("admat_dgc", "simmat_dg", "simmat_dc")
    paths = find_data(data, *(f"drug_target/yamanishi/{name}_{end}.txt.gz" for end in ending))
    Y, targets, drugs = (read_matrix(path, True) for path in paths)
    return positive(targets), positive(drugs), Y


def folds_of(n, k):
    return [test for _, test in KFold(k, shuffle=True, random_state=0).split(np.zeros(n))]


def ridge_complete(G, K, Y, lams):
    """Coefficients of kernel ridge on the Kronecker kernel, for every lambda."""
    (g, U), (s, V) = np.linalg.eigh(G), np.linalg.eigh(K)
    Z = U.T @ Y @ V
    return [U @ (Z / (np.outer(g, s) + lam)) @ V.T for lam in lams]


def ridge_held_out(G, K, Y, leave, k):
    """Held-out scores (q, t, n_alphas) of kernel ridge in the folds of `leave_out`."""
    q, t = Y.shape
    held = np.zeros((q, t, len(ALPHAS)))
    if leave == "cells":
        for U in folds_of(q * t, k):
            known = np.ones(q * t, dtype=bool)
            known[U] = False
            mean = Y.ravel()[known].mean()
            y = np.where(known, Y.ravel() - mean, 0.0)
            for j, alpha in enumerate(ALPHAS):
                lam = alpha * known.sum()

                def product(a, lam=lam, known=known):
                    F = G @ a.reshape(q, t) @ K
                    return np.where(known, F.ravel(), 0.0) + lam * a

                a = cg(LinearOperator((q * t, q * t), product), y, rtol=1e-4, maxiter=200)[0]
                held[:, :, j].flat[U] = (G @ np.where(known, a, 0.0).reshape(q, t) @ K).ravel()[U]
        return held
    row_folds = folds_of(q, k) if leave != "columns" else [np.arange(q)]
    column_folds = folds_of(t, k) if leave != "rows" else [np.arange(t)]
    for U in row_folds:
        rows = np.setdiff1d(np.arange(q), U) if leave != "columns" else U
        for V in column_folds:
            columns = np.setdiff1d(np.arange(t), V) if leave != "rows" else V
            part = Y[np.ix_(rows, columns)]
            inside = G[np.ix_(rows, rows)], K[np.ix_(columns, columns)]
            coefficients = ridge_complete(*inside, part - part.mean(), ALPHAS * part.size)
            for j, A in enumerate(coefficients):
                held[np.ix_(U, V, [j])] = (G[np.ix_(U, rows)] @ A @ K[np.ix_(columns, V)])[
                    ..., None
                ]
    return held


def concordance(Y, scores):
    """Mean over the rows, for each alpha."""
    q, t = Y.shape
    groups = np.repeat(np.arange(q), t)
    return np.asarray(CONCORDANCE(Y.ravel(), scores.reshape(q * t, -1), groups))


def four_settings(G, K, Y):
    """Rows of the table: concordance and pair error of both methods."""
    rows = []
    for leave, name in SETTINGS.items():
        k = 3 if leave == "both" else 5
        model = ConditionalRankRLS(row_kernel="precomputed", column_kernel="precomputed", tol=1e-4)
        start = time.perf_counter()
        cv = k
        ours = model.leave_out(G, K, Y, leave, alphas=ALPHAS, cv=cv)
        seconds = time.perf_counter() - start
        ridge = ridge_held_out(G, K, Y, leave, k)
        mine, theirs = concordance(Y, ours), concordance(Y, ridge)
        best, other = int(mine.argmax()), int(theirs.argmax())
        whole = [None, None]
        if leave == "cells":
            whole = [float(CONCORDANCE(Y.ravel(), ours[:, :, best].ravel())),
                     float(CONCORDANCE(Y.ravel(), ridge[:, :, other].ravel()))]  # fmt: skip
        rows.append([name, float(mine[best]), float(theirs[other]), float(1 - mine[best]),
                     float(1 - theirs[other]), *whole, seconds])  # fmt: skip
    return rows


SIZES = (80, 160, 320, 640, 1280)


def growth():
    """Seconds and MiB of a complete table of n rows and n/4 columns, and of the explicit kernel."""
    rows = [growth_row(n) for n in SIZES]
    logs = np.log(SIZES[2:])
    slopes = [np.polyfit(logs, np.log([row[k] for row in rows[2:]]), 1)[0] for k in (2, 3)]
    header = ["table", "cells", "s", "MiB", "s\nexplicit", "MiB\nexplicit", "MiB of its\nkernel"]
    print_table("A complete table, one alpha", header, rows, digits=2)
    print_notes(
        f"from 320 rows on, seconds grow as n^{slopes[0]:.2f}, memory as n^{slopes[1]:.2f}; the "
        "explicit kernel would grow as n^4 in memory and n^6 in time"
    )
    return rows


def growth_row(n):
    """One line of that table."""
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((n, 20)), rng.standard_normal((n // 4, 20))
    Y = rng.standard_normal((n, n // 4))
    options = {"row_kernel": "rbf", "column_kernel": "rbf", "intercept": False}
    ours = measure(lambda: ConditionalRankRLS(**options).fit(X, Z, Y))
    explicit = (None, None)
    if Y.size <= 6400:
        groups = np.repeat(np.arange(n), n // 4)
        model = RankRLS(kernel="precomputed")
        explicit = measure(
            lambda: model.fit(np.kron(rbf_kernel(X), rbf_kernel(Z)), Y.ravel(), groups)
        )
    return [f"{n} × {n // 4}", Y.size, *ours, *explicit, 8 * Y.size**2 / 2**20]


def measure(work):
    """Shortest of three times, and peak of what is allocated in a run of its own."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times), peak


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--sets", default="davis,nr,gpcr,ic", help="names, separated by commas")
    parser.add_argument("--growth", action="store_true", help="measure time and memory instead")
    given = parser.parse_args(arguments)
    if given.growth:
        return growth()
    found = {}
    for name in given.sets.split(","):
        G, K, Y = read_set(given.data, name)
        found[name] = four_settings(G, K, Y)
        header = ["setting", "concordance", "of kernel\nridge", "pair error", "of kernel\nridge",
                  "all pairs", "of kernel\nridge", "s, 5 alphas"]  # fmt: skip
        print_table(f"{name}: {Y.shape[0]} rows, {Y.shape[1]} columns", header, found[name])
    print_notes(
        f"KronRLS on Davis, known drug and target, all pairs of cells: {PUBLISHED}, as reported by "
        "Öztürk et al. (DeepDTA, Bioinformatics 2018), on other folds"
    )
    return found


if __name__ == "__main__":
    main()
