"""`compare`: read values or runs, warn about what makes a test doubtful, and compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import warn_user
from rankwise.formatting import join_words
from rankwise.metrics import evaluate_runs, get_metric
from rankwise.metrics.registry import MetricName
from rankwise.metrics.run_input import RunInput, RunsInput, read_judgments, read_runs
from rankwise.metrics.run_metric_names import RunMetricName, get_run_metric
from rankwise.metrics.run_metrics import RunMetric
from rankwise.metrics.unjudged import bounds_of_runs, check_bounded
from rankwise.model_selection.comparison import (
    Comparison,
    ComparisonSettings,
    compare_values,
    difference_without_rounding,
    pairs_of,
)
from rankwise.model_selection.comparison_input import (
    ClusterInput,
    CompareInput,
    ComparisonColumns,
    PairedValues,
    read_values,
)
from rankwise.model_selection.paired_tests import sum_by_cluster
from rankwise.runtime.threads import single_threaded

DEFAULT_RUN_METRIC = "nDCG@10"
FEWEST_FOR_TEST = 6  # groups; with fewer no signed-rank p-value is below 0.05
FEW_DIFFERENT = 10  # groups that differ; with fewer Student's interval is too narrow
LARGE_SKEW = 0.15  # skewness² / n above which Student's interval is too narrow


@single_threaded
def compare(
    values: CompareInput | Mapping[str, RunInput],
    *,
    test: str = "t",
    clusters: ClusterInput | None = None,
    items: ArrayLike | None = None,
    baseline: str | None = None,
    correction: str = "holm",
    confidence: float = DEFAULT_CONFIDENCE,
    difference: float | None = None,
    greater_is_better: bool | None = None,
    arm: str | None = None,
    group: str | None = None,
    score: str | None = None,
    seed: str | None = None,
    cluster: str | None = None,
    qrels: RunInput | None = None,
    metric: MetricName | RunMetricName | None = None,
    unjudged: str = "zero",
) -> Comparison:
    """Compare rankers by their values in the same groups.

    Use it to check whether one ranker is better than another by more than chance.

    Each pair of rankers is compared by a paired test of the differences of their values. The
    interval and the unadjusted p-value come from the same procedure. Holm's method corrects the
    p-values and keeps the probability of any false finding in the table below 1 − confidence.

    Parameters
    ----------
    values : mapping from name to array-like, data frame, or mapping from name to run
        Values of one metric in each group, with the groups in the same order for all rankers: the
        result of a metric with ``per_group=True``, or ``Evaluation.per_group["ndcg@10"]``, of shape
        (n_groups,), or (n_seeds, n_groups) for rankers that were trained several times. A frame has
        one column per ranker; or one row per ranker, with the names in a column `arm` or in an
        index called "model"; or one row per value, with the columns `arm`, `group` and `score`.
        With `qrels` these are retrieval runs. Groups in which a ranker has nan are dropped and
        counted.
    test : {"t", "randomization", "wilcoxon"}, default="t"
        Student's t test of the mean difference; or the randomization test, whose p-value is the
        share of all sign patterns of the differences with a mean at least as far from zero [1]_,
        and its inversion; or Wilcoxon's signed-rank test, which tests the ranks of the differences
        and has no interval of the mean.
    clusters : array-like of shape (n_groups,), or mapping from group to cluster, optional
        Groups of one cluster, such as the queries of one user, are not independent.
    items : array-like of shape (n_groups, 2), optional
        The two items of each group, if groups are comparisons of two items. Comparisons that share
        an item are not independent; the t test then has a dyadic-robust variance.
    baseline : str, optional
        Compare every other ranker with this one only, as b. Fewer comparisons need a milder
        correction.
    correction : {"holm", "none"}, default="holm"
        Correction of the p-values for the number of comparisons.
    confidence : float, default=0.95
        Level of the intervals; 1 − confidence is the level of significance.
    difference : float, optional
        Also report how many groups detect this difference with a power of 80%.
    greater_is_better : bool, optional
        True if the values are scores such as NDCG, False if they are errors. It only determines
        which ranker wins a group. By default the `metric` decides; without one the smaller value
        wins, as for errors, and the table contains a note about it.
    arm, group, score : str, optional
        Columns of a frame with one row per value: rankers, groups and values.
    seed, cluster : str, optional
        Columns of such a frame: training seeds or folds, and clusters of the groups.
    qrels : dict, data frame, TrecRun or path, optional
        Relevance judgments; `values` are then runs, as for `rankwise.metrics.evaluate_runs`.
    metric : str, Metric, callable or object of ir_measures, optional
        Metric by which runs are compared, by default nDCG@10. Without `qrels`, the metric of the
        values, which only determines whether greater values are better.
    unjudged : {"zero", "judged_only", "bounds"}, default="zero"
        Documents of runs without a judgment, as in `evaluate_runs`. "bounds" also reports each
        difference over all their grades, and how many must be relevant to reverse it.

    Returns
    -------
    Comparison
        Prints as a table; ``rows`` and ``to_frame()`` contain its numbers, ``to_text("latex")``
        formats a table for a paper, and ``summary()`` has a sentence for each pair.

    Notes
    -----
    *Clusters*: the variance comes from leaving out clusters, with Satterthwaite's degrees of
    freedom; the randomization test flips whole clusters. *Seeds*: the variance over groups and the
    variance over the seeds of each ranker are added, so the conclusion is about the ways of
    training and not about single models. Zero differences count for neither side in Wilcoxon's test
    (Pratt's method). Its p-value is exact for up to 100 groups, also with ties; for more groups it
    is SciPy's normal approximation. The randomization test enumerates all sign patterns of up to 16
    groups or clusters. For more it draws 100,000 patterns with a fixed seed; p then has a standard
    error of 0.001 at 0.05. Differences that agree up to rounding count as equal. If all differences
    are zero, p is 1. The intervals are not corrected for the number of comparisons.

    A UserWarning is issued if a ranker's values are constant, if fewer than 10 groups differ, or if
    the differences are so skewed (skewness² / n > 0.15) that the interval is too narrow.

    References
    ----------
    .. [1] Smucker, Allan, Carterette: A comparison of statistical significance tests for
       information retrieval evaluation. CIKM 2007.

    Examples
    --------
    >>> from rankwise.model_selection import compare
    >>> linear = [0.1, 0.3, 0.2, 0.4, 0.2, 0.3, 0.1, 0.3, 0.4, 0.2]
    >>> rbf = [0.0, 0.1, 0.1, 0.1, 0.0, 0.0, 0.2, 0.1, 0.2, 0.1]
    >>> comparison = compare({"linear": linear, "rbf": rbf}, greater_is_better=False)
    >>> comparison.rows[0].significant
    True
    >>> print(comparison.summary())
    linear − rbf: +0.1600 (95% interval +0.0760 to +0.2440, p = 0.002; paired t test over 10 groups); 80% of such studies would detect 0.1169.
    """  # noqa: E501
    greater_is_better = _resolve_greater_is_better(
        greater_is_better, metric, are_runs=qrels is not None
    )
    settings = ComparisonSettings(
        greater_is_better, test, baseline, correction, confidence, difference
    )
    settings.check()
    if qrels is not None:
        if items is not None:
            raise ValueError("items= is for comparisons of two items; omit it for runs.")
        return _compare_runs(
            cast("RunsInput", values),
            qrels,
            metric or DEFAULT_RUN_METRIC,
            unjudged,
            clusters,
            settings,
        )
    if unjudged != "zero":
        raise ValueError("unjudged= is for runs; pass qrels= with it.")
    columns = _columns_of_long_frame(arm, group, score, seed, cluster)
    paired = read_values(cast("CompareInput", values), columns, arm, clusters)
    paired = paired.with_items(items).complete()
    _warn_about_doubtful_tests(paired, settings)
    return compare_values(paired, settings)


def _resolve_greater_is_better(
    greater_is_better: bool | None,
    metric: MetricName | RunMetricName | None,
    *,
    are_runs: bool,
) -> bool | None:
    """Whether greater values are better; None if no argument determines it."""
    if are_runs or isinstance(metric, RunMetric):
        metric_greater_is_better = True  # all metrics of runs are scores
    elif metric is not None:
        metric_greater_is_better = get_metric(cast("MetricName", metric)).greater_is_better
    else:
        return greater_is_better
    if greater_is_better is not None and bool(greater_is_better) != metric_greater_is_better:
        raise ValueError(
            f"greater_is_better={greater_is_better!r} contradicts the metric "
            f"{str(metric or DEFAULT_RUN_METRIC)!r}; omit greater_is_better."
        )
    return metric_greater_is_better


def _columns_of_long_frame(
    arm: str | None, group: str | None, score: str | None, seed: str | None, cluster: str | None
) -> ComparisonColumns | None:
    """Columns of a long frame; None if the frame is not described as one."""
    if group is None and score is None:
        if seed is not None or cluster is not None:
            raise ValueError(
                "seed= and cluster= are columns of a frame with one row per value; pass arm=, "
                "group= and score=, too (or clusters= with labels)."
            )
        return None
    if arm is None or group is None or score is None:
        raise ValueError("a frame with one row per value needs arm=, group= and score=.")
    return ComparisonColumns(arm, group, score, seed, cluster)


def _compare_runs(
    runs: RunsInput,
    qrels: RunInput,
    metric: RunMetricName,
    unjudged: str,
    clusters: ClusterInput | None,
    settings: ComparisonSettings,
) -> Comparison:
    """Evaluate runs and compare their values by query."""
    run_metric = get_run_metric(metric)
    if unjudged == "bounds":
        check_bounded(run_metric, n_runs=2)
    judgments = read_judgments(qrels)
    runs_by_name = read_runs(runs)
    if len(runs_by_name) < 2:
        raise ValueError("compare needs a mapping with at least two runs, {name: run}.")
    evaluation = evaluate_runs(
        judgments,
        runs_by_name,
        run_metric,
        unjudged=unjudged,
        confidence=settings.confidence,
    )

    # Values of each run as one seed, shape (1, n_queries)
    values = {}
    for name in evaluation.runs:
        values[name] = evaluation.per_query(run_metric, name)[None]
    paired = PairedValues(values, labels=evaluation.queries.astype(object), clusters=None)
    paired = paired.with_clusters(clusters).complete()
    _warn_about_doubtful_tests(paired, settings)
    comparison = compare_values(paired, settings)

    bounds = {}
    if unjudged == "bounds":
        for row in comparison.rows:
            compared_runs = [runs_by_name[row.a], runs_by_name[row.b]]
            bounds[row.a, row.b] = bounds_of_runs(judgments, compared_runs, run_metric)
    return replace(comparison, evaluation=evaluation, bounds=bounds)


def _warn_about_doubtful_tests(paired: PairedValues, settings: ComparisonSettings) -> None:
    """Warn about values for which a p-value or an interval may be wrong."""
    _warn_about_constant_values(paired, settings.greater_is_better)
    if settings.test != "wilcoxon":
        _warn_about_differences(paired, settings)


def _warn_about_constant_values(paired: PairedValues, greater_is_better: bool | None) -> None:
    """Warn about a ranker with the same value in all groups, unless it is a perfect one."""
    if greater_is_better is None:
        perfect_value = np.nan  # a value of 0 in all groups may be errors or scores
    elif greater_is_better:
        perfect_value = 1.0
    else:
        perfect_value = 0.0
    for name, values in paired.values.items():
        n_groups = values.shape[1]
        value = values[0, 0]
        is_constant = n_groups >= FEWEST_FOR_TEST and bool((values == value).all())
        if is_constant and value != perfect_value:
            warn_user(
                f"the value of {name!r} is {value:g} in each of the {n_groups} groups, as if all "
                "its scores were equal; check the scores before interpreting the p-value."
            )


def _warn_about_differences(paired: PairedValues, settings: ComparisonSettings) -> None:
    """Warn about pairs with few different groups or a skewed distribution of differences."""
    pairs_with_few_different_groups = []
    skewed_pairs = []
    for a, b in pairs_of(list(paired.values), settings.baseline):
        difference = _differences_by_group(paired, a, b)
        n_different = int((difference != 0.0).sum())
        if len(difference) < 2 or n_different == 0:
            continue
        cluster_sums = sum_by_cluster(difference, paired.clusters).sums
        if n_different < FEW_DIFFERENT:
            pairs_with_few_different_groups.append(f"{a} and {b} ({n_different})")
        elif _skewness(cluster_sums) ** 2 / len(cluster_sums) > LARGE_SKEW:
            skewed_pairs.append(f"{a} and {b}")
    if pairs_with_few_different_groups:
        warn_user(
            f"fewer than {FEW_DIFFERENT} groups differ between "
            f"{join_words(pairs_with_few_different_groups, 3)}, so the interval is unreliable; use "
            "more groups, or a metric with fewer ties."
        )
    unit = "groups"
    if paired.clusters is not None:
        unit = "clusters"
    if skewed_pairs:
        warn_user(
            f"a few {unit} decide the difference between {join_words(skewed_pairs, 3)} "
            f"(skewness² / n > {LARGE_SKEW:g}), so the interval is too narrow; inspect these "
            f"{unit}, and groups_to_flip."
        )


def _differences_by_group(paired: PairedValues, a: str, b: str) -> Array:
    """Differences by group of the means over seeds."""
    means_a = paired.values[a].mean(axis=0)
    means_b = paired.values[b].mean(axis=0)
    largest_value = max(float(np.abs(means_a).max()), float(np.abs(means_b).max()))
    if largest_value == 0.0:  # all values are 0; differences are divided by it
        largest_value = 1.0
    return difference_without_rounding(means_a, means_b, largest_value)


def _skewness(values: Array) -> float:
    deviations = values - values.mean()
    variance = float((deviations**2).mean())
    if variance == 0.0:
        return 0.0
    third_moment = float((deviations**3).mean())
    return float(third_moment / np.sqrt(variance) ** 3)
