"""Choice of the rating model of a board, and its fit."""

from __future__ import annotations

from rankwise.datasets import PairData
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.outcome_likelihood import are_verdicts
from rankwise.leaderboard.arguments import is_number_between
from rankwise.leaderboard.board_inputs import ModelInputs
from rankwise.leaderboard.covariates import check_identified
from rankwise.leaderboard.models.base import RatingModel
from rankwise.leaderboard.models.bradley_terry import BradleyTerry
from rankwise.leaderboard.models.dynamic import fit_dynamic
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.leaderboard.models.plackett_luce_model import PlackettLuce
from rankwise.validation import check_option

MODEL_NAMES = ("least-squares", "bradley-terry", "plackett-luce")
LARGEST_ALPHA = 1e100
LEAST_ALPHA = 1e-13  # a smaller alpha is lost in rounding, and the system is singular
DEFAULT_ALPHA = 1e-8


def default_model(data: PairData) -> str:
    """Return the default model of `rate`."""
    if data.times is not None or data.contexts:
        return "bradley-terry"
    if data.rankings is not None:
        return "plackett-luce"
    if are_verdicts(data.outcome):
        return "bradley-terry"
    return "least-squares"


def check_model(
    model: str,
    data: PairData,
    *,
    has_features: bool,
    has_prior: bool,
    side: bool,
    ties: str,
    alpha: object,
) -> None:
    """Refuse combinations of the data and the arguments of `rate` that do not fit the model."""
    check_option("model", model, MODEL_NAMES)
    check_option("ties", ties, ("half", "davidson"))
    _check_alpha(alpha, data, has_prior)
    is_dynamic = data.times is not None or bool(data.contexts)
    describes_items = has_features or has_prior
    needs_static_ratings = model != "bradley-terry" or describes_items or alpha is not None
    has_rankings = data.rankings is not None
    is_listwise = model == "plackett-luce"
    # Each refusal: whether it applies, and its message.
    refusals = [
        (
            has_prior and has_features,
            "prior= and features= both describe the items; pass one of them (a table of numbers "
            "may be a prior).",
        ),
        (
            ties != "half" and model != "bradley-terry",
            f"ties={ties!r} is for model='bradley-terry'; least squares takes a tie as half a win, "
            "and rankings share places (ties='half').",
        ),
        (
            is_dynamic and needs_static_ratings,
            "time= and context= are for model='bradley-terry', without features=, prior= and "
            "alpha=; scales= determines the regularization.",
        ),
        (
            is_listwise and not has_rankings,
            "model='plackett-luce' is for rankings; name their columns with ranking=, item= and "
            "place=, or pass a list of lists. Comparisons of two items are for 'bradley-terry'.",
        ),
        (
            has_rankings and side,
            "side=True is for comparisons with two sides; the items of a ranking have none.",
        ),
        (
            data.teams is not None and describes_items,
            "features= and prior= are for comparisons of single items, but the sides are teams.",
        ),
        (
            is_listwise and describes_items,
            "features= and prior= cannot be combined with model='plackett-luce'; use "
            "'least-squares', or RankLogistic(likelihood='plackett-luce') on the rows of the "
            "rankings.",
        ),
    ]
    for is_refused, message in refusals:
        if is_refused:
            raise ValueError(message)


def _check_alpha(alpha: object, data: PairData, has_prior: bool) -> None:
    """Check that alpha is None, "auto" or a number, and that it can be selected if it must be."""
    is_auto = isinstance(alpha, str) and alpha == "auto"
    is_number = is_number_between(alpha, 0.0, LARGEST_ALPHA)
    if alpha is not None and not is_auto and not is_number:
        raise ValueError(
            f'alpha={alpha!r}; expected a positive number below {LARGEST_ALPHA:g}, or "auto".'
        )
    is_selected = is_auto or (alpha is None and has_prior)
    if is_selected and data.n_pairs < 2:
        raise ValueError(
            'alpha="auto" leaves out one comparison at a time, and there is only one; '
            "pass a number such as alpha=0.01."
        )


def check_scales_apply(data: PairData, scales: object, half_life: object) -> None:
    """Refuse arguments that have no effect without time and context."""
    if half_life is not None and data.times is None:
        raise ValueError(
            "half_life= is for ratings that change with time; name the column of times with time=, "
            "or leave out half_life=."
        )
    if scales is not None and data.times is None and not data.contexts:
        raise ValueError(
            "scales= is for ratings that depend on time or context; name their columns with time= "
            "and context=, or leave out scales=."
        )


def fit_model(data: PairData, inputs: ModelInputs) -> RatingModel:
    """Fit the chosen model; with times or contexts it is dynamic.

    Parameters
    ----------
    data : PairData
        The comparisons.
    inputs : ModelInputs
        The model and its options.
    """
    covariates = inputs.covariates
    X = inputs.features
    prior_ratings = None if inputs.priors is None else inputs.priors.orthogonal_basis
    is_dynamic = data.times is not None or bool(data.contexts)
    if is_dynamic:
        # Covariates are checked without the time and context of the comparisons.
        if covariates.names:
            pair_counts = ComparisonCounts.of(data, covariates.columns)
            check_identified(pair_counts, X, prior_ratings, covariates.names)
        return fit_dynamic(data, covariates.columns, inputs.ties, inputs.scales, inputs.half_life)

    counts = ComparisonCounts.of(data, covariates.columns)
    if covariates.names:
        check_identified(counts, X, prior_ratings, covariates.names)
    model: LeastSquares | BradleyTerry | PlackettLuce
    if inputs.model == "plackett-luce" and data.rankings is not None:
        model = PlackettLuce(counts, data.rankings)
    elif inputs.model == "bradley-terry":
        model = BradleyTerry(counts, X, prior_ratings, inputs.ties)
    else:
        model = LeastSquares(counts, X, prior_ratings)

    alpha = inputs.alpha
    if alpha is None:  # a prior needs a weight, which alpha determines
        alpha = DEFAULT_ALPHA if prior_ratings is None else "auto"
    if isinstance(alpha, str):
        alpha = model.select_alpha()
    return model.fit(max(LEAST_ALPHA, float(alpha)))
