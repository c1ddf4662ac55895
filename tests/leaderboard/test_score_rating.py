"""`rate_scores`: forms of input, arguments, refusals, warnings, and the methods of its board."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from rankwise.leaderboard import rate_scores
from rankwise.leaderboard.score_notes import curvature_t_statistic

TASKS = [f"t{k:02}" for k in range(12)]


def scores_of(n_models=6, n_tasks=12, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    scores = 0.6 + 0.1 * rng.normal(size=n_tasks) + 0.03 * rng.normal(size=(n_models, n_tasks))
    scores -= 0.02 * np.arange(n_models)[:, None]
    if gaps:
        scores[rng.random(scores.shape) < gaps] = np.nan
    return scores


def wide_frame(scores):
    frame = pd.DataFrame(scores, columns=TASKS[: scores.shape[1]])
    frame.insert(0, "model", [f"m{k}" for k in range(len(scores))])
    return frame


def long_frame(scores):
    long = wide_frame(scores).melt("model", var_name="task", value_name="score")
    return long.dropna().sample(frac=1, random_state=0)


def rate_long(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rate_scores(frame, item="model", task="task", score="score", **options)


def test_all_forms_of_input_give_the_same_board():
    scores = scores_of(gaps=0.2)
    wide = wide_frame(scores)
    long = long_frame(scores)
    expected = rate_scores(wide, item="model", score=TASKS).to_text()
    others = [
        rate_scores(wide.set_index("model")),
        rate_scores(wide.set_index("model"), score=TASKS),
        rate_scores(pl.from_pandas(wide), item="model", score=TASKS),
        rate_scores(wide.to_dict("list"), item=0, score=list(range(1, 13))),
        rate_scores(long, item="model", task="task", score="score"),
        rate_scores(pl.from_pandas(long), item="model", task="task", score="score"),
        rate_scores(pa.Table.from_pandas(long), item="model", task="task", score="score"),
        rate_scores(long.to_dict("list"), item="model", task="task", score="score"),
    ]
    for board in others:
        assert board.to_text() == expected


def test_two_arms_agree_with_compare():
    from rankwise.model_selection import compare

    scores = scores_of(n_models=2)
    difference = rate_scores(wide_frame(scores), item="model", score=TASKS).difference("m0", "m1")
    comparison = compare({"m0": scores[0], "m1": scores[1]}, greater_is_better=False)
    (row,) = comparison.rows
    np.testing.assert_allclose(abs(row.difference), abs(difference.value), rtol=1e-12)
    interval = sorted([abs(row.low), abs(row.high)])
    expected = sorted([abs(difference.low), abs(difference.high)])
    np.testing.assert_allclose(interval, expected, rtol=1e-10)


def test_seeds_are_averaged_and_their_noise_is_estimated():
    rng = np.random.default_rng(1)
    cells = scores_of(n_models=5, n_tasks=10, seed=2)
    rows = [
        (f"m{m}", TASKS[t], s, cells[m, t] + 0.02 * rng.normal())
        for m in range(5)
        for t in range(10)
        for s in range(8)
    ]
    frame = pd.DataFrame(rows, columns=["model", "task", "seed", "score"])
    board = rate_long(frame, seed="seed")
    means = frame.groupby(["model", "task"], as_index=False).score.mean()
    np.testing.assert_allclose(board.ratings, rate_long(means).ratings, rtol=1e-12)
    np.testing.assert_allclose(board.noise.seed, 0.02, rtol=0.1)
    assert 0.02 < board.noise.seed_share < 0.12
    fixed = rate_long(frame, seed="seed", tasks="fixed")
    pair = frame[frame.model == "m0"].set_index(["task", "seed"]).score
    pair = pair - frame[frame.model == "m1"].set_index(["task", "seed"]).score
    of_task = pair.groupby("task").agg(["mean", "var"])
    variances = of_task["var"] / 8 / 100
    freedom = variances.sum() ** 2 / (variances**2 / 7).sum()
    half_width = stats.t.ppf(0.975, freedom) * np.sqrt(variances.sum())
    difference = fixed.difference("m0", "m1")
    np.testing.assert_allclose(difference.value, of_task["mean"].mean(), rtol=1e-12)
    np.testing.assert_allclose(difference.high - difference.value, half_width, rtol=1e-10)
    assert (
        difference.high - difference.low
        < board.difference("m0", "m1").high - board.difference("m0", "m1").low
    )


def test_shared_noise_of_folds_cancels():
    rng = np.random.default_rng(0)
    folds = 10 * rng.normal(size=(8, 5))
    cells = scores_of(n_models=3, n_tasks=8)
    rows = [
        (f"m{m}", TASKS[t], s, cells[m, t] + folds[t, s] + 0.001 * rng.normal())
        for m in range(3)
        for t in range(8)
        for s in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["model", "task", "fold", "score"])
    difference = rate_long(frame, seed="fold", tasks="fixed").difference("m0", "m1")
    assert difference.high - difference.low < 0.004


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_families_are_left_out_together():
    scores = scores_of(n_tasks=12)
    families = {task: f"f{k // 3}" for k, task in enumerate(TASKS)}
    board = rate_scores(wide_frame(scores), item="model", score=TASKS, family=families)
    means = scores.reshape(6, 4, 3).mean(axis=2)
    test = stats.ttest_rel(means[0], means[1])
    difference = board.difference("m0", "m1")
    np.testing.assert_allclose(difference.p_value, test.pvalue, rtol=1e-10)
    np.testing.assert_allclose(difference.freedom, 3, rtol=1e-10)


def test_balance_gives_families_the_same_weight():
    scores = scores_of(n_tasks=12)
    families = {task: "large" if k < 9 else f"f{k}" for k, task in enumerate(TASKS)}
    with pytest.warns(UserWarning, match="from 4 families"):
        board = rate_scores(
            wide_frame(scores), item="model", score=TASKS, family=families, balance="family"
        )
    means = np.column_stack([scores[:, :9].mean(axis=1), scores[:, 9:]])
    np.testing.assert_allclose(board.ratings, means.mean(axis=1), rtol=1e-12)


def test_lower_is_better_reverses_the_board():
    scores = scores_of()
    board = rate_scores(wide_frame(scores), item="model", score=TASKS)
    reversed_board = rate_scores(
        wide_frame(scores), item="model", score=TASKS, lower_is_better=True
    )
    assert [row.item for row in board] == [row.item for row in reversed_board][::-1]
    some = scores.copy()
    some[:, :3] *= -1
    same = rate_scores(wide_frame(some), item="model", score=TASKS, lower_is_better=TASKS[:3])
    np.testing.assert_allclose(same.ratings, board.ratings, rtol=1e-12)


def test_task_scales_are_those_of_scipy():
    scores = scores_of()
    standardized = (scores - scores.mean(axis=0)) / scores.std(axis=0, ddof=1)
    ranks = (stats.rankdata(scores, axis=0) - 1) / 5
    log_odds = np.log(scores / (1 - scores))
    for name, expected in [("sd", standardized), ("rank", ranks), ("logit", log_odds)]:
        board = rate_scores(wide_frame(scores), item="model", score=TASKS, task_scale=name)
        np.testing.assert_allclose(board.ratings, expected.mean(axis=1), atol=1e-12)
    percent = rate_scores(wide_frame(100 * scores), item="model", score=TASKS, task_scale="logit")
    np.testing.assert_allclose(percent.ratings, log_odds.mean(axis=1), atol=1e-12)
    with pytest.raises(ValueError, match="between 0 and 1"):
        rate_scores(wide_frame(scores - 0.6), item="model", score=TASKS, task_scale="logit")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rules_for_missing_cells():
    scores = scores_of()
    scores[0, :3] = np.nan
    frame = wide_frame(scores)
    common = rate_scores(frame, item="model", score=TASKS, missing="common")
    np.testing.assert_allclose(common.ratings, scores[:, 3:].mean(axis=1), rtol=1e-12)
    filled = scores.copy()
    filled[0, :3] = np.nanmin(scores, axis=0)[:3]
    worst = rate_scores(frame, item="model", score=TASKS, missing="worst")
    np.testing.assert_allclose(worst.ratings, filled.mean(axis=1), rtol=1e-12)
    filled[0, :3] = scores[4, :3]
    stand_in = rate_scores(frame, item="model", score=TASKS, missing="m4")
    np.testing.assert_allclose(stand_in.ratings, filled.mean(axis=1), rtol=1e-12)
    with pytest.raises(ValueError, match="itself has no score"):
        rate_scores(frame, item="model", score=TASKS, missing="m0")
    with pytest.raises(ValueError, match="is not a model"):
        rate_scores(frame, item="model", score=TASKS, missing="mean")


def test_models_with_few_tasks_have_no_rank():
    scores = scores_of(n_models=8)
    scores[0, 5:] = np.nan
    board = rate_scores(wide_frame(scores), item="model", score=TASKS)
    assert board["m0"].rank is None
    assert board.rows[-1].item == "m0"
    assert board["m0"].low < board["m0"].high
    assert rate_scores(wide_frame(scores), item="model", score=TASKS, min_tasks=0.4)["m0"].rank == 3


def test_interval_of_the_baseline_is_empty():
    scores = scores_of()
    board = rate_scores(wide_frame(scores), item="model", score=TASKS, baseline="m2")
    row = board["m2"]
    assert row.low == row.rating == row.high
    difference = board.difference("m4", "m2")
    row = board["m4"]
    np.testing.assert_allclose(row.high - row.low, difference.high - difference.low, rtol=1e-12)


def test_needs_has_80_percent_power():
    board = rate_scores(wide_frame(scores_of(seed=5)), item="model", score=TASKS)
    needed = board.needs("m0", "m2")
    differences = scores_of(seed=5)[0] - scores_of(seed=5)[2]
    effect = differences.mean() / differences.std(ddof=1)

    def power(n):
        quantile = stats.t.ppf(0.975, n - 1)
        return stats.nct.sf(quantile, n - 1, effect * np.sqrt(n))

    assert power(needed.n) >= 0.8 > power(needed.n - 1)
    assert needed.at_least <= needed.n
    assert needed.at_most is None or needed.at_most >= needed.n
    assert board.needs("m0", "m2", difference=needed.detectable).n in (11, 12, 13)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_next_cells_decrease_the_variance_as_refits_do():
    scores = scores_of(gaps=0.3, seed=3)
    assert (np.isfinite(scores).sum(axis=0) > 1).all()
    board = rate_scores(wide_frame(scores), item="model", score=TASKS, min_tasks=0)
    cells = board.next_cells(3, between=("m1", "m4"))

    def variance(observed):
        models, tasks = np.nonzero(observed)
        dummies = np.zeros((len(models), 18))
        dummies[np.arange(len(models)), models] = 1
        dummies[np.arange(len(models)), 6 + tasks] = 1
        contrast = np.zeros(18)
        contrast[1], contrast[4] = 1, -1
        return contrast @ np.linalg.pinv(dummies.T @ dummies) @ contrast

    observed = ~np.isnan(scores)
    before = variance(observed)
    for cell in cells:
        choices = {}
        for m, t in np.argwhere(~observed):
            trial = observed.copy()
            trial[m, t] = True
            choices[f"m{m}", TASKS[t]] = variance(trial)
        np.testing.assert_allclose(choices[cell.item, cell.task], min(choices.values()), rtol=1e-9)
        observed[int(cell.item[1:]), TASKS.index(cell.task)] = True
        np.testing.assert_allclose(cell.error_ratio**2, variance(observed) / before, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cells_to_flip_make_two_models_equal():
    scores = scores_of(gaps=0.2, seed=3)
    board = rate_scores(wide_frame(scores), item="model", score=TASKS, min_tasks=0)
    flip = board.cells_to_flip("m1", "m2")
    above, below = int(flip.above[1:]), int(flip.below[1:])
    for model, change in [(below, flip.excess), (above, -flip.shortfall)]:
        filled = np.where(np.isnan(scores), board.model.fitted_scores, scores)
        filled[model, np.isnan(scores[model])] += change
        means = filled.mean(axis=1)
        np.testing.assert_allclose(means[above], means[below], rtol=1e-12)
    assert str(flip).count("missing scores") == 2


def test_influence_of_tasks_is_that_of_boards_without_them():
    scores = scores_of(seed=4)
    board = rate_scores(wide_frame(scores), item="model", score=TASKS)
    for task in board.tasks:
        others = [name for name in TASKS if name != task.task]
        without = rate_scores(wide_frame(scores)[["model", *others]], item="model", score=others)
        assert without.rows[0].item == task.first_without
        order = board.ratings[:, None] > board.ratings
        reversed_pairs = order & (without.ratings[:, None] < without.ratings)
        assert task.n_reversed == reversed_pairs.sum()
        column = TASKS.index(task.task)
        rho = stats.spearmanr(scores[:, column], without.ratings).statistic
        np.testing.assert_allclose(task.correlation, rho)
    np.testing.assert_allclose(sum(task.share for task in board.tasks), 1)
    np.testing.assert_allclose([task.expected_share for task in board.tasks], 1 / 12)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_outcomes_count_the_other_models_of_each_task():
    table = {"model": ["a", "b", "c"], "x": [1.0, 1.0, 0.0], "y": [3.0, 2.0, None], "z": [0, 1, 2]}
    board = rate_scores(table, item="model", score=["x", "y", "z"])
    outcomes = {row.item: (row.n, row.wins, row.ties, row.losses) for row in board}
    assert outcomes == {"a": (3, 2, 1, 2), "b": (3, 2, 1, 2), "c": (2, 2, 0, 2)}


REFUSED = [
    ({"score": "score"}, "item and task must be named"),
    ({"item": "model", "score": "score"}, "task must be named"),
    ({"item": "task", "task": "model", "score": "score"}, "look swapped"),
    ({"item": "model", "task": "task", "score": "scores"}, "did you mean 'score'"),
    ({"item": "model", "task": "task", "score": ["score"]}, "must be one column"),
    ({}, 'pass item="model", task="task", score="score"'),
    ({"item": "model", "task": "task", "score": "score", "min_tasks": 2}, "share of the tasks"),
    ({"item": "model", "task": "task", "score": "score", "balance": "family"}, "needs family="),
    ({"item": "model", "task": "task", "score": "score", "tasks": "fixed"}, "with seed="),
    ({"item": "model", "task": "task", "score": "score", "task_scale": "z"}, "Choose one of"),
    ({"item": "model", "task": "task", "score": "score", "confidence": 95}, "between 0 and 1"),
    ({"item": "model", "task": "task", "score": "score", "baseline": "x"}, "not a model"),
    ({"item": "model", "task": "task", "score": "score", "lower_is_better": ["t1"]}, "not a task"),
    ({"item": "model", "task": "task", "score": "model"}, "expected real numbers"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_refused_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        rate_scores(long_frame(scores_of()), **arguments)


def test_wide_table_without_names_is_named():
    frame = wide_frame(scores_of())
    with pytest.raises(ValueError, match="looks like 6 models × 12 tasks"):
        rate_scores(frame)


def test_tasks_in_rows_are_refused_if_their_name_says_so():
    frame = wide_frame(scores_of()).set_index("model").T.rename_axis("task")
    with pytest.raises(ValueError, match=r"pass frame\.T"):
        rate_scores(frame)
    with pytest.raises(ValueError, match=r"frame\.set_index\('task'\).T"):
        rate_scores(frame.reset_index(), item="task", score=["m0", "m1", "m2"])
    assert len(rate_scores(frame.T)) == 6


def test_repeated_cells_are_refused_without_seed():
    frame = long_frame(scores_of())
    with pytest.raises(ValueError, match="has 2 scores for the task"):
        rate_long(pd.concat([frame, frame.iloc[:5]]))
    frame["seed"] = 1
    with pytest.raises(ValueError, match="and the seed 1"):
        rate_long(pd.concat([frame, frame.iloc[:5]]), seed="seed")


def test_one_task_or_family_is_refused():
    frame = wide_frame(scores_of())
    with pytest.raises(ValueError, match="at least two tasks"):
        rate_scores(frame, item="model", score=["t00"])
    with pytest.raises(ValueError, match="at least two families"):
        rate_scores(frame, item="model", score=TASKS, family=dict.fromkeys(TASKS, "one"))
    with pytest.raises(ValueError, match="at least two models"):
        rate_scores(frame[:1], item="model", score=TASKS)


def test_long_and_wide_tables_are_not_mistaken_for_each_other():
    scores = scores_of()
    with pytest.raises(ValueError, match="looks like 6 models × 12 tasks"):
        rate_scores(wide_frame(scores), item="model", task="task", score="score")
    with pytest.raises(ValueError, match="'task' looks like the tasks"):
        rate_scores(long_frame(scores), item="model", score=["score"])


def test_text_among_scores_is_refused_with_its_row():
    frame = wide_frame(scores_of()).astype({"t03": object})
    frame.loc[4, "t03"] = "n/a"
    with pytest.raises(ValueError, match="'n/a' in row 4"):
        rate_scores(frame, item="model", score=TASKS)


def test_infinite_scores_are_refused_with_their_row():
    frame = wide_frame(scores_of()).set_index("model")
    frame.loc["m4", "t03"] = np.inf
    with pytest.raises(ValueError, match=r"score='t03' is inf in row 4"):
        rate_scores(frame)
    with pytest.raises(ValueError, match=r"score='t03' is inf in row 4"):
        rate_scores(frame.reset_index(), item="model", score=TASKS)


def test_model_without_scores_is_dropped():
    scores = scores_of()
    scores[2] = np.nan
    with pytest.warns(UserWarning, match="without scores: m2"):
        board = rate_scores(wide_frame(scores), item="model", score=TASKS)
    assert sorted(board.items) == ["m0", "m1", "m3", "m4", "m5"]


def test_task_that_one_model_ran_is_dropped():
    scores = scores_of()
    scores[1:, 3] = np.nan
    with pytest.warns(UserWarning, match="t03"):
        board = rate_scores(wide_frame(scores), item="model", score=TASKS)
    assert len(board.rated_table.tasks) == 11


def warned(scores, **options):
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        board = rate_scores(wide_frame(scores), item="model", score=TASKS, **options)
    texts = [str(message.message) for message in messages]
    return board, texts


def test_few_tasks_are_warned_about_with_the_width_of_the_interval():
    scores = scores_of(n_tasks=3)
    with pytest.warns(UserWarning, match=r"about 3\.5 times as wide as from 10 tasks"):
        rate_scores(wide_frame(scores), item="model", score=TASKS[:3])


def test_good_table_has_no_warnings():
    board, texts = warned(scores_of())
    assert texts == []
    assert board.warnings == ()


def test_warnings_of_a_task():
    scores = scores_of(n_models=10)
    scores[:, 4] = 1 - scores[:, 4] + 0.05 * np.arange(10)
    _, texts = warned(scores)
    assert any("t04 ranks the models against" in text for text in texts)
    scores = scores_of(n_models=10)
    scores[:, 4] = 100 * scores[:, 4]
    _, texts = warned(scores)
    assert "t04 spread" in texts[0]
    assert "t04 causes 1" in texts[1] or "t04 causes 9" in texts[1]
    weights = dict.fromkeys(TASKS, 1.0) | {"t04": 6.0}
    _, (text,) = warned(scores_of(), task_weight=weights)
    assert "t04 alone causes" in text


def test_warnings_of_units_components_and_constants():
    scores = 100 * scores_of(n_models=10)
    scores[7] /= 100
    _, texts = warned(scores)
    assert any("m7 look like fractions" in text for text in texts)
    scores = scores_of(n_models=10)
    scores[3] *= 100
    _, texts = warned(scores)
    assert any("m3 look like percentages" in text for text in texts)
    scores = scores_of(n_models=10)
    scores[:, ::2] *= 100
    _, texts = warned(scores)
    assert any("t01, t03, t05 and 3 more look like fractions" in text for text in texts)
    scores = scores_of(n_models=10)
    scores[:5, :6] = np.nan
    scores[5:, 6:] = np.nan
    board, texts = warned(scores)
    assert "2 parts without common tasks" in texts[0]
    with pytest.raises(ValueError, match="no chain of common tasks"):
        board.difference("m0", "m9")
    scores = scores_of()
    scores[:, 2] = 0.5
    _, (text,) = warned(scores)
    assert "same score on t02" in text
    board, texts = warned(np.ones((4, 12)))
    assert "all models have the same score" in texts[0]
    assert [row.rank for row in board] == [1, 1, 1, 1]


def test_scores_with_both_signs_are_no_percentages():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((103, 41)) + rng.standard_normal((103, 1))
    frame = pd.DataFrame(scores, [f"m{k}" for k in range(103)], [f"t{k}" for k in range(41)])
    assert rate_scores(frame).warnings == ()


def test_masking_test_widens_the_interval_of_a_model_with_one_kind_of_task():
    rng = np.random.default_rng(0)
    skill = rng.normal(size=(30, 1))
    of_kind = rng.normal(size=(30, 4)).repeat(5, axis=1)  # strength by kind of task
    scores = skill + of_kind + 0.3 * rng.normal(size=(30, 20)) + rng.normal(size=20)
    scores[0, 5:] = np.nan
    tasks = [f"k{k // 5}-{k}" for k in range(20)]
    frame = pd.DataFrame(scores, index=[f"m{k}" for k in range(30)], columns=tasks)
    board = rate_scores(frame, min_tasks=0.2)
    masking = board.score_errors.masking
    assert masking.n_complete == 29
    by_jackknife = board.score_errors.by_tasks.half_widths(30, 0.95)[0]
    row = board["m0"]
    assert (row.high - row.low) / 2 > 2 * by_jackknife
    assert any("masking the same cells" in note for note in board.notes)
    # the mean residual over the tasks that the model has, of each complete model
    residuals = board.model.residuals[1:, :5].mean(axis=1)
    np.testing.assert_allclose(
        masking.missing_cell_errors[0], np.sqrt((residuals**2).sum() / 28), rtol=1e-12
    )
    np.testing.assert_array_equal(masking.missing_cell_errors[1:], 0)


def test_output_formats():
    board = rate_scores(wide_frame(scores_of(gaps=0.1)), item="model", score=TASKS)
    assert board.to_text("csv").count("\n") == 7
    assert '"missing_share"' in board.to_text("json")
    assert board.to_text("markdown").startswith("| rank | model |")
    assert "<table>" in board.to_text("html")
    assert "tabular" in board.to_text("latex")
    assert list(board.to_frame()["item"]) == [row.item for row in board]


def curved_scores(slope, seed=0):
    """Tasks that are harder by k tell the models apart by 1 + slope · k as much."""
    rng = np.random.default_rng(seed)
    skill = np.linspace(1, -1, 12)[:, None]
    difficulty = np.linspace(-1, 1, 12)
    scores = (1 - slope * difficulty) * skill + difficulty + 0.1 * rng.normal(size=(12, 12))
    scores[4, :3] = np.nan
    scores[8, 6:9] = np.nan
    return scores


def test_note_on_curvature_names_the_tasks_that_tell_models_apart():
    board, _ = warned(curved_scores(0.0))
    assert not any("separate the models" in note for note in board.notes)
    board, _ = warned(curved_scores(0.5))
    assert any("hard tasks separate the models more" in note for note in board.notes)
    board, _ = warned(curved_scores(-0.5))
    assert any("easy tasks separate the models more" in note for note in board.notes)


def test_curvature_is_the_jackknife_of_a_slope_over_tasks():
    board, _ = warned(curved_scores(0.2))
    model = board.model
    observed = model.design.is_observed
    difficulty = model.task_effects - model.task_effects.mean()

    def slope(tasks):
        sum_of_products = sum_of_squares = 0.0
        for task in tasks:
            x = model.effects[observed[:, task]] * difficulty[task]
            x = x - x.mean()
            sum_of_products += x @ model.residuals[observed[:, task], task]
            sum_of_squares += x @ x
        return sum_of_products / sum_of_squares

    everything = slope(range(12))
    without = [slope([task for task in range(12) if task != out]) for out in range(12)]
    error = np.sqrt(11 / 12 * np.sum((np.array(without) - everything) ** 2))
    np.testing.assert_allclose(curvature_t_statistic(model), everything / error, rtol=1e-9)


def test_notes_on_missing_cells_and_seeds():
    scores = scores_of()
    scores[2, :4] = np.nan
    frame = long_frame(scores)
    failed = wide_frame(scores).melt("model", var_name="task", value_name="score")
    assert any("4 scores are NaN" in note for note in rate_long(failed).notes)
    assert not any("NaN" in note for note in rate_long(frame).notes)
    for rule, text in [
        ("common", "8 tasks with scores of all"),
        ("worst", "worst score"),
        ("m1", "scores of m1"),
    ]:
        assert any(text in note for note in rate_long(frame, missing=rule).notes)
    folds = pd.concat([frame.assign(fold=k, score=frame.score + 0.01 * k) for k in range(3)])
    assert any("more seeds could remove" in note for note in rate_long(folds, seed="fold").notes)


def test_all_models_of_a_task_may_have_too_few_tasks_for_a_rank():
    scores = scores_of(n_models=8, n_tasks=9)
    scores[:4, 4:] = np.nan
    scores[4:, :4] = np.nan
    board = rate_long(long_frame(scores))
    assert not board.is_ranked[:4].any()
    correlation_of_task = {task.task: task.correlation for task in board.tasks}
    assert correlation_of_task["t00"] is None
    assert correlation_of_task["t08"] is not None
