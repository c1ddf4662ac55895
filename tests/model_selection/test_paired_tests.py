"""Tests of a mean difference against definitions, SciPy and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from rankwise.model_selection import paired_tests
from rankwise.model_selection.paired_tests import (
    Clusters,
    MeanError,
    cluster_error,
    detectable_difference,
    groups_needed,
    holm,
    randomization_tests,
    seed_error,
    student_test,
    sum_by_cluster,
)

CLUSTER_SIZES = [[10] * 6, [5] * 20, list(range(1, 13)), [50] + [5] * 10]


def random_clusters(rng):
    """Differences with ties and zeros, alone or in clusters."""
    n_units = int(rng.integers(2, 15))
    sizes = np.ones(n_units)
    if rng.random() < 0.5:
        sizes = rng.integers(1, 5, n_units).astype(float)
    sums = rng.normal(rng.choice([0.0, 0.7]), 1.0, n_units)
    if rng.random() < 0.5:
        sums = np.round(sums, 1)
    return Clusters(sums * sizes, sizes)


def p_of_all_signs(sums):
    """Share of all sign patterns whose sum is as far from zero as the observed one."""
    patterns = np.array(list(itertools.product([-1.0, 1.0], repeat=len(sums))))
    return float((np.abs(patterns @ sums) >= abs(sums.sum()) - 1e-9).mean())


def test_p_is_below_alpha_exactly_if_zero_is_outside_the_interval():
    rng = np.random.default_rng(0)
    n_outside = 0
    for _ in range(10_000):
        clusters = random_clusters(rng)
        confidence = float(rng.choice([0.8, 0.9, 0.95, 0.9375]))
        mean = clusters.sums.sum() / clusters.sizes.sum()
        tests = randomization_tests([clusters], confidence)
        tests.append(student_test(mean, cluster_error(clusters), confidence))
        for test in tests:
            is_outside = test.low > 0.0 or test.high < 0.0
            assert (test.p <= 1.0 - confidence) == is_outside
            n_outside += is_outside
    assert 2_000 < n_outside < 18_000


@pytest.mark.parametrize("n_units", [1, 2, 5, 9, 16])
def test_randomization_equals_all_sign_patterns(n_units):
    rng = np.random.default_rng(n_units)
    for _ in range(10 if n_units < 16 else 2):
        sums = np.round(rng.normal(0.3, 1.0, n_units), 1)
        sizes = rng.integers(1, 4, n_units).astype(float)
        (test,) = randomization_tests([Clusters(sums, sizes)], 0.95)
        assert test.p == pytest.approx(p_of_all_signs(sums), abs=1e-12)


def test_the_interval_has_the_means_that_the_randomization_test_does_not_reject():
    rng = np.random.default_rng(2)
    for _ in range(20):
        clusters = random_clusters(rng)
        (test,) = randomization_tests([clusters], 0.9)
        for mean in rng.normal(0.3, 1.0, 20):
            moved = Clusters(clusters.sums - mean * clusters.sizes, clusters.sizes)
            is_kept = p_of_all_signs(moved.sums) > 0.1 + 1e-12
            assert is_kept == (test.low <= mean <= test.high)


def test_randomization_by_draws_is_close_to_all_signs_and_to_scipy(monkeypatch):
    differences = np.random.default_rng(3).normal(0.4, 1, 16)
    clusters = Clusters(differences, np.ones(16))
    (exact,) = randomization_tests([clusters], 0.95)
    monkeypatch.setattr(paired_tests, "ALL_SUBSETS", 5)
    (drawn,) = randomization_tests([clusters], 0.95)
    one_sided = exact.p / 2
    error = 2 * np.sqrt(one_sided * (1 - one_sided) / 1e5)
    assert drawn.p == pytest.approx(exact.p, abs=5 * error)
    assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=0.03)
    assert drawn == randomization_tests([clusters], 0.95)[0]
    many = np.random.default_rng(4).normal(0.15, 1, 150)
    scipy_p = scipy.stats.permutation_test(
        (many,), np.mean, permutation_type="samples", n_resamples=9_999, rng=1
    ).pvalue
    (of_many,) = randomization_tests([Clusters(many, np.ones(150))], 0.95)
    assert of_many.p == pytest.approx(scipy_p, abs=0.02)


def test_pairs_are_tested_as_if_each_were_alone():
    rng = np.random.default_rng(5)
    sizes = np.ones(40)
    clusters = [Clusters(rng.normal(0.2, 1.0, 40), sizes) for _ in range(70)]
    together = randomization_tests(clusters, 0.95)
    for place in (0, 31, 32, 69):
        (alone,) = randomization_tests([clusters[place]], 0.95)
        assert together[place] == pytest.approx(alone, rel=1e-12)


def test_fewer_than_six_units_have_no_finite_randomization_interval():
    (test,) = randomization_tests([Clusters(np.array([1.0, 2, 3, 4, 5]), np.ones(5))], 0.95)
    assert (test.low, test.high) == (-np.inf, np.inf)
    assert test.p == 2 / 32


def leave_out_clusters(difference, codes):
    """Variance of the mean and degrees of freedom from refits without each cluster."""
    labels = np.unique(codes)
    n = len(labels)
    changes = np.array([difference.mean() - difference[codes != c].mean() for c in labels])
    # changes are linear in the differences; their covariance for independent, equal variances
    basis = np.eye(len(difference))
    maps = np.array([basis.mean(axis=0) - basis[codes != c].mean(axis=0) for c in labels])
    G = maps @ maps.T
    return (n - 1) / n * (changes**2).sum(), np.trace(G) ** 2 / (G**2).sum()


@pytest.mark.parametrize("seed", range(10))
def test_cluster_variance_equals_refits_and_satterthwaite_of_basis_vectors(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(6), rng.integers(1, 9, 6))
    difference = rng.normal(size=len(codes))
    error = cluster_error(sum_by_cluster(difference, codes))
    variance, freedom = leave_out_clusters(difference, codes)
    assert error.group_variance == pytest.approx(variance, rel=1e-12)
    assert error.degrees_of_freedom == pytest.approx(freedom, rel=1e-10)


def test_groups_alone_are_the_t_test_of_scipy():
    difference = np.random.default_rng(0).normal(0.3, 1.0, 25)
    error = cluster_error(sum_by_cluster(difference, None))
    test = student_test(float(difference.mean()), error, 0.9)
    expected = scipy.stats.ttest_1samp(difference, 0.0)
    assert error.degrees_of_freedom == pytest.approx(24, rel=1e-12)
    assert test.p == pytest.approx(expected.pvalue, rel=1e-11)
    assert test[1:] == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-12)


def seed_problem(rng, n_seeds, n_groups, seed_deviation):
    """Two equal arms with variance of groups, seeds and their interaction."""
    arms = []
    for _ in range(2):
        of_group = 0.07 * rng.normal(size=n_groups)
        of_seed = seed_deviation * rng.normal(size=(n_seeds, 1))
        arms.append(of_group + of_seed + 0.05 * rng.normal(size=(n_seeds, n_groups)))
    return arms


def seed_test(arms):
    difference = arms[0].mean(axis=0) - arms[1].mean(axis=0)
    error = seed_error(cluster_error(sum_by_cluster(difference, None)), arms)
    return student_test(float(difference.mean()), error, 0.95)


def mean_squares(values):
    """Mean squares of seeds and of the interaction, from the table of seeds and groups."""
    n_seeds, n_groups = values.shape
    of_seeds = 0.0
    of_cells = 0.0
    for s in range(n_seeds):
        of_seeds += n_groups * (values[s].mean() - values.mean()) ** 2
        for q in range(n_groups):
            cell = values[s, q] - values[s].mean() - values[:, q].mean() + values.mean()
            of_cells += cell**2
    return of_seeds / (n_seeds - 1), of_cells / ((n_seeds - 1) * (n_groups - 1))


@pytest.mark.parametrize("seed_deviation", [0.0, 0.02, 0.5])
def test_variance_of_seeds_is_that_of_a_two_way_table(seed_deviation):
    n_seeds, n_groups = 4, 15
    arms = seed_problem(np.random.default_rng(1), n_seeds, n_groups, seed_deviation)
    difference = arms[0].mean(axis=0) - arms[1].mean(axis=0)
    of_groups = cluster_error(sum_by_cluster(difference, None))
    error = seed_error(of_groups, arms)
    surplus = 0.0
    squares = of_groups.group_variance**2 / (n_groups - 1)
    for values in arms:
        of_seeds, of_cells = np.array(mean_squares(values)) / values.size
        surplus += of_seeds - of_cells
        squares += of_seeds**2 / (n_seeds - 1)
        squares += of_cells**2 / ((n_seeds - 1) * (n_groups - 1))
    assert error.group_variance == of_groups.group_variance
    assert error.seed_variance == pytest.approx(max(surplus, 0.0), rel=1e-10)
    total = error.group_variance + error.seed_variance
    assert error.degrees_of_freedom == pytest.approx(total**2 / squares, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("n_seeds, n_groups", [(3, 50), (3, 500), (5, 500)])
def test_type_one_error_with_seeds(n_seeds, n_groups):
    rng = np.random.default_rng(n_seeds * n_groups)
    rejected = [
        seed_test(seed_problem(rng, n_seeds, n_groups, 0.01)).p <= 0.05 for _ in range(4_000)
    ]
    assert np.mean(rejected) <= 0.075


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [[10] * 6, [5] * 20, list(range(1, 13)), [50] + [5] * 10], ids=len
)
def test_type_one_error_with_clusters(sizes):
    rng = np.random.default_rng(len(sizes))
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rejected = []
    for _ in range(4_000):
        of_cluster = rng.normal(size=len(sizes))[codes]
        difference = 0.55 * of_cluster + 0.84 * rng.normal(size=len(codes))
        error = cluster_error(sum_by_cluster(difference, codes))
        rejected.append(student_test(float(difference.mean()), error, 0.95).p <= 0.05)
    assert np.mean(rejected) <= 0.066


def test_a_ranker_without_seeds_has_no_variance_of_seeds():
    rng = np.random.default_rng(0)
    arms = seed_problem(rng, 4, 30, 0.5)
    single = [arms[0], arms[1][:1]]
    difference = single[0].mean(axis=0) - single[1][0]
    of_groups = cluster_error(sum_by_cluster(difference, None))
    assert seed_error(of_groups, [array[:1] for array in single]) == MeanError(
        of_groups.group_variance, 0.0, pytest.approx(of_groups.degrees_of_freedom)
    )
    error = seed_error(of_groups, single)
    expected = single[0].mean(axis=1).var(ddof=1) / 4
    assert error.seed_variance == pytest.approx(expected, rel=0.01)
    assert error.degrees_of_freedom < 5


def test_the_detectable_difference_is_found_with_the_power_that_it_states():
    n_groups = 20
    error = MeanError(1.0 / n_groups, 0.0, n_groups - 1)
    difference = detectable_difference(error, 0.05)
    samples = np.random.default_rng(0).normal(difference, 1.0, (20_000, n_groups))
    found = scipy.stats.ttest_1samp(samples, 0.0, axis=1).pvalue <= 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_the_number_of_groups_needed_is_the_smallest_that_detects():
    def detectable(n):
        return detectable_difference(MeanError(1.0 / n, 0.0, n - 1.0), 0.05)

    needed = groups_needed(MeanError(1.0 / 50, 0.0, 49.0), 50, 0.2, 0.05)
    assert detectable(needed + 2) < 0.2 < detectable(needed - 3)
    with_seeds = MeanError(1.0 / 50, 0.01, 4.0)
    assert np.isinf(groups_needed(with_seeds, 50, 0.2, 0.05))
    assert groups_needed(MeanError(1e-9, 0.0, 49.0), 50, 0.2, 0.05) == 2
    assert np.isnan(groups_needed(MeanError(np.nan, 0.0, 0.0), 1, 0.2, 0.05))


def test_holm_correction_steps_down():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
