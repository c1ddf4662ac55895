"""AutoRanker on comparisons of items with features."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from rankwise import AutoRanker, PairGraph
from rankwise.auto import gradient_trees, tree_growth
from rankwise.datasets import pairs_from_frame
from rankwise.metrics import dyadic_robust_mean
from rankwise.persistence import export_onnx, load, save
from tests.auto.comparison_data import additive, cyclic_types, draw_sides

LINEAR = ["hinges", "hinges, capped at 0.06", "joint linear model of pairs"]


@pytest.fixture(scope="module")
def types():
    return cyclic_types()


@pytest.fixture(scope="module")
def types_model(types):
    return AutoRanker().fit(types.items, types.graph)


def test_pairs_are_used_where_the_winner_depends_on_both(types, types_model):
    explained = types_model.explained_
    assert explained["share"] < 0.7
    assert explained["p"] < 1e-3
    new = cyclic_types(seed=7)
    probability = types_model.predict_above(new.items, new.first, new.second)
    scores = types_model.predict(new.items)
    by_pairs = np.mean((probability > 0.5) != new.won)
    by_order = np.mean((scores[new.first] > scores[new.second]) != new.won)
    assert by_pairs < by_order - 0.05
    note = types_model.notes_[-1]
    order, pairs = (float(number) for number in re.findall(r"([0-9.]+)%", note)[:2])
    assert order > pairs
    assert len(types_model.examples_) == 8


def test_pairs_are_dropped_where_an_order_explains_all():
    data = additive()
    model = AutoRanker().fit(data.items, data.graph)
    assert model.explained_["share"] > 0.9
    assert all(row["pair_weight"] == 0 for row in model.members_ if "pair_weight" in row)
    scores = model.predict(data.items)
    probability = model.predict_above(data.items, data.first, data.second)
    is_above = scores[data.first] > scores[data.second]
    np.testing.assert_array_equal(probability > 0.5, is_above)
    assert np.mean(is_above != data.won) < 0.3


def test_probabilities_of_both_sides_add_up_to_one(types, types_model):
    forward = types_model.predict_above(types.items, types.first, types.second)
    backward = types_model.predict_above(types.items, types.second, types.first)
    assert (forward + backward == 1).all()
    assert types_model.predict_above(types.items, 0, 1) == types_model.predict_above(
        types.items, [0], [1]
    )
    assert types_model.predict_above(types.items, 3, 3) == 0.5


def test_nothing_changes_if_rows_items_and_names_are_permuted(types):
    model = AutoRanker(LINEAR, n_resamples=0).fit(types.items, types.graph)
    rng = np.random.default_rng(3)
    order = rng.permutation(len(types.items))
    place = np.argsort(order)
    rows = rng.permutation(len(types.won))
    graph = types.graph
    permuted = PairGraph(place[graph.winner][rows], place[graph.loser][rows], n_items=len(order))
    other = AutoRanker(LINEAR, n_resamples=0).fit(types.items.iloc[order], permuted)
    np.testing.assert_array_equal(other.predict(types.items), model.predict(types.items))
    np.testing.assert_array_equal(
        other.predict_above(types.items, types.first, types.second),
        model.predict_above(types.items, types.first, types.second),
    )


def test_swapping_all_sides_changes_the_sign_of_covariates_only(types):
    rest = np.random.default_rng(4).normal(size=len(types.won))
    pairs = types.pair_data(covariates={"rest": rest})
    swapped = replace(
        pairs,
        first=pairs.second,
        second=pairs.first,
        outcome=-pairs.outcome,
        covariates={"rest": -rest},
    )
    models = [AutoRanker(LINEAR, n_resamples=0).fit(types.items, data) for data in (pairs, swapped)]
    scores = [model.predict(types.items) for model in models]
    np.testing.assert_allclose(*scores, rtol=1e-8)
    covariates = {"rest": 0.5}
    probabilities = [
        model.predict_above(types.items, 0, np.arange(1, 9), covariates=covariates)
        for model in models
    ]
    np.testing.assert_allclose(*probabilities, rtol=1e-8)


def test_held_out_errors_come_with_errors_for_shared_items(types_model):
    both, one = types_model.held_out_comparisons_
    assert both["kind"] == "both items new"
    assert one["kind"] == "one item new"
    assert both["n"] < one["n"]
    for row in (both, one):
        for name in ("order_wrong", "pairs_wrong", "order_log_loss", "pairs_log_loss"):
            assert row[f"{name}_error"] > 0
    estimate = types_model.estimate_
    assert estimate["low"] < estimate["score"] < estimate["high"]


@pytest.mark.slow
def test_the_estimate_contains_the_error_on_new_items():
    n_covered = 0
    for seed in range(8):
        data = cyclic_types(60, 1500, seed)
        model = AutoRanker(LINEAR, random_state=seed).fit(data.items, data.graph)
        new = cyclic_types(400, 4000, seed + 100)
        probability = model.predict_above(new.items, new.first, new.second)
        wrong = np.mean((probability > 0.5) != new.won)
        n_covered += model.estimate_["low"] <= wrong <= model.estimate_["high"]
    assert n_covered >= 6


def test_model_files_pickles_and_clones_predict_the_same_bits(types, types_model, tmp_path):
    save(types_model, tmp_path / "model.rw")
    for copy in (load(tmp_path / "model.rw"), pickle.loads(pickle.dumps(types_model))):
        np.testing.assert_array_equal(copy.predict(types.items), types_model.predict(types.items))
        np.testing.assert_array_equal(
            copy.predict_above(types.items, types.first, types.second),
            types_model.predict_above(types.items, types.first, types.second),
        )
        np.testing.assert_array_equal(
            copy.win_share(types.items[:5]), types_model.win_share(types.items[:5])
        )
        assert copy.explained_ == types_model.explained_
    assert not hasattr(clone(types_model), "comparison_")


def test_onnx_scores_the_order(types, types_model, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    export_onnx(types_model, tmp_path / "order.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "order.onnx")
    columns = {}
    for tensor in session.get_inputs():
        cells = types.items[tensor.name].to_numpy()
        kind = object if tensor.type == "tensor(string)" else np.float64
        columns[tensor.name] = cells.astype(kind).reshape(-1, 1)
    (scores,) = session.run(None, columns)
    np.testing.assert_allclose(scores, types_model.predict(types.items), atol=1e-5)


def test_win_shares_are_those_of_pairs(types, types_model):
    shares = types_model.win_share(types.items)
    assert shares.shape == (80,)
    wins = np.bincount(types.first, types.won, 80) + np.bincount(types.second, ~types.won, 80)
    games = np.bincount(types.first, minlength=80) + np.bincount(types.second, minlength=80)
    assert np.corrcoef(shares, wins / games)[0, 1] > 0.8


@pytest.mark.parametrize("members", ["default", LINEAR])
def test_a_matrix_works_as_a_frame_does(members):
    data = additive()
    X = data.items.to_numpy()
    of_matrix = AutoRanker(members, n_resamples=0).fit(X, data.graph)
    of_frame = AutoRanker(members, n_resamples=0).fit(data.items, data.graph)
    np.testing.assert_allclose(of_matrix.predict(X), of_frame.predict(data.items))


def test_trees_of_scikit_learn_are_used_without_lightgbm(types, monkeypatch):
    for module in (gradient_trees, tree_growth):
        monkeypatch.setattr(module, "lightgbm_or_none", lambda: None)
    monkeypatch.setattr("rankwise.auto.tree_rounds.MAX_TREES", 50)
    members = ["hinges", "trees of items", "trees of pairs"]
    model = AutoRanker(members, n_resamples=0).fit(types.items, types.graph)
    assert model.explained_["pairs"] > model.explained_["order"] + 0.05
    forward = model.predict_above(types.items, types.first, types.second)
    assert (forward + model.predict_above(types.items, types.second, types.first) == 1).all()


def test_names_in_a_column_or_in_the_index_match_the_items(types):
    pairs = types.pair_data()
    by_index = AutoRanker(LINEAR, n_resamples=0).fit(types.items, pairs)
    frame = types.items.sample(frac=1, random_state=1).reset_index(names="player")
    by_column = AutoRanker(LINEAR, n_resamples=0).fit(frame, pairs, item_id="player")
    np.testing.assert_allclose(
        by_column.predict(types.items), by_index.predict(types.items), atol=1e-9
    )
    np.testing.assert_allclose(by_column.predict(frame), by_column.predict(frame.iloc[:, 1:]))


def test_the_side_is_a_covariate_where_either_side_may_win(types):
    rng = np.random.default_rng(5)
    is_first_stronger = rng.random(len(types.won)) < 0.4
    data = types._replace(won=types.won | is_first_stronger)
    model = AutoRanker(LINEAR, n_resamples=0).fit(data.items, data.pair_data())
    first = model.predict_above(data.items, 0, 1, covariates={"named first": 1})
    second = model.predict_above(data.items, 0, 1, covariates={"named first": -1})
    neutral = model.predict_above(data.items, 0, 1)
    assert second < neutral < first
    reverse = model.predict_above(data.items, 1, 0, covariates={"named first": -1})
    assert first + reverse == 1
    with pytest.raises(ValueError, match="named first"):
        model.predict_above(data.items, 0, 1, covariates={"named frist": 1})


def test_columns_of_winners_and_losers_have_no_side(types):
    graph = types.graph
    names = types.items.index
    frame = pd.DataFrame({"winner": names[graph.winner], "loser": names[graph.loser]})
    model = AutoRanker(LINEAR, n_resamples=0).fit(types.items, pairs_from_frame(frame))
    of_graph = AutoRanker(LINEAR, n_resamples=0).fit(types.items, graph)
    np.testing.assert_array_equal(model.predict(types.items), of_graph.predict(types.items))
    with pytest.raises(ValueError, match="covariates"):
        model.predict_above(types.items, 0, 1, covariates={"named first": 1})


def test_categories_and_numbers_of_comparisons(types):
    rng = np.random.default_rng(6)
    surface = rng.choice(["clay", "grass"], len(types.won))
    rest = rng.normal(size=len(types.won))
    won = np.where(np.abs(rest) > 1.0, rest > 0, types.won)
    pairs = types._replace(won=won).pair_data(covariates={"surface": surface, "rest": rest})
    model = AutoRanker(n_resamples=0).fit(types.items, pairs)
    rested = model.predict_above(types.items, 0, 1, covariates={"rest": 2.0, "surface": "clay"})
    tired = model.predict_above(types.items, 0, 1, covariates={"rest": -2.0, "surface": "clay"})
    assert tired < rested
    back = model.predict_above(types.items, 1, 0, covariates={"rest": -2.0, "surface": "clay"})
    assert back + rested == 1
    with pytest.raises(ValueError, match="shape"):
        model.predict_above(types.items, 0, 1, covariates={"rest": [1.0, 2.0]})


def test_ties_count_one_half():
    data = additive()
    graph = data.graph
    magnitude = np.ones(graph.n_pairs)
    magnitude[::5] = 0
    tied = PairGraph(graph.winner, graph.loser, magnitude, n_items=graph.n_items)
    swapped = PairGraph(
        np.where(magnitude == 0, graph.loser, graph.winner),
        np.where(magnitude == 0, graph.winner, graph.loser),
        magnitude,
        n_items=graph.n_items,
    )
    models = [AutoRanker(LINEAR, n_resamples=0).fit(data.items, y) for y in (tied, swapped)]
    np.testing.assert_array_equal(*[model.predict(data.items) for model in models])


def test_weights_of_comparisons_equal_repetition():
    data = additive(n_comparisons=400)
    graph = data.graph
    weight = np.random.default_rng(8).integers(1, 4, size=400)
    repeated = PairGraph(
        np.repeat(graph.winner, weight), np.repeat(graph.loser, weight), n_items=graph.n_items
    )
    members = ["hinges"]
    weighted = AutoRanker(members, n_resamples=0)
    weighted.fit(data.items, graph, sample_weight=weight.astype(float))
    other = AutoRanker(members, n_resamples=0).fit(data.items, repeated)
    np.testing.assert_allclose(
        weighted.predict(data.items), other.predict(data.items), rtol=1e-3, atol=1e-3
    )


def players_over_time(seed=0, n_players=40, n_comparisons=1500):
    """Players whose columns say little: the rest is a strength that only results tell."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(scale=1.5, size=n_players)
    first, second = draw_sides(rng, n_players, n_comparisons)
    won = rng.random(n_comparisons) < 1 / (1 + np.exp(strength[second] - strength[first]))
    items = pd.DataFrame({"height": rng.normal(size=n_players)})
    items.index = [f"player {k}" for k in range(n_players)]
    return additive()._replace(items=items, first=first, second=second, won=won)


def test_known_items_have_strengths_if_later_comparisons_are_held_out():
    data = players_over_time()
    time = np.arange(1500.0)
    model = AutoRanker(n_resamples=0).fit(data.items, data.pair_data(), time=time)
    row = next(row for row in model.members_ if row["name"] == "strengths of known items")
    assert row["weight"] > 0.5
    assert model.held_out_comparisons_[0]["kind"] == "later"
    probability = model.predict_above(data.items, data.first, data.second)
    assert np.mean((probability > 0.5) != data.won) < 0.3
    unknown = data.items.set_axis([f"new {k}" for k in range(40)])
    strangers = model.predict(unknown)
    assert np.std(strangers) < np.std(model.predict(data.items)) / 3
    without_time = AutoRanker(n_resamples=0).fit(data.items, data.pair_data())
    assert "strengths of known items" not in [row["name"] for row in without_time.members_]


def test_rows_of_one_name_are_held_out_together():
    data = players_over_time(n_comparisons=600)
    rows = np.concatenate([data.first, data.second])
    frame = data.items.iloc[rows].reset_index(names="player")
    frame["height"] += np.random.default_rng(0).normal(scale=0.1, size=1200)
    k = np.arange(600)
    graph = PairGraph(np.where(data.won, k, k + 600), np.where(data.won, k + 600, k), n_items=1200)
    model = AutoRanker(n_resamples=0)
    model.fit(frame, graph, item_id="player", time=np.arange(600.0))
    scores = model.predict(frame)
    assert np.mean((scores[:600] > scores[600:]) != data.won) < 0.35
    groups = frame["player"]
    graph_of_groups = PairGraph(graph.winner, graph.loser, n_items=1200, groups=groups)
    by_groups = AutoRanker(["hinges"], n_resamples=0)
    by_groups.fit(frame[["height"]], graph_of_groups)
    by_names = AutoRanker(["hinges"], n_resamples=0).fit(frame, graph, item_id="player")
    np.testing.assert_allclose(by_groups.held_out_comparisons_[0]["n"], 0, atol=600)
    assert by_groups.held_out_comparisons_[0]["n"] == by_names.held_out_comparisons_[0]["n"]


def test_members_differ_from_the_order_by_the_reported_p_value(types, types_model):
    explained = types_model.explained_
    assert 0 <= explained["order"] <= explained["pairs"] <= 1
    np.testing.assert_allclose(explained["share"], explained["order"] / explained["pairs"])
    assert dyadic_robust_mean([0.0, 1.0], [0, 1], [1, 2]).n_items == 3


def test_time_limit_leaves_members_out_and_summary_says_why(types, capsys):
    model = AutoRanker(time_limit=0, verbose=1).fit(types.items, types.graph)
    names = [row["name"] for row in model.members_ if "log_loss" in row]
    assert names == ["hinges"]
    assert "time limit" in str(model.summary()).replace("\n", " ")
    assert "hinges" in capsys.readouterr().err
    assert max(len(line) for line in str(model.summary()).splitlines()) <= 80


def test_summary_reports_errors_members_and_columns(types_model):
    summary = types_model.summary()
    assert [row.predictor for row in summary.comparisons] == ["order", "pairs"] * 2
    text = str(summary)
    assert "both items new" in text
    assert "category of 3 values" in text


# ------------------------------------------------------------------ input that does not fit


def test_items_without_comparisons_are_scored_and_counted(types):
    graph = types.graph
    items = pd.concat([types.items, types.items.iloc[:5].set_axis([f"new {k}" for k in range(5)])])
    alone = PairGraph(graph.winner, graph.loser, n_items=85)
    model = AutoRanker(LINEAR, n_resamples=0).fit(items, alone)
    np.testing.assert_array_equal(model.predict(items)[80:], model.predict(items)[:5])
    assert any("5 of 85 items have no comparison" in note for note in model.notes_)


def test_comparisons_of_unknown_items_are_refused(types):
    with pytest.raises(ValueError, match="'item 0'"):
        AutoRanker(LINEAR).fit(types.items.iloc[1:], types.pair_data())
    with pytest.raises(ValueError, match="85 rows"):
        AutoRanker(LINEAR).fit(np.zeros((85, 2)), types.graph)
    with pytest.raises(ValueError, match="several rows"):
        AutoRanker(LINEAR).fit(pd.concat([types.items, types.items]), types.pair_data())


def test_frames_without_an_index_need_item_id(types):
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(types.items.reset_index(names="player"))
    pairs = types.pair_data()
    with pytest.raises(ValueError, match="item_id="):
        AutoRanker(["hinges"]).fit(frame, pairs)
    model = AutoRanker(["hinges"], n_resamples=0).fit(frame, pairs, item_id="player")
    of_pandas = AutoRanker(["hinges"], n_resamples=0).fit(types.items, pairs)
    np.testing.assert_allclose(model.predict(frame), of_pandas.predict(types.items), atol=1e-9)


def test_an_item_compared_with_itself_is_refused(types):
    pairs = types.pair_data()
    first = pairs.first.copy()
    first[3] = pairs.second[3]
    loop = type(pairs)(first, pairs.second, pairs.outcome, pairs.weight, pairs.items)
    with pytest.raises(ValueError, match="itself"):
        AutoRanker(LINEAR).fit(types.items, loop)


def test_one_comparison_cannot_be_held_out():
    with pytest.raises(ValueError, match="too few"):
        AutoRanker().fit(np.eye(4), PairGraph([0], [1], n_items=4))
    with pytest.raises(ValueError, match="nothing to learn"):
        AutoRanker().fit(np.eye(4), PairGraph([0, 1], [1, 2], [0, 0], n_items=4))


def test_outcomes_that_are_all_from_one_side_do_not_make_the_side_a_covariate(types):
    graph = types.graph
    names = types.items.index
    frame = pd.DataFrame(
        {"left": names[graph.winner], "right": names[graph.loser], "result": "left"}
    )
    pairs = pairs_from_frame(frame, sides=["left", "right"], outcome="result")
    model = AutoRanker(LINEAR, n_resamples=0).fit(types.items, pairs)
    probability = model.predict_above(types.items, types.first, types.second)
    assert np.mean((probability > 0.5) != types.won) > 0.05
    assert model.comparison_.covariates_.names == []


def test_a_column_that_gives_the_outcome_away_is_named(types):
    wins = types.items["strength"]
    by_strength = types._replace(won=wins.to_numpy()[types.first] > wins.to_numpy()[types.second])
    with pytest.warns(UserWarning, match="'strength' alone"):
        model = AutoRanker(["hinges"], n_resamples=0).fit(types.items, by_strength.graph)
    assert any("strength" in note for note in model.notes_)


def test_a_covariate_that_gives_the_outcome_away_is_named(types):
    pairs = types.pair_data(covariates={"points": np.where(types.won, 3.0, -2.0)})
    with pytest.warns(UserWarning, match="'points' alone"):
        AutoRanker(["hinges"], n_resamples=0).fit(types.items, pairs)


def test_categories_that_never_meet_are_noted(types):
    kinds = types.items["kind"].to_numpy()
    same = kinds[types.first] == kinds[types.second]
    data = types._replace(first=types.first[same], second=types.second[same], won=types.won[same])
    model = AutoRanker(LINEAR, n_resamples=0).fit(data.items, data.graph)
    assert any("different values of kind" in note for note in model.notes_)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ({"groups": np.zeros(80)}, {}, "PairGraph"),
        ({"item_id": "player"}, {}, "not a column"),
        ({"sample_weight": np.ones(3)}, {}, "sample_weight"),
        ({"time": np.zeros(1500)}, {}, "same time"),
        ({}, {"combine": "mean"}, "combine"),
        ({}, {"scoring": "ndcg@10"}, "preferences"),
        ({}, {"members": ["linear"]}, "members"),
        ({}, {"members": [clone]}, "members"),
        ({}, {"members": ["joint linear model of pairs"]}, "order"),
    ],
)
def test_arguments_that_do_not_fit_comparisons_are_refused(types, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        AutoRanker(**options).fit(types.items, types.graph, **arguments)


def test_methods_for_comparisons_need_comparisons(types, types_model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = AutoRanker(["linear, standard, magnitude"], n_resamples=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="PairGraph"):
        model.predict_above(X, 0, 1)
    with pytest.raises(ValueError, match="PairGraph"):
        model.win_share(X)
    with pytest.raises(ValueError, match="comparisons"):
        AutoRanker().fit(types.items, types.items["strength"], item_id="kind")
    with pytest.raises(ValueError, match="row numbers"):
        types_model.predict_above(types.items, 0, 80)


def test_constant_and_extreme_columns(types):
    items = types.items.assign(constant=1.0, huge=1e12 * types.items["noise"], tiny=1e-12)
    model = AutoRanker(LINEAR, n_resamples=0).fit(items, types.graph)
    assert np.isfinite(model.predict(items)).all()
    single = AutoRanker(LINEAR, n_resamples=0)
    single.fit(types.items[["strength"]].to_numpy(dtype=np.float32), types.graph)
    assert np.isfinite(single.predict(types.items[["strength"]].to_numpy(np.float32))).all()
