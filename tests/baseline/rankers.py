"""Problems of learners: coefficients, predictions and certificates on random data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.baseline.draws import (
    RankingDraw,
    chance,
    draw_alpha,
    draw_alphas,
    draw_basis,
    draw_edges,
    draw_kernel,
    draw_least_squares,
    draw_nuisance,
    draw_ranking,
    pick,
    row_pairs,
)
from tests.baseline.names import find, get
from tests.baseline.record import Record

FITTED = (
    "coef_",
    "dual_coef_",
    "intercept_",
    "basis_indices_",
    "n_pairs_",
    "nuisance_coef_",
    "nuisance_se_",
    "view_coef_",
    "n_scored_",
    "n_basis_",
    "coef_path_",
    "train_error_",
    "alpha_",
    "nu_",
    "is_separable_",
)
GRAPH_SUMS = (
    "laplacian_matrix",
    "degrees",
    "pair_gradient",
    "total_weight",
    "n_pairs",
    "sum_of_squares",
)
CERTIFICATE = ("objective_", "lower_bound_")


def record_model(record: Record, model: Any, name: str = "model") -> None:
    """Store the fitted attributes of a model, and the certificate of its objective."""
    record.describe(model)
    for attribute in FITTED:
        value = getattr(model, attribute, None)
        if value is not None:
            record.add(f"{name}.{attribute}", value)
    if hasattr(model, "lower_bound_"):
        record.add(f"{name}.certificate", [getattr(model, part) for part in CERTIFICATE])


def record_predictions(record: Record, model: Any, data: RankingDraw) -> None:
    """Store scores and ranks of new items, and the scores of the training data.

    If a problem is ill-conditioned, the latter are more accurate than coefficients.
    """
    record.add("training_scores", model.predict(data.X))
    record.add("predict", model.predict(data.X_new))
    record.add("rank", model.rank(data.X_new, data.groups_new))
    is_single = np.ndim(data.y) == 1 and not np.isnan(data.y).any()
    if is_single and len(np.unique(data.y)) > 1:
        record.add("score", model.score(data.X, data.y, data.groups))


def rank_rls(rng: np.random.Generator, record: Record) -> None:
    """RankRLS: costs, ties, weights, kernels, bases, solvers, regression share, outputs."""
    n_outputs = 2 if chance(rng, 0.15) else None
    data = draw_ranking(rng, n_outputs=n_outputs)
    record.describe(data.summary)
    options = draw_least_squares(rng) | draw_kernel(rng)
    if n_outputs is not None:
        options |= {"cost": "magnitude", "ties": "include"}
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    if chance(rng, 0.2):
        options["beta"] = float(rng.uniform(0.1, 0.9))
    if chance(rng, 0.3):
        options["solver"] = pick(rng, ("primal", "dual"))
        if options["solver"] == "primal" and "kernel" in options and "basis" not in options:
            options["solver"] = "dual"
        if options["solver"] == "dual" and "basis" in options:
            options["solver"] = "primal"
    model = find("RankRLS")(draw_alpha(rng), **options).fit(data.X, **data.target)
    record_model(record, model)
    record_predictions(record, model, data)


def rank_rls_iterative(rng: np.random.Generator, record: Record) -> None:
    """RankRLS by the iterative solver, to a tight tolerance."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    options = draw_least_squares(rng)
    model = find("RankRLS")(float(rng.uniform(0.05, 5.0)), solver="iterative", tol=1e-12, **options)
    model.fit(data.X, **data.target)
    record_model(record, model)
    record_predictions(record, model, data)


def rank_rls_path(rng: np.random.Generator, record: Record) -> None:
    """RankRLS for several alphas at once."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    options = draw_least_squares(rng) | draw_kernel(rng)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    path = find("RankRLS")(**options).path(data.X, **data.target, alphas=draw_alphas(rng))
    record.add("coefficients", path.coefficients)
    record.add("predict", path.predict(data.X_new))
    record_model(record, path.model(1))


def rank_rls_precomputed(rng: np.random.Generator, record: Record) -> None:
    """RankRLS on a kernel matrix."""
    data = draw_ranking(rng, sparse=False)
    record.describe(data.summary)
    options = draw_least_squares(rng)
    X = np.asarray(data.X, dtype=float)
    model = find("RankRLS")(draw_alpha(rng), kernel="precomputed", **options)
    model.fit(X @ X.T + 1.0, **data.target)
    record_model(record, model)
    record.add("predict", model.predict(data.X_new @ X.T + 1.0))


def rank_rls_partial_fit(rng: np.random.Generator, record: Record) -> None:
    """RankRLS by batches of whole groups."""
    data = draw_ranking(rng, grouped=True)
    record.describe(data.summary)
    model = find("RankRLS")(draw_alpha(rng), **draw_least_squares(rng))
    order = np.argsort(data.groups, kind="stable")
    labels = np.unique(data.groups)
    middle = labels[len(labels) // 2]
    for rows in (order[data.groups[order] < middle], order[data.groups[order] >= middle]):
        weight = None if data.sample_weight is None else data.sample_weight[rows]
        model.partial_fit(data.X[rows], data.y[rows], data.groups[rows], weight)
    record_model(record, model)
    record_predictions(record, model, data)


def sufficient_statistics(rng: np.random.Generator, record: Record) -> None:
    """Sums over batches: merged, subtracted, solved; held-out scores; bytes and back."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    kind = find("SufficientStatistics")
    options = draw_least_squares(rng)
    if chance(rng, 0.3):
        options["beta"] = 0.3
    record.describe(options)
    alphas = draw_alphas(rng)
    codes = np.unique(data.groups, return_inverse=True)[1]
    is_first = codes <= codes.max() // 2

    def batch(is_in: np.ndarray) -> Any:
        weight = None if data.sample_weight is None else data.sample_weight[is_in]
        rows = (data.X[is_in], data.y[is_in], data.groups[is_in], weight)
        return kind(**options).add(*rows, whole_groups=True)

    total = batch(is_first).merge(batch(~is_first))
    record.add("n", [total.n_items, total.n_pairs])
    record.add("coefficients", total.solve(alphas).coefficients)
    everything = (data.X, data.y, data.groups, alphas, data.sample_weight)
    record.add("held_out", total.held_out(*everything))
    copy = kind.from_bytes(total.to_bytes())
    record.add("from_bytes", copy.solve(alphas).coefficients)
    rest = total.subtract(batch(is_first))
    record.add("after_subtract", rest.solve(alphas).coefficients)


def rank_rls_pairs(rng: np.random.Generator, record: Record) -> None:
    """RankRLS on explicit comparisons."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    graph = draw_edges(rng, data.X.shape[0])
    options = draw_kernel(rng)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    model = find("RankRLS")(draw_alpha(rng), **options).fit(data.X, graph)
    record_model(record, model)
    record.add("predict", model.predict(data.X_new))
    record.add("rank", model.rank(data.X_new))


def graphs(rng: np.random.Generator, record: Record) -> None:
    """Laplacians, divergences and disagreement of both kinds of preference graphs."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    n_items = data.X.shape[0]
    if chance(rng, 0.5):
        graph = draw_edges(rng, n_items)
    else:
        options = draw_least_squares(rng)
        weight = data.sample_weight
        graph = find("ScoreGraph")(data.y, data.groups, sample_weight=weight, **options)
    record.describe(graph)
    V = rng.normal(size=(n_items, 2))
    record.add("laplacian", graph.laplacian(V))
    record.add("disagreement", graph.disagreement(V[:, 0]))
    for name in GRAPH_SUMS:
        record.add(name, get(graph, name))


def nuisance(rng: np.random.Generator, record: Record) -> None:
    """Nuisance columns in RankRLS and RankLogistic, with their standard errors."""
    data = draw_ranking(rng, sparse=False)
    record.describe(data.summary)
    Z = draw_nuisance(rng, data.X.shape[0])
    name = pick(rng, ("RankRLS", "RankRLS", "RankLogistic"))
    options = draw_kernel(rng, 0.3)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    if name == "RankRLS":
        options |= draw_least_squares(rng)
    else:
        options |= {"tol": 1e-8}
    model = find(name)(log_alpha(rng), **options).fit(data.X, **data.target, nuisance=Z)
    record_model(record, model)
    record_predictions(record, model, data)


def log_alpha(rng: np.random.Generator) -> float:
    """Return a regularization with which certified solvers need few iterations."""
    return float(np.exp(rng.uniform(np.log(3e-3), np.log(3.0))))


def rank_svm(rng: np.random.Generator, record: Record) -> None:
    """RankSVM: losses, solvers, kernels and bases, with its certificate."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    options = draw_kernel(rng, 0.3)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    options["loss"] = pick(rng, ("hinge", "squared_hinge"))
    options["group_weight"] = pick(rng, ("pairs", "groups"))
    if chance(rng, 0.3):
        smooth = options["loss"] == "squared_hinge"
        options["solver"] = pick(rng, ("newton-cg", "bmrm")) if smooth else "bmrm"
    options["tol"] = pick(rng, (1e-3, 1e-5)) if options["loss"] == "hinge" else 1e-8
    target = data.target
    if chance(rng, 0.25):
        target = {"y": draw_edges(rng, data.X.shape[0], cost="magnitude")}
        options["group_weight"] = target["y"].group_weight
    model = find("RankSVM")(log_alpha(rng), **options).fit(data.X, **target)
    record_model(record, model)
    record.add("predict", model.predict(data.X_new))
    record.add("rank", model.rank(data.X_new, data.groups_new))


def rank_svm_path(rng: np.random.Generator, record: Record) -> None:
    """RankSVM and RankLogistic for several alphas at once."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    name = pick(rng, ("RankSVM", "RankLogistic"))
    path = find(name)(tol=1e-6).path(data.X, **data.target, alphas=[0.05, 0.3, 2.0])
    record.add("coefficients", path.coefficients)
    record.add("predict", path.predict(data.X_new))


def rank_logistic(rng: np.random.Generator, record: Record) -> None:
    """RankLogistic: pairs, ties and Plackett–Luce, with its certificate and probabilities."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    options = draw_kernel(rng, 0.3)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    options["group_weight"] = pick(rng, ("pairs", "groups"))
    options["tol"] = pick(rng, (1e-6, 1e-9))
    target = data.target
    kind = pick(rng, ("pairs", "pairs", "ties", "lists", "edges"))
    if kind == "ties":
        options["ties"] = "include"
    if kind == "lists":
        options["likelihood"] = "plackett-luce"
        target["sample_weight"] = None
    if kind == "edges":
        target = {"y": draw_edges(rng, data.X.shape[0], cost="magnitude")}
        options["group_weight"] = target["y"].group_weight
    model = find("RankLogistic")(log_alpha(rng), **options).fit(data.X, **target)
    record_model(record, model)
    record.add("predict", model.predict(data.X_new))
    record.add("predict_above", model.predict_above(data.X_new, *row_pairs(rng, 12)))


def inverse_distance(first: np.ndarray, second: np.ndarray, scale: float = 1.0) -> float:
    """Return 1 / (1 + scale |first - second|²), a positive definite kernel."""
    return 1.0 / (1.0 + scale * float(np.square(first - second).sum()))


def fit_any_learner(rng: np.random.Generator, data: RankingDraw, options: dict[str, Any]) -> Any:
    """Train a learner of several kinds on the data."""
    name = pick(rng, ("RankRLS", "RankRLS", "RankRLSCV", "RankSVM", "RankLogistic"))
    if name == "RankRLSCV":
        return find(name)([0.05, 0.5, 5.0], **options).fit(data.X, **data.target)
    if name != "RankRLS":
        options = options | {"tol": 1e-8}
    if name == "RankSVM":
        options |= {"loss": "squared_hinge"}
    return find(name)(log_alpha(rng), **options).fit(data.X, **data.target)


def callable_kernels(rng: np.random.Generator, record: Record) -> None:
    """Learners with a function as kernel, with and without a basis."""
    data = draw_ranking(rng, n_items=(16, 32), grouped=True, sparse=False)
    record.describe(data.summary)
    options = {"kernel": inverse_distance, "kernel_params": {"scale": float(rng.uniform(0.1, 1))}}
    options |= draw_basis(rng, data.X.shape[0])
    model = fit_any_learner(rng, data, options)
    record_model(record, model)
    record_predictions(record, model, data)


def basis_points(rng: np.random.Generator, record: Record) -> None:
    """Learners whose basis are points that are no items."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    options = draw_kernel(rng, 1.0)
    points = rng.normal(size=(int(rng.integers(4, 10)), data.X.shape[1]))
    model = fit_any_learner(rng, data, options | {"basis": points})
    record_model(record, model)
    record_predictions(record, model, data)


def draw_views(rng: np.random.Generator, n_features: int) -> list[Any]:
    """Return two views: halves of the features, each with a kernel of its own."""
    view = find("View")
    middle = max(1, n_features // 2)
    first = view(list(range(middle)), **draw_kernel(rng, 0.3))
    second = view(list(range(middle, n_features)), **draw_kernel(rng, 0.3))
    return [first, second]


def co_rank_rls(rng: np.random.Generator, record: Record) -> None:
    """CoRankRLS: two views, items without a score, several alphas and nus."""
    data = draw_ranking(rng, sparse=False)
    record.describe(data.summary)
    views = draw_views(rng, data.X.shape[1])
    data.y = data.y.astype(float)
    data.y[rng.random(len(data.y)) < 0.3] = np.nan
    options = draw_least_squares(rng)
    if chance(rng, 0.4):
        options["n_basis"] = 15
        options["random_state"] = 1
    learner = find("CoRankRLS")(
        draw_alpha(rng), nu=float(rng.uniform(0.1, 3)), views=views, **options
    )
    model = learner.fit(data.X, **data.target)
    record_model(record, model)
    record_predictions(record, model, data)
    record.add("predict_views", model.predict_views(data.X_new))
    record.add("view_disagreement", model.view_disagreement(data.X_new, data.groups_new))
    if chance(rng, 0.3):
        path = learner.path(data.X, **data.target, alphas=[0.1, 1.0], nus=[0.0, 2.0])
        record.add("path", path.predict(data.X_new))


def ranking_pursuit(rng: np.random.Generator, record: Record) -> None:
    """RankingPursuit: dictionaries, back-fitting, views, and the models of each size."""
    data = draw_ranking(rng, sparse=False)
    record.describe(data.summary)
    options = draw_least_squares(rng)
    options |= {"backfit": pick(rng, ("final", "every", None)), "kernel": "rbf", "gamma": 0.3}
    kind = pick(rng, ("items", "items", "features", "views", "random"))
    if kind == "features":
        options |= {"kernel": "linear", "dictionary": "features"}
        options.pop("gamma")
    if kind == "views":
        options |= {"views": draw_views(rng, data.X.shape[1]), "kernel": "linear"}
        options.pop("gamma")
    if kind == "random":
        options |= {"dictionary": 15, "random_state": 3}
    if chance(rng, 0.2):
        options["fit_intercept"] = False
    model = find("RankingPursuit")(int(rng.integers(2, 6)), **options).fit(data.X, **data.target)
    record_model(record, model)
    record_predictions(record, model, data)
    record.add("staged_predict", list(model.staged_predict(data.X_new)))


def distributed(rng: np.random.Generator, record: Record) -> None:
    """RankRLS on Dask arrays of several blocks."""
    import dask
    import dask.array

    data = draw_ranking(rng, sparse=False, grouped=True, weighted=False)
    record.describe(data.summary)
    data.groups = np.sort(data.groups)
    with dask.config.set(scheduler="synchronous"):
        blocks = [dask.array.from_array(part, chunks=17) for part in (data.y, data.groups)]
        X = dask.array.from_array(np.asarray(data.X, float), chunks=(17, data.X.shape[1]))
        model = find("DistributedRankRLS")(draw_alpha(rng)).fit(X, blocks[0], groups=blocks[1])
        record.add("coef", model.coef_)


AREAS = {
    "rank_rls": (rank_rls, 500),
    "rank_rls_iterative": (rank_rls_iterative, 60),
    "rank_rls_path": (rank_rls_path, 100),
    "rank_rls_precomputed": (rank_rls_precomputed, 40),
    "rank_rls_partial_fit": (rank_rls_partial_fit, 50),
    "sufficient_statistics": (sufficient_statistics, 60),
    "rank_rls_pairs": (rank_rls_pairs, 120),
    "graphs": (graphs, 120),
    "nuisance": (nuisance, 120),
    "rank_svm": (rank_svm, 200),
    "rank_svm_path": (rank_svm_path, 40),
    "rank_logistic": (rank_logistic, 200),
    "callable_kernels": (callable_kernels, 40),
    "basis_points": (basis_points, 60),
    "co_rank_rls": (co_rank_rls, 120),
    "ranking_pursuit": (ranking_pursuit, 150),
    "distributed": (distributed, 8),
}
