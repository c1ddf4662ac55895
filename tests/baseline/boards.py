"""Problems of leaderboards: all rating models, ties, judges, covariates, time, context, priors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.baseline.draws import chance, log_uniform, pick
from tests.baseline.names import call, find, get
from tests.baseline.record import Record
from tests.baseline.uncertainty import record_suggestions

ROW_FIELDS = ("item", "rank", "rating", "low", "high")
RANK_FIELDS = ("best_rank", "worst_rank", "best_of_all", "worst_of_all", "tier", "component")
COUNT_FIELDS = ("n", "wins", "ties", "losses", "thin")
JUDGE_FIELDS = ("agreement", "agreement_low", "agreement_high", "side_bias", "weight")
NAMES = np.array(["Ann", "Bob", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jo"])


def draw_games(rng: np.random.Generator) -> dict[str, Any]:
    """Return a table of games: sides, outcome, points, judge, weight, covariates, time, place."""
    n_items = int(rng.integers(4, 11))
    n_games = int(rng.integers(50, 160))
    strength = rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    gap = strength[first] - strength[second] + 0.2
    margin = gap + rng.logistic(size=n_games)
    outcome = np.where(margin > 0, "left", "right").astype(object)
    if chance(rng, 0.5):
        outcome[np.abs(margin) < 0.3] = "tie"
    return {
        "left": NAMES[first],
        "right": NAMES[second],
        "outcome": outcome.astype(str),
        "left_points": np.maximum(0, np.round(10 + margin)),
        "right_points": np.full(n_games, 10.0),
        "judge": rng.integers(0, 8, n_games),
        "match": np.arange(n_games) // 2,
        "weight": rng.uniform(0.5, 2.0, n_games),
        "heat": rng.normal(size=n_games),
        "court": rng.choice(["clay", "grass", "hard"], n_games),
        "day": np.sort(rng.integers(0, 6, n_games)).astype(float),
    }


def draw_columns(rng: np.random.Generator) -> dict[str, Any]:
    """Return which columns of the games are used, beside the sides."""
    columns: dict[str, Any] = {"sides": ("left", "right")}
    if chance(rng, 0.25):
        columns |= {"scores": ("left_points", "right_points"), "margin": True}
    else:
        columns["outcome"] = "outcome"
    if chance(rng, 0.3):
        columns["weight"] = "weight"
    kind = pick(rng, ("none", "none", "judge", "cluster"))
    if kind == "judge":
        columns["judge"] = "judge"
    if kind == "cluster":
        columns["cluster"] = "match"
    return columns


def draw_board_options(rng: np.random.Generator, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the model of a board and what it shows."""
    takes_margins = "margin" in columns
    model = "least-squares" if takes_margins else pick(rng, ("least-squares", "bradley-terry"))
    options: dict[str, Any] = {"model": model, "alpha": pick(rng, (1e-3, 0.03, "auto"))}
    if model == "bradley-terry" and chance(rng, 0.4):
        options["ties"] = "davidson"
    if chance(rng, 0.4):
        options["side"] = True
    if chance(rng, 0.3):
        options["covariates"] = pick(rng, (["heat"], ["court"], ["heat", "court"]))
    if "judge" in columns and chance(rng, 0.5):
        options["reweight"] = True
    if chance(rng, 0.3) and model == "bradley-terry":
        options["scale"] = pick(rng, ("logit", "elo"))
    if chance(rng, 0.2):
        options["anchor"] = "Bob"
    if chance(rng, 0.2):
        options["sort_by"] = "lower"
    if chance(rng, 0.2):
        options["min_comparisons"] = 20
    if chance(rng, 0.2):
        options["confidence"] = 0.8
    return options


def record_board(record: Record, board: Any, name: str = "board") -> None:
    """Store ratings, intervals, ranks, effects, judges and what ratings do not explain."""
    for fields in (ROW_FIELDS, RANK_FIELDS, COUNT_FIELDS):
        for field in fields:
            record.add(f"{name}.rows.{field}", [get(row, field) for row in board.rows])
    record.add(f"{name}.ratings", board.ratings)
    record.add(f"{name}.alpha", board.alpha)
    record.add(f"{name}.ties", board.ties)
    record.add(f"{name}.intransitivity", get(board, "intransitivity"))
    record.add(f"{name}.agreement_alpha", get(board, "agreement_alpha"))
    record.add(f"{name}.effects", list(board.effects))
    for field in JUDGE_FIELDS:
        record.add(f"{name}.judges.{field}", [getattr(judge, field) for judge in board.judges])


def boards(rng: np.random.Generator, record: Record) -> None:
    """Least squares and Bradley–Terry on games, with everything that may explain them."""
    columns = draw_columns(rng)
    games = draw_games(rng)
    options = draw_board_options(rng, columns)
    record.describe(options, columns)
    board = call(find("rate"), games, **options, **columns)
    record_board(record, board)
    meetings = board.head_to_head
    record.add("head_to_head", [meetings.n, meetings.observed, meetings.expected])
    record.add("above", board.above("Ann", "Bob"))
    record.add("expected_margin", board.expected_margin("Ann", "Cleo"))
    record.add("forecast", board.predict("Bob", "Cleo"))


def votes_to_flip(rng: np.random.Generator, record: Record) -> None:
    """How many votes, or clusters, have to be dropped to change an order."""
    columns = draw_columns(rng)
    options = {"model": "least-squares", "alpha": 1e-3}
    record.describe(options, columns)
    board = find("rate")(draw_games(rng), **options, **columns)
    for pair in (("Ann", "Bob"), ("Cleo", "Ann")):
        flips = get(board, "votes_to_flip")(*pair)
        record.add("-".join(pair), [flips.n, flips.at_least, flips.of])
        record.add("-".join([*pair, "removed"]), flips.removed)


def row_votes_to_flip(rng: np.random.Generator, record: Record) -> None:
    """How many votes hold each item of a board above the next ones."""
    columns = draw_columns(rng)
    least_squares = "margin" in columns or chance(rng, 0.5)
    model = "least-squares" if least_squares else "bradley-terry"
    record.describe(model, columns)
    board = find("rate")(draw_games(rng), model=model, alpha=0.01, **columns)
    for item, flips in get(board, "row_votes_to_flip").items():
        record.add(f"{item}", [flips.n, flips.at_least, flips.of])
        record.add(f"{item}.removed", flips.removed)


def next_comparisons(rng: np.random.Generator, record: Record) -> None:
    """Suggested comparisons of a board."""
    columns = draw_columns(rng)
    model = "bradley-terry" if "outcome" in columns else "least-squares"
    record.describe(model, columns)
    board = find("rate")(draw_games(rng), model=model, alpha=0.01, **columns)
    record_suggestions(record, call(find("next_pairs"), board, k=3, random_state=0))


def boards_with_features(rng: np.random.Generator, record: Record) -> None:
    """Ratings that are linear in features of the items."""
    pairs = find("pairs_from_frame")(draw_games(rng), sides=("left", "right"), outcome="outcome")
    features = rng.normal(size=(len(pairs.items), 2))
    model = pick(rng, ("least-squares", "bradley-terry"))
    options = {"alpha": log_uniform(rng, 1e-3, 1.0), "side": chance(rng, 0.5)}
    record.describe(model, options)
    record_board(record, find("rate")(pairs, features=features, model=model, **options))


def boards_with_priors(rng: np.random.Generator, record: Record) -> None:
    """Ratings that start from those of another judge."""
    games = draw_games(rng)
    items = np.unique(np.concatenate([games["left"], games["right"]]))
    prior = {str(item): float(rng.normal()) for item in items}
    columns = {"sides": ("left", "right"), "outcome": "outcome"}
    alpha = pick(rng, (None, 0.01, 1.0))
    model = pick(rng, ("least-squares", "bradley-terry"))
    record.describe(model, f"alpha {alpha}")
    board = find("rate")(games, prior=prior, model=model, alpha=alpha, **columns)
    record_board(record, board)
    record.add("prior", [*board.prior.slopes, board.prior.votes, board.prior.trust])


def boards_of_rankings(rng: np.random.Generator, record: Record) -> None:
    """Plackett–Luce and least squares on rankings of several items."""
    n_races = int(rng.integers(12, 30))
    n_items = int(rng.integers(5, 10))
    strength = rng.normal(size=n_items)
    race = []
    item = []
    place = []
    for number in range(n_races):
        starters = rng.permutation(n_items)[: int(rng.integers(3, n_items + 1))]
        order = starters[np.argsort(-(strength[starters] + rng.gumbel(size=len(starters))))]
        race += [number] * len(order)
        item += NAMES[order].tolist()
        place += list(range(1, len(order) + 1))
    table = {"race": race, "driver": item, "finish": place}
    model = pick(rng, ("plackett-luce", "plackett-luce", "bradley-terry", "least-squares"))
    columns = {"ranking": "race", "item": "driver", "place": "finish"}
    record.describe(model, f"{n_races} races of {n_items} items")
    record_board(record, find("rate")(table, model=model, alpha=0.01, **columns))


def boards_over_time(rng: np.random.Generator, record: Record) -> None:
    """Ratings that change in time and differ between contexts."""
    columns: dict[str, Any] = {"sides": ("left", "right"), "outcome": "outcome"}
    kind = pick(rng, ("time", "context", "both"))
    if kind != "context":
        columns["time"] = "day"
    if kind != "time":
        columns["context"] = "court"
    options: dict[str, Any] = {"model": "bradley-terry", "side": chance(rng, 0.5)}
    if chance(rng, 0.7):
        spread_of_time = 0.0 if kind == "context" else 0.5
        spread_of_context = 0.0 if kind == "time" else 0.4
        options["scales"] = find("PriorScales")(1.0, spread_of_time, 3.0, spread_of_context)
    if chance(rng, 0.3):
        options["ties"] = "davidson"
    record.describe(options, columns)
    board = find("rate")(draw_games(rng), **options, **columns)
    record_board(record, board)
    record.add("prior_scales", get(board, "prior_scales"))
    if "time" in columns:
        record_board(record, get(board, "rating_at")(time=2.0), "earlier")
        history = get(board, "rating_histories")(["Ann"], n_times=5)["Ann"]
        record.add("history", [history.rating, history.low, history.high])
    if "context" in columns:
        record_board(record, get(board, "rating_at")(context="clay"), "clay")


def boards_by_group(rng: np.random.Generator, record: Record) -> None:
    """One board for each court, and boards that are tested on later games."""
    games = draw_games(rng)
    columns = {"sides": ("left", "right"), "outcome": "outcome"}
    options = {"model": "bradley-terry", "alpha": 0.01}
    pairs = find("pairs_from_frame")(games, **columns)
    for name, board in find("rate_groups")(pairs, games["court"], **options).items():
        record.add(f"{name}.ratings", board.ratings)
    test = find("backtest")(games, 4, time="day", **columns)
    record.add("n", [test.n_before, test.n_later])
    for method in test.methods:
        numbers = [method.log_loss, method.error, method.behind, method.accuracy]
        record.add(f"backtest.{method.name}", numbers)


AREAS = {
    "boards": (boards, 200),
    "votes_to_flip": (votes_to_flip, 40),
    "row_votes_to_flip": (row_votes_to_flip, 30),
    "next_comparisons": (next_comparisons, 30),
    "boards_with_features": (boards_with_features, 40),
    "boards_with_priors": (boards_with_priors, 40),
    "boards_of_rankings": (boards_of_rankings, 40),
    "boards_over_time": (boards_over_time, 30),
    "boards_by_group": (boards_by_group, 12),
}
