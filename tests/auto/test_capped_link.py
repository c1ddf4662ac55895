"""The capped link: probabilities, derivatives and linear models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from rankwise.auto.capped_link import (
    Outcomes,
    as_log_odds,
    fit_coefficients,
    link_derivatives,
    log_losses,
    win_probability,
    wrong_shares,
)
from rankwise.auto.linear_comparisons import ComparisonDesign

UPSET_PROBABILITIES = (0.0, 0.02, 0.2)


def make_problem(seed=0, n_items=30, n_comparisons=400):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items, 3))
    first = rng.integers(n_items, size=n_comparisons)
    second = (first + rng.integers(1, n_items, size=n_comparisons)) % n_items
    columns = rng.normal(size=(n_comparisons, 2))
    design = ComparisonDesign(features, first, second, columns)
    truth = np.array([1.0, -2.0, 0.5, 0.3, 0.0])
    probability = win_probability(design.differences(truth), 0.05)
    first_win_share = (rng.random(n_comparisons) < probability).astype(float)
    return design, Outcomes(first_win_share, rng.uniform(0.5, 2.0, size=n_comparisons))


@given(st.floats(-800, 800), st.sampled_from(UPSET_PROBABILITIES))
def test_probabilities_of_both_sides_add_up_to_exactly_one(difference, min_upset_probability):
    differences = np.array([difference])
    total = win_probability(differences, min_upset_probability) + win_probability(
        -differences, min_upset_probability
    )
    assert total == 1.0
    assert as_log_odds(differences, min_upset_probability) == -as_log_odds(
        -differences, min_upset_probability
    )


@pytest.mark.parametrize("min_upset_probability", UPSET_PROBABILITIES)
def test_derivatives_equal_finite_differences(min_upset_probability):
    rng = np.random.default_rng(0)
    differences = rng.normal(scale=2, size=50)
    outcomes = Outcomes(rng.choice([0.0, 0.5, 1.0], 50), rng.random(50))
    step = 1e-6
    above = log_losses(differences + step, outcomes.first_win_share, min_upset_probability)
    below = log_losses(differences - step, outcomes.first_win_share, min_upset_probability)
    expected = outcomes.weight * (above - below) / (2 * step)
    derivatives = link_derivatives(differences, outcomes, min_upset_probability)
    np.testing.assert_allclose(derivatives.gradient, expected, atol=1e-8)
    assert (derivatives.information > 0).all()


@pytest.mark.parametrize("min_upset_probability", UPSET_PROBABILITIES)
def test_information_is_the_expected_curvature(min_upset_probability):
    differences = np.linspace(-3, 3, 13)
    ones = np.ones(13)
    probability = win_probability(differences, min_upset_probability)
    if_won = link_derivatives(differences, Outcomes(ones, ones), min_upset_probability).gradient
    if_lost = link_derivatives(
        differences, Outcomes(0 * ones, ones), min_upset_probability
    ).gradient
    expected = probability * if_won**2 + (1 - probability) * if_lost**2
    information = link_derivatives(
        differences, Outcomes(ones, ones), min_upset_probability
    ).information
    np.testing.assert_allclose(information, expected, rtol=1e-9)


def test_logistic_coefficients_equal_those_of_scikit_learn():
    design, outcomes = make_problem()
    coefficients = fit_coefficients(design, outcomes, alpha=2.0)
    differences = np.eye(5)
    Z = np.column_stack([design.differences(row) for row in differences])
    expected = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10)
    expected.fit(Z, outcomes.first_win_share, outcomes.weight)
    np.testing.assert_allclose(coefficients, expected.coef_[0], atol=2e-3)


@pytest.mark.parametrize("min_upset_probability", UPSET_PROBABILITIES)
def test_no_other_optimizer_finds_a_smaller_loss_nearby(min_upset_probability):
    design, outcomes = make_problem()
    start = fit_coefficients(design, outcomes, alpha=1.0)
    coefficients = fit_coefficients(design, outcomes, 1.0, min_upset_probability, start)

    def objective(candidate):
        losses = log_losses(
            design.differences(candidate), outcomes.first_win_share, min_upset_probability
        )
        return outcomes.weight @ losses + candidate @ candidate / 2

    other = minimize(objective, start, method="BFGS", options={"gtol": 1e-6})
    assert objective(coefficients) <= other.fun * (1 + 1e-4)


def test_ties_and_equal_scores_count_one_half():
    first_win_share = np.array([1.0, 0.0, 1.0, 0.5])
    wrong = wrong_shares(np.array([2.0, 1.0, 0.0, 1.0]), first_win_share)
    np.testing.assert_array_equal(wrong, [0.0, 1.0, 0.5, np.nan])
