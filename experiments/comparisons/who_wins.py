"""AutoRanker on comparisons of items with features, beside boosted trees, a logistic model and Elo.

    python -m experiments.comparisons.who_wins --data DIR [--only pokemon,types] [--folds 1]

Sets: `pokemon` (50,000 battles of 784 items; sides drawn at random), `side` (the same with the side
that is named first), `pokemon-known` (a fifth of the battles of known items), `types` (strength and
a cycle of five types), `order` (additive, with effects that no column tells), `atp` (matches of
2017 to 2019, after training on 2010 to 2016), `chameleons` (106 contests of 35 animals).

New items: the items are cut into five folds; models are trained on comparisons with no item in the
fold. `both` and `one` are held-out comparisons with both items, or one item, new. Errors are
dyadic-robust standard errors, p is that of the difference from AutoRanker in log loss, after Holm
for the peers of a row. Every learner has one thread. Peers choose their number of trees on one
inner fold of items (the last sixth of the matches of `atp`). The made sets are scaled so that the
loss of their true probabilities is .394 (`types`) and .339 (`order`).
"""

import time
import warnings

import numpy as np
import pandas as pd
from catboost import CatBoost, Pool
from lightgbm import LGBMClassifier, early_stopping
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import AutoRanker, HingeFeatures, PairGraph, RankLogisticCV, TableVectorizer
from rankwise.datasets import PairData
from rankwise.metrics import dyadic_robust_mean

SETS = ("types", "order", "chameleons", "atp", "pokemon", "side", "pokemon-known")
N_FOLDS = 5
MAX_TREES = 1000
PATIENCE = 50
SIZES = {"types": (300, 8000), "order": (300, 6000)}  # items and comparisons that are drawn
LIMIT = 1e-6  # probabilities of peers are clipped
TRUTH = "true probabilities"  # of made sets: what no learner can beat


class Matches:
    """Items, sides, whether the first one won, and what else is known of each comparison."""

    def __init__(
        self,
        items,
        first,
        second,
        won,
        *,
        has_side=False,
        time=None,
        player=None,
        probability=None,
    ):
        self.items = items.reset_index(drop=True)
        self.first = np.asarray(first)
        self.second = np.asarray(second)
        self.won = np.asarray(won, dtype=float)
        self.has_side = has_side
        self.time = time
        self.player = player
        self.probability = probability  # the true one, of made sets

    def take(self, rows):
        """The selected comparisons."""
        time = None if self.time is None else self.time[rows]
        return Matches(
            self.items,
            self.first[rows],
            self.second[rows],
            self.won[rows],
            has_side=self.has_side,
            time=time,
            player=self.player,
        )


def read_pokemon(folder, has_side):
    """Battles; without the side, a fair coin says which one is named first."""
    items_path, battles_path = find_data(folder, "pokemon/pokemon.csv.gz", "pokemon/combats.csv.gz")
    items = pd.read_csv(items_path)
    battles = pd.read_csv(battles_path)
    row = pd.Series(np.arange(len(items)), index=items["#"])
    first = row[battles["First_pokemon"]].to_numpy()
    second = row[battles["Second_pokemon"]].to_numpy()
    won = (battles["Winner"] == battles["First_pokemon"]).to_numpy()
    if not has_side:
        swap = np.random.default_rng(0).random(len(won)) < 0.5
        first_before_swap = first
        first = np.where(swap, second, first)
        second = np.where(swap, first_before_swap, second)
        won = won ^ swap
    return Matches(items.drop(columns=["#", "Name"]), first, second, won, has_side=has_side)


def draw_pairs(rng, n_items, n_pairs):
    """Two different items each."""
    first = rng.integers(n_items, size=n_pairs)
    return first, (first + rng.integers(1, n_items, size=n_pairs)) % n_items


def make_types(seed=0):
    """A strength, and types that each beat the next two of a cycle of five."""
    rng = np.random.default_rng(seed)
    n_items, n_pairs = SIZES["types"]
    strength = rng.normal(size=n_items)
    kind = rng.integers(5, size=n_items)
    items = pd.DataFrame({"strength": strength, "type": np.array(list("ABCDE"))[kind]})
    items["noise"] = rng.normal(size=n_items)
    first, second = draw_pairs(rng, n_items, n_pairs)
    advantage = np.array([0.0, 1.6, 1.0, -1.0, -1.6])[(kind[second] - kind[first]) % 5]
    probability = expit(1.38 * (strength[first] - strength[second] + advantage))
    won = rng.random(n_pairs) < probability
    return Matches(items, first, second, won, probability=probability)


def make_order(seed=0):
    """A score that adds up curves, a product of two columns and effects that no column tells."""
    rng = np.random.default_rng(seed)
    n_items, n_pairs = SIZES["order"]
    X = rng.normal(size=(n_items, 6))
    score = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] + np.abs(X[:, 2]) + 0.5 * X[:, 3] * X[:, 4]
    score = 1.38 * (score + 0.3 * rng.normal(size=n_items))
    first, second = draw_pairs(rng, n_items, n_pairs)
    probability = expit(score[first] - score[second])
    won = rng.random(n_pairs) < probability
    items = pd.DataFrame(X, columns=list("abcdef"))
    return Matches(items, first, second, won, probability=probability)


def read_chameleons(folder):
    """Contests of animals."""
    winner, loser, predictors = (
        pd.read_csv(path)
        for path in find_data(
            folder,
            "chameleons/winner.csv.gz",
            "chameleons/loser.csv.gz",
            "chameleons/predictors.csv.gz",
        )
    )
    items = predictors.set_index(predictors.columns[0])
    return Matches(
        items, items.index.get_indexer(winner["ID"]), items.index.get_indexer(loser["ID"]), True
    )


def read_atp(folder):
    """Matches that were played to the end: two rows of items each, as of that day."""
    names = [f"atp_tennis/atp_matches_{year}.csv.gz" for year in range(2010, 2020)]
    table = pd.concat([pd.read_csv(path) for path in find_data(folder, *names)])
    table = table[~table["score"].fillna("W/O").str.contains("W/O|RET|DEF")]
    table = table.sort_values(["tourney_date", "match_num"], kind="stable")
    sides = []
    for side in ("winner", "loser"):
        columns = {f"{side}_{name}": name for name in ("rank", "rank_points", "age", "ht", "hand")}
        frame = table[list(columns)].rename(columns=columns)
        sides.append(frame.assign(player=table[f"{side}_id"].to_numpy()))
    items = pd.concat(sides, ignore_index=True)
    items["log rank"] = np.log(items["rank"])
    n = len(table)
    player = items.pop("player").to_numpy()
    dates = pd.to_datetime(table["tourney_date"].astype(str)).to_numpy()
    rows = np.arange(n)
    return Matches(items, rows, rows + n, np.ones(n), time=dates, player=player)


def read_set(name, folder):
    """One of the sets."""
    if name in ("pokemon", "pokemon-known", "side"):
        return read_pokemon(folder, has_side=name == "side")
    if name == "types":
        return make_types()
    if name == "order":
        return make_order()
    if name == "chameleons":
        matches = read_chameleons(folder)
        matches.won = np.ones(len(matches.first))
        return matches
    return read_atp(folder)


# ---------------------------------------------------------------- learners


def fit_auto_ranker(train):
    """AutoRanker, and what it reports."""
    if train.has_side:
        comparisons = PairData(
            train.first,
            train.second,
            np.where(train.won > 0.5, 1.0, -1.0),
            np.ones(len(train.won)),
            np.arange(len(train.items)),
        )
    else:
        comparisons = PairGraph(
            np.where(train.won > 0.5, train.first, train.second),
            np.where(train.won > 0.5, train.second, train.first),
            n_items=len(train.items),
        )
    items = train.items
    options = {}
    if train.player is not None:
        items = items.assign(player=train.player)
        options = {"item_id": "player", "time": train.time}
    model = AutoRanker().fit(items, comparisons, **options)

    def predict(test):
        covariates = {"named first": 1.0} if test.has_side else None
        above = model.predict_above(items, test.first, test.second, covariates=covariates)
        scores = model.predict(items)
        return above, scores[test.first] - scores[test.second]

    return predict, model


def encode(items):
    """Numbers, and categories as codes."""
    frame = items.copy()
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]) or frame[name].dtype == bool:
            frame[name] = frame[name].astype("category").cat.codes.astype("category")
    return frame


def both_sides(frame, matches, swap=False):
    """Columns of the first and of the second item, and of the side."""
    first = matches.first
    second = matches.second
    if swap:
        first, second = second, first
    rows = pd.concat(
        [
            frame.iloc[first].reset_index(drop=True).add_suffix("_a"),
            frame.iloc[second].reset_index(drop=True).add_suffix("_b"),
        ],
        axis=1,
    )
    if matches.has_side:
        rows["named first"] = -1 if swap else 1
    return rows


def inner_split(train):
    """Comparisons without a fifth of the items, and those with one of them; or by time."""
    if train.time is not None:
        cut = np.sort(train.time)[int(len(train.time) * 5 / 6)]
        return np.flatnonzero(train.time < cut), np.flatnonzero(train.time >= cut)
    compared = np.unique([train.first, train.second])
    held_out = np.random.default_rng(1).permutation(compared)[: len(compared) // 5]
    touches = np.isin(train.first, held_out) | np.isin(train.second, held_out)
    return np.flatnonzero(~touches), np.flatnonzero(touches)


def fit_lightgbm(train):
    """A classifier of (x_a, x_b), both orders."""
    frame = encode(train.items)

    def rows_of(matches):
        rows = pd.concat([both_sides(frame, matches), both_sides(frame, matches, swap=True)])
        return rows, np.concatenate([matches.won, 1 - matches.won])

    grow, watch = inner_split(train)
    options = {"n_estimators": MAX_TREES, "n_jobs": 1, "verbose": -1, "random_state": 0}
    probe = LGBMClassifier(**options)
    probe.fit(
        *rows_of(train.take(grow)),
        eval_set=[rows_of(train.take(watch))],
        callbacks=[early_stopping(PATIENCE, verbose=False)],
    )
    options["n_estimators"] = max(1, probe.best_iteration_)
    model = LGBMClassifier(**options).fit(*rows_of(train))

    def predict(test):
        forward = model.predict_proba(both_sides(frame, test))[:, 1]
        backward = model.predict_proba(both_sides(frame, test, swap=True))[:, 1]
        return (forward + 1 - backward) / 2, forward - backward

    return predict, None


def temperature(differences, won):
    """The factor of differences with the smallest log loss, of 60 between 1e-2 and 1e2."""
    factors = np.geomspace(0.01, 100, 60)
    losses = [np.mean(np.logaddexp(0, f * differences) - won * f * differences) for f in factors]
    return factors[int(np.argmin(losses))]


def fit_catboost(train):
    """PairLogit of f(a) - f(b)."""
    items = train.items.copy()
    names = [c for c in items if not pd.api.types.is_numeric_dtype(items[c])]
    names += [c for c in items if items[c].dtype == bool]
    for name in names:
        items[name] = items[name].astype(object).fillna("missing").astype(str)

    def pool_of(matches):
        winner = np.where(matches.won > 0.5, matches.first, matches.second)
        loser = np.where(matches.won > 0.5, matches.second, matches.first)
        pairs = np.column_stack([winner, loser])
        labels = np.zeros(len(items))
        return Pool(
            items, labels, pairs=pairs, cat_features=names, group_id=np.zeros(len(items), dtype=int)
        )

    grow, watch = inner_split(train)
    options = {"loss_function": "PairLogit", "thread_count": 1, "verbose": 0, "random_seed": 0}
    options["allow_writing_files"] = False
    probe = CatBoost({**options, "iterations": MAX_TREES})
    probe.fit(
        pool_of(train.take(grow)),
        eval_set=pool_of(train.take(watch)),
        early_stopping_rounds=PATIENCE,
    )
    held_out = train.take(watch)
    scores = probe.predict(items)
    factor = temperature(scores[held_out.first] - scores[held_out.second], held_out.won)
    n_trees = max(1, probe.get_best_iteration() + 1)
    model = CatBoost({**options, "iterations": n_trees}).fit(pool_of(train))
    final = factor * model.predict(items)
    return (
        lambda test: (
            expit(final[test.first] - final[test.second]),
            final[test.first] - final[test.second],
        )
    ), None


def fit_logistic(train):
    """RankLogisticCV on scaled columns with hinges."""
    model = make_pipeline(TableVectorizer(scale=True), HingeFeatures(), RankLogisticCV(cv=5))
    graph = PairGraph(
        np.where(train.won > 0.5, train.first, train.second),
        np.where(train.won > 0.5, train.second, train.first),
        n_items=len(train.items),
        groups=np.zeros(len(train.items)),
    )
    scores = model.fit(train.items, graph).predict(train.items)
    return (
        lambda test: (
            expit(scores[test.first] - scores[test.second]),
            scores[test.first] - scores[test.second],
        )
    ), None


def follow_elo(matches, is_test, step=24.0):
    """Elo ratings, updated match by match during the test, too."""
    ratings = dict.fromkeys(np.unique(matches.player).tolist(), 1500.0)
    probability = np.empty(len(matches.won))
    ends = zip(matches.player[matches.first], matches.player[matches.second], strict=True)
    for k, (a, b) in enumerate(ends):
        probability[k] = expit((ratings[a] - ratings[b]) * np.log(10) / 400)
        change = step * (matches.won[k] - probability[k])
        ratings[a] += change
        ratings[b] -= change
    return probability[is_test]


LEARNERS = {
    "AutoRanker": fit_auto_ranker,
    "LightGBM (x_a, x_b)": fit_lightgbm,
    "CatBoost PairLogit": fit_catboost,
    "RankLogisticCV, hinges": fit_logistic,
}

# ---------------------------------------------------------------- protocol


def outer_splits(name, matches, n_folds):
    """Training comparisons, test comparisons, and how many of their items are new."""
    if name == "atp":
        is_test = matches.time >= np.datetime64("2017-01-01")
        test = np.flatnonzero(is_test)
        yield np.flatnonzero(~is_test), test, np.zeros(len(test), dtype=int)
        return
    if name == "pokemon-known":
        order = np.random.default_rng(0).permutation(len(matches.won))
        n_test = len(order) // N_FOLDS
        yield order[n_test:], order[:n_test], np.zeros(n_test, dtype=int)
        return
    compared = np.unique([matches.first, matches.second])
    fold = np.full(len(matches.items), -1)
    fold[compared] = np.random.default_rng(0).permutation(len(compared)) % N_FOLDS
    for k in range(n_folds):
        n_new = (fold[matches.first] == k).astype(int) + (fold[matches.second] == k)
        test = np.flatnonzero(n_new)
        yield np.flatnonzero(n_new == 0), test, n_new[test]


def evaluate_set(name, matches, n_folds):
    """Rows of the table, and remarks."""
    results = {learner: [] for learner in LEARNERS}
    seconds = dict.fromkeys(LEARNERS, 0.0)
    orders = []  # differences of the best order of AutoRanker
    test_rows_of_folds = []
    n_new_of_folds = []
    remarks = []
    for train_rows, test_rows, n_new in outer_splits(name, matches, n_folds):
        train = matches.take(train_rows)
        test = matches.take(test_rows)
        test_rows_of_folds.append(test_rows)
        n_new_of_folds.append(n_new)
        for learner, fit in LEARNERS.items():
            start = time.process_time()
            predict, model = fit(train)
            seconds[learner] += time.process_time() - start
            probability, difference = predict(test)
            results[learner].append(probability)
            if model is not None:
                orders.append(difference)
                explained = {key: round(value, 3) for key, value in model.explained_.items()}
                remarks.append(f"{name}: explained_ {explained}; {model.notes_[-1]}")

    rows = np.concatenate(test_rows_of_folds)
    probabilities = {learner: np.concatenate(values) for learner, values in results.items()}
    if name == "atp":
        probabilities["Elo, match by match"] = follow_elo(matches, rows)
        seconds["Elo, match by match"] = 0.0
    if matches.probability is not None:
        probabilities[TRUTH] = matches.probability[rows]
        seconds[TRUTH] = 0.0

    n_new = np.concatenate(n_new_of_folds)
    order = np.concatenate(orders)
    lines = []
    for kind, is_kind in (("both", n_new == 2), ("one", n_new == 1), ("known", n_new == 0)):
        if is_kind.any():
            lines += kind_rows(name, kind, matches, rows, is_kind, probabilities, order, seconds)
    return lines, remarks


def kind_rows(name, kind, matches, rows, is_kind, probabilities, order, seconds):
    """Share of wrong comparisons and log loss of each learner, p-values after Holm."""
    test = matches.take(rows[is_kind])
    ends = test.first, test.second
    if test.player is not None:
        ends = test.player[test.first], test.player[test.second]
    losses = {}
    lines = []
    for learner, probability in probabilities.items():
        chance = np.clip(probability[is_kind], LIMIT, 1 - LIMIT)
        losses[learner] = -np.log(np.where(test.won > 0.5, chance, 1 - chance))
    p = {
        learner: dyadic_robust_mean(loss - losses["AutoRanker"], *ends).p
        for learner, loss in losses.items()
        if learner not in ("AutoRanker", TRUTH)
    }
    adjusted = holm(p)
    for learner, probability in probabilities.items():
        wrong = wrong_of(probability[is_kind] - 0.5, test.won)
        mean = dyadic_robust_mean(wrong, *ends)
        loss = dyadic_robust_mean(losses[learner], *ends)
        difference = loss.mean - losses["AutoRanker"].mean()
        p_text = ""
        if learner in adjusted:
            p_text = f"{adjusted[learner]:.1g}"
        lines.append(
            [
                name,
                kind,
                learner,
                f"{mean.mean:.3f} ± {mean.standard_error:.3f}",
                f"{loss.mean:.3f}",
                f"{difference:+.3f}",
                p_text,
                f"{seconds[learner]:.0f}",
            ]
        )
        if learner == "AutoRanker":
            by_order = dyadic_robust_mean(wrong_of(order[is_kind], test.won), *ends)
            text = f"{by_order.mean:.3f} ± {by_order.standard_error:.3f}"
            lines.append([name, kind, "  its order (predict)", text, "", "", "", ""])
    return lines


def wrong_of(differences, won):
    """1 for the wrong winner, 1/2 for equal scores."""
    return np.abs(0.5 + 0.5 * np.sign(differences) - won)


def holm(p):
    """Holm's correction of the p-values of a dictionary."""
    names = sorted(p, key=p.__getitem__)
    adjusted = {}
    largest = 0.0
    for k, name in enumerate(names):
        largest = max(largest, min(1.0, (len(names) - k) * p[name]))
        adjusted[name] = largest
    return adjusted


def main(argv=None):
    """Evaluate the learners on the sets."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--folds", type=int, default=5, help="of five folds of items, Pokémon only")
    options = parser.parse_args(argv)
    table = []
    remarks = []
    for name in options.only.split(","):
        matches = read_set(name, options.data)
        n_folds = options.folds
        if name in ("types", "order", "chameleons"):
            n_folds = N_FOLDS
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            lines, notes = evaluate_set(name, matches, n_folds)
        table += lines
        remarks += notes
    header = ["set", "new items", "learner", "wrong", "log loss", "difference", "p", "seconds"]
    print_table("Comparisons of new items", header, table)
    print_notes(*remarks)


if __name__ == "__main__":
    record(main)
