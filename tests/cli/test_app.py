"""The command ``rankwise``, run as a user would."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from rankwise import RankRLS
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence import save

pytest.importorskip("click")

import click
from click.testing import CliRunner

from tests.cli.shell import NAMES, TABLE, fail, lines_of, run, shell, succeed

HELP = ["", "train", "predict", "evaluate", "cv", "compare", "rank", "report", "info", "export"]
# What an installation is made of


def test_info_tells_whether_the_compiled_sweep_is_active(monkeypatch):
    done = succeed("info")
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["rankwise"] == rankwise.__version__
    assert rows["compiled"] == "sweep  active"
    assert json.loads(succeed("info", "--json").stdout)["compiled"] is True
    monkeypatch.setattr("rankwise.environment.IS_COMPILED", False)
    assert "missing: NumPy sweeps in use" in succeed("info").stdout


def test_without_click_one_line_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from rankwise.cli import main; main()"
    done = shell("info", code=code)
    assert done.returncode == 1
    assert done.stderr == "rankwise: the command needs click; pip install click pyarrow\n"


def test_help_does_not_wait_for_the_heavy_packages():
    code = f"""
import sys
from click.testing import CliRunner
from rankwise.cli.app import app
for command in {HELP}:
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0 and "Usage" in done.stdout, command
print("numpy" in sys.modules, "sklearn" in sys.modules, "scipy" in sys.modules)
"""
    done = shell(code=code)
    assert done.stdout.split() == ["False", "False", "False"], done.stderr


def test_version_and_usage_errors():
    assert succeed("--version").stdout == f"rankwise {rankwise.__version__}\n"
    assert run("no-such-command").exit_code == 2
    assert run("train").exit_code == 2
    assert run("train", "x", "-o", "y", "--model", "forest").exit_code == 1


# Training


def test_the_model_is_the_one_that_the_library_trains(tmp_path, letor, problem):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, groups = problem[:3]
    succeed("train", letor, "--metric", "ndcg@10", "-o", tmp_path / "m.rw")
    scores = succeed("predict", tmp_path / "m.rw", letor).stdout
    twin = make_pipeline(
        StandardScaler(), rankwise.RankRLSCV(scoring="ndcg@10", random_state=0)
    ).fit(X, y, rankrlscv__groups=groups)
    np.testing.assert_array_equal([float(s) for s in scores.splitlines()], twin.predict(X))


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--alpha", "0.5"], "RankRLS(alpha=0.5, random_state=0)"),
        (
            ["--alpha", "0.5", "--kernel", "rbf", "--set", "gamma=0.1", "--set", "n_basis=9"],
            "RankRLS(alpha=0.5, gamma=0.1, kernel='rbf', n_basis=9, random_state=0)",
        ),
        (
            ["--alpha", "0.1,1", "--set", "cost=sign", "--set", "group_weight=groups"],
            "RankRLSCV(alphas=[0.1, 1.0], cost='sign', group_weight='groups', random_state=0)",
        ),
        (
            ["--model", "ranksvm", "--set", "loss=squared_hinge", "--set", "random_state=3"],
            "RankSVMCV(loss='squared_hinge', random_state=3)",
        ),
        (
            ["--model", "corankrls", "--set", "nu=2", "--set", "views=3", "--set", "n_basis=2"],
            "CoRankRLSCV(n_basis=2, nus=[2], random_state=0, views=3)",
        ),
        (
            ["--model", "pursuit", "--set", "n_basis=4", "--set", "ties=exclude"],
            "RankingPursuitCV(n_basis=4, random_state=0, ties='exclude')",
        ),
    ],
)
def test_options_become_parameters(options, expected):
    from rankwise.cli.command import Command
    from rankwise.cli.model_options import make_model
    from rankwise.cli.shared_options import model_options

    models = []

    @click.command(cls=Command)
    @model_options
    def only(model):
        models.append(make_model(model))

    done = CliRunner().invoke(only, options)
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    assert " ".join(repr(models[0]).split()) == expected


@pytest.mark.parametrize(
    "options, words",
    [
        (["--model", "ranksvm", "--set", "beta=0.5"], ["ranksvm", "beta", "loss"]),
        (["--set", "n_basis"], ["n_basis", "NAME=VALUE"]),
        (["--model", "auto", "--alpha", "1"], ["auto has no parameter alpha"]),
        (["--model", "auto", "--kernel", "rbf"], ["auto has no parameter kernel"]),
        (["--model", "auto", "--feature-scaling", "group"], ["leave out --feature-scaling"]),
        (["--kernel", "rbf", "--alpha", "1", "--set", "gamma=1,2"], ["gamma", "one value"]),
        (["--alpha", "1", "--metric", "map"], ["--metric map", "no effect", "--alpha 1"]),
        (["--alpha", "small"], ["--alpha small", "a number"]),
        (
            ["--kernel", "precomputed", "--feature-scaling", "standard"],
            ["--feature-scaling standard", "precomputed"],
        ),
        (["--metric", "ndgc@10"], ["ndgc@10", "did you mean", "ndcg"]),
    ],
)
def test_options_without_effect_are_refused(tmp_path, letor, options, words):
    message = fail("train", letor, *options, "-o", tmp_path / "m.rw")
    for word in words:
        assert word in message
    assert not (tmp_path / "m.rw").exists()


@pytest.mark.parametrize("name", ["ranksvm", "ranklogistic", "corankrls", "pursuit"])
def test_every_model_is_trained_saved_and_used(tmp_path, letor, name):
    path = tmp_path / "m.rw"
    few = ["--set", "n_basis=2"] if name == "corankrls" else []
    found = json.loads(succeed("train", letor, "--model", name, *few, "-o", path, "--json").stdout)
    assert found["data"]["groups"] == 12
    assert found["chosen"]["held_out_score"] <= 0.5
    values = json.loads(succeed("evaluate", path, letor, "--json").stdout)["metrics"]
    assert {row["metric"] for row in values} == {"ndcg@10", "map", "disagreement", "tau"}
    assert values[2]["mean"] < 0.4


def test_the_summary_says_what_was_trained_on(tmp_path, table, problem):
    from rankwise import ScoreGraph

    done = succeed("train", table, *TABLE, "-o", tmp_path / "m.rw")
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    graph = ScoreGraph(problem.y, problem.groups).describe()
    assert rows["items"] == str(len(problem.y))
    assert rows["scores"] == "rating"
    assert rows["features"] == "3: size, age, stars"
    assert rows["groups"] == "12 by shop"
    assert rows["pairs"] == f"{graph.n_pairs}, {graph.n_tied_pairs} of them tied"
    assert rows["scaling"] == "StandardScaler"
    assert "alpha" in rows["chosen"]
    assert "disagreement" in rows["held-out"]
    assert rows["written"].split() == ["to", str(tmp_path / "m.rw")]


def test_scaling_is_saved_with_the_model(tmp_path, letor):
    from rankwise.persistence import load

    for scale, name in [("auto", "StandardScaler"), ("group", "GroupScaler")]:
        succeed("train", letor, "--alpha", "1", "--feature-scaling", scale, "-o", tmp_path / "m.rw")
        assert type(load(tmp_path / "m.rw")[0]).__name__ == name
    succeed("train", letor, "--alpha", "1", "--feature-scaling", "none", "-o", tmp_path / "m.rw")
    assert type(load(tmp_path / "m.rw")).__name__ == "RankRLS"


def test_sparse_features_stay_sparse(tmp_path):
    from rankwise.persistence import load

    rows = [f"{k % 3} qid:{k % 4} {1 + k % 30}:{1 + k} {31 + k % 7}:2" for k in range(60)]
    data = tmp_path / "sparse.txt"
    data.write_text("\n".join(rows))
    succeed("train", data, "-o", tmp_path / "m.rw")
    assert load(tmp_path / "m.rw")[0].with_mean is False
    assert len(succeed("predict", tmp_path / "m.rw", data).stdout.splitlines()) == 60
    succeed("train", data, "--feature-scaling", "standard+group", "-o", tmp_path / "m.rw")
    assert load(tmp_path / "m.rw")[0].with_mean is False


@pytest.mark.parametrize("scale", ["group", "log+group"])
def test_scaling_in_groups_gets_the_groups_in_every_command(tmp_path, table, scale):
    from rankwise import GroupScaler

    path, given = tmp_path / "m.rw", (table, *TABLE, "--feature-scaling", scale)
    succeed("train", *given, "-o", path)
    data = rankwise.datasets.read_ranking(table, target="rating", group="shop", features=NAMES)
    scaler = GroupScaler(with_log="log" in scale, with_standard="standard" in scale)
    items = scaler.fit_transform(data.X, groups=data.groups)
    expected = rankwise.RankRLSCV().fit(items, data.y, data.groups)
    printed = succeed("predict", path, table).stdout.split()
    np.testing.assert_allclose(np.array(printed, dtype=float), expected.predict(items))
    shown = json.loads(succeed("cv", *given, "--json").stdout)
    assert shown["best"]["alpha"] == pytest.approx(expected.alpha_)
    assert shown["best"]["disagreement"] == pytest.approx(expected.best_score_)
    if scale != "group":
        return
    succeed("evaluate", path, table)
    succeed("report", path, table, "-o", tmp_path / "page.html")
    succeed("compare", table, path, path)


def test_a_model_that_needs_groups_names_their_column(tmp_path, table):
    succeed("train", table, *TABLE, "--feature-scaling", "group", "-o", tmp_path / "m.rw")
    rows = [line.split(",") for line in lines_of(table)]
    at = rows[0].index("shop")
    alone = tmp_path / "alone.csv"
    alone.write_text("\n".join(",".join(row[:at] + row[at + 1 :]) for row in rows))
    said = fail("predict", tmp_path / "m.rw", alone)
    assert "was trained on groups by shop" in said


def test_info_of_a_model_tells_where_it_comes_from(model):
    shown = succeed("info", model).stdout
    for word in ("RankRLSCV after scaling", "train.csv", "rating", "shop", "size, age, stars"):
        assert word in shown
    found = json.loads(succeed("info", model, "--json").stdout)
    assert list(found["columns"]) == NAMES
    assert found["notes"]["rankwise train"]["n_rows"] > 30


def test_a_board_is_no_ranker_of_items(tmp_path, table, letor):
    from rankwise.leaderboard import rate

    save(rate({"winner": ["a", "b", "c"], "loser": ["b", "c", "a"]}), tmp_path / "board.rw")
    assert "Leaderboard" in succeed("info", tmp_path / "board.rw").stdout
    assert "is a Leaderboard" in fail("predict", tmp_path / "board.rw", table)
    succeed("train", letor, "-o", tmp_path / "m.rw")
    assert "features        3\n" in succeed("info", tmp_path / "m.rw").stdout


# Predicting


def test_letor_features_are_padded_but_never_cut(tmp_path, letor):
    succeed("train", letor, "--alpha", "1", "--feature-scaling", "none", "-o", tmp_path / "m.rw")
    few, many = tmp_path / "few.txt", tmp_path / "many.txt"
    few.write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    many.write_text("0 qid:1 1:1 2:0 3:0\n0 qid:1 1:2 9:1\n")
    from rankwise.persistence import load

    expected = load(tmp_path / "m.rw").predict(np.array([[1.0, 0, 0], [2, 0, 0]]))
    scores = succeed("predict", tmp_path / "m.rw", few).stdout.splitlines()
    np.testing.assert_array_equal([float(score) for score in scores], expected)
    message = fail("predict", tmp_path / "m.rw", many)
    assert "9 features" in message
    assert "expecting 3" in message


def test_names_and_numbers_of_features_are_not_mixed_up(tmp_path, letor, table, model):
    succeed("train", letor, "-o", tmp_path / "numbers.rw")
    assert "features have names" in fail("predict", tmp_path / "numbers.rw", table)
    assert "expects a table with the columns size, age, stars" in fail("predict", model, letor)


def test_ranks_inside_the_groups(tmp_path, table, model, problem):
    from rankwise.rankers.base import ranks_in_groups

    scores = [float(s) for s in succeed("predict", model, table).stdout.splitlines()]
    head, *rows = succeed("predict", model, table, "--rank").stdout.splitlines()
    ranks = ranks_in_groups(np.array(scores), problem.groups)
    order = np.lexsort((ranks, [f"s{group}" for group in problem.groups]))
    written = lines_of(table)
    assert head == f"{written[0]},rank"
    assert rows == [f"{written[1 + k]},{ranks[k]}" for k in order]
    named = succeed("predict", model, table, "--rank", "--column", "place").stdout.splitlines()
    assert named == [f"{written[0]},place", *rows]


def test_predictions_as_a_column(tmp_path, table, model):
    out = tmp_path / "out.csv"
    succeed("predict", model, table, "--column", "guess", "-o", out)
    scores = succeed("predict", model, table).stdout.splitlines()
    head, *rows = lines_of(out)
    assert head == lines_of(table)[0] + ",guess"
    assert rows == [f"{a},{b}" for a, b in zip(lines_of(table)[1:], scores, strict=True)]
    assert succeed("predict", model, table, "--column", "guess").stdout == out.read_text()


# Evaluating and comparing


def test_evaluation_is_that_of_the_library(tmp_path, table, model, problem):
    from rankwise.metrics import evaluate

    succeed("predict", model, table, "-o", tmp_path / "s.txt")
    scores = [float(line) for line in lines_of(tmp_path / "s.txt")]
    expected = evaluate(problem.y, scores, problem.groups, ["ndcg@3", "tau"])
    for ranker in (["evaluate", model, table], ["evaluate", tmp_path / "s.txt", table]):
        arguments = [*ranker, "-m", "ndcg@3", "-m", "tau", *TABLE]
        found = json.loads(succeed(*arguments, "--json").stdout)["metrics"]
        assert {row["metric"]: row["mean"] for row in found} == expected.to_dict()
    shown = succeed("evaluate", tmp_path / "s.txt", table, "-m", "tau", *TABLE).stdout
    assert f"{expected['tau']:.4f}" in shown
    per_group = tmp_path / "groups.csv"
    succeed("evaluate", model, table, "-m", "tau", "--per-group", per_group)
    head, *rows = lines_of(per_group)
    assert head == "group,items,tau"
    by_group = {row.split(",")[0]: row.split(",")[1:] for row in rows}
    for label, value in zip(expected.groups, expected.per_group["tau"], strict=True):
        size, tau = by_group[f"s{label}"]
        assert int(size) == (problem.groups == label).sum()
        assert (tau == "") == np.isnan(value)
        assert np.isnan(value) or float(tau) == value


def test_items_without_score(tmp_path, table):
    partly, scored = tmp_path / "partly.csv", tmp_path / "scored.csv"
    head, *rows = lines_of(table)
    blank = [row.rsplit(",", 1)[0] + "," for row in rows[:10]]
    partly.write_text("\n".join([head, *blank, *rows[10:]]))
    scored.write_text("\n".join([head, *rows[10:]]))
    options = [*TABLE, "-o", tmp_path / "m.rw"]
    alone, all_left = tmp_path / "alone.rw", tmp_path / "left.rw"
    succeed("train", scored, *TABLE, "-o", alone)
    done = succeed("train", partly, *TABLE, "-o", all_left)
    assert f"10 rows of {partly} have no score and are dropped" in done.stderr
    assert succeed("predict", alone, table).stdout == succeed("predict", all_left, table).stdout
    found = [json.loads(succeed("cv", f, *TABLE, "--json").stdout) for f in (partly, scored)]
    assert found[0]["candidates"] == found[1]["candidates"]
    assert found[0]["data"]["rows_left_out"] == 10
    done = succeed("train", partly, *options, "--model", "pursuit", "--set", "n_basis=3")
    assert "10 without score" in done.stdout
    evaluation = ["evaluate", tmp_path / "m.rw"]
    assert succeed(*evaluation, partly).stdout == succeed(*evaluation, scored).stdout
    assert "10 items without score are dropped\n" in succeed(*evaluation, partly).stderr


@pytest.mark.parametrize(
    "labels, found",  # an undefined metric is null in JSON
    [
        (("1", "1"), {"disagreement": None, "tau": None}),
        (("-1.5", "70000"), ["disagreement", "tau"]),
    ],
)
def test_metrics_suit_the_scores(tmp_path, labels, found):
    data, scores = tmp_path / "d.txt", tmp_path / "s.txt"
    data.write_text("{} qid:1 1:1\n{} qid:1 1:2\n".format(*labels))
    scores.write_text("1\n2\n")
    options = [f"--metric={name}" for name in found] if isinstance(found, dict) else []
    done = succeed("evaluate", scores, data, *options, "--json")
    rows = json.loads(done.stdout, parse_constant=pytest.fail)["metrics"]
    values = {row["metric"]: row["mean"] for row in rows}
    assert (values if isinstance(found, dict) else list(values)) == found


@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
def test_comparison_is_that_of_the_library(tmp_path, letor, problem):
    from rankwise.metrics import kendall_tau
    from rankwise.model_selection import compare

    X, y, groups = problem[:3]
    (tmp_path / "b").mkdir()
    files = [tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "b" / "two.txt"]
    for k, file in enumerate(files):
        file.write_text("".join(f"{value}\n" for value in X[:, k]))
    found = json.loads(succeed("compare", letor, *files, "-m", "tau", "--json").stdout)["tau"]
    names = ["one", str(files[1]), str(files[2])]
    values = {
        name: kendall_tau(y, X[:, k], groups, per_group=True, undefined="nan")
        for k, name in enumerate(names)
    }
    expected = compare(values, greater_is_better=True)
    assert found["groups"] == expected.n_groups
    assert [row["p_adjusted"] for row in found["comparisons"]] == [
        row.p_adjusted for row in expected
    ]
    assert [row["a"] for row in found["comparisons"]] == [row.a for row in expected]
    shown = succeed("compare", letor, *files, "-m", "tau", "-m", "map", "--baseline", "one").stdout
    assert shown.count("w/t/l:") == 2
    by_mean = ("compare", letor, *files, "-m", "tau", "--test", "randomization")
    expected = compare(values, greater_is_better=True, test="randomization")
    assert f"% tau\n{expected.to_text('latex')}" in succeed(*by_mean, "--format", "latex").stdout
    assert "; paired randomization test" in succeed(*by_mean).stdout
    assert "--format tex is unknown; did you mean 'text'" in fail(*by_mean, "--format", "tex")
    assert "baseline" in fail("compare", letor, *files, "--baseline", "three")
    assert "two" in fail("compare", letor, files[0])


@pytest.mark.parametrize(
    "notes",
    [
        None,
        {"rankwise train": {"features": 12, "chosen": [1], "target": ["a"], "n_rows": "many"}},
        {"rankwise train": {"features": ["x", 3], "command": "\x1b[31mred\x07"}},
    ],
)
def test_notes_of_other_programs_do_no_harm(tmp_path, notes):
    path, table = tmp_path / "model.rw", tmp_path / "data.csv"
    save(RankRLS().fit([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0]], [1, 2, 3]), path, notes=notes)
    table.write_text("a,b\n3,4\n1,2\n")
    told = run("info", path)
    assert told.exit_code == 0, told.output
    assert "\x1b" not in told.stdout
    assert "\x07" not in told.stdout
    scored = run("predict", path, table)
    assert scored.exit_code == 0, scored.output
    assert len(scored.stdout.split()) == 2
    assert "matched by position" in scored.stderr


def test_a_model_from_python_knows_the_columns_of_its_data_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    path, table = tmp_path / "model.rw", tmp_path / "data.csv"
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0], "age": [5.0, 1.0, 0.0]})
    model = make_pipeline(StandardScaler(), RankRLS()).fit(frame, [1, 2, 3])
    save(model, path)
    table.write_text("age,size\n5,1\n1,2\n")
    scored = run("predict", path, table)
    assert scored.exit_code == 0, scored.output
    expected = model.predict(frame[:2])
    np.testing.assert_allclose([float(line) for line in scored.stdout.split()], expected)
    table.write_text("age,weight\n5,1\n")
    refused = run("predict", path, table)
    assert refused.exit_code == 1
    assert "lacks 1 of the 2 columns" in refused.stderr


def test_a_table_with_another_number_of_columns_is_refused(tmp_path):
    path, table = tmp_path / "model.rw", tmp_path / "data.csv"
    save(RankRLS().fit([[1.0], [2.0]], [1, 2]), path)
    table.write_text("a,b\n3,4\n")
    refused = run("predict", path, table)
    assert refused.exit_code == 1
    assert "2 features" in refused.stderr


def test_auto_trains_saves_and_works_in_every_command(tmp_path, table):
    from rankwise.persistence import load

    path = tmp_path / "auto.rw"
    shown = json.loads(
        succeed("train", table, *TABLE, "--model", "auto", "-o", path, "--json").stdout
    )
    assert shown["model"] == "AutoRanker"
    assert len(shown["chosen"]["members"]) == 10
    assert shown["chosen"]["metric"] == "ndcg@10"
    saved = load(path)
    data = rankwise.datasets.read_ranking(
        table, target="rating", group="shop", features=NAMES, as_frame=True
    )
    printed = succeed("predict", path, table).stdout.split()
    expected = predict_items(saved, data.X, data.groups)
    np.testing.assert_allclose(np.array(printed, float), expected)
    succeed("evaluate", path, table)
    succeed("report", path, table, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "linear, standard, magnitude" in page
    assert "AutoRanker" in succeed("info", path).stdout
    said = succeed("train", table, *TABLE, "--model", "auto", "-o", path).stdout
    assert "used neither for selection nor for weights" in said
    assert "rbf, group, magnitude without ties" in said
    assert "rankwise train" in fail("cv", table, *TABLE, "--model", "auto")


def test_calibrated_models_give_intervals(letor, tmp_path):
    model, plain, out = tmp_path / "sure.rw", tmp_path / "plain.rw", tmp_path / "out.csv"
    succeed("train", letor, "--calibrate", "-o", model)
    succeed("train", letor, "-o", plain)
    succeed("predict", model, letor, "--intervals", "-o", out)
    header, *rows = [line.split(",") for line in lines_of(out)]
    scores = [float(line) for line in succeed("predict", model, letor).stdout.splitlines()]
    assert len(rows) == len(scores)
    at = header.index("score")
    np.testing.assert_allclose([float(row[at]) for row in rows], scores, rtol=1e-6)
    low, high = (header.index(name) for name in header if name.startswith("rank_"))
    assert all(int(row[low]) <= int(row[high]) for row in rows)
    assert "rankwise train --calibrate" in fail("predict", plain, letor, "--intervals", "-o", out)
    succeed("predict", model, letor, "--best-set", "0.5", "-o", out)
    header, *rows = [line.split(",") for line in lines_of(out)]
    assert header == ["score", "in_set"]
    np.testing.assert_allclose([float(row[0]) for row in rows], scores, rtol=1e-6)
    assert rows[int(np.argmax(scores))][1] == "1"
    assert {row[1] for row in rows} == {"0", "1"}
    assert "held-out lists" in fail("predict", model, letor, "--best-set", "0.999", "-o", out)
    assert "--rank" in fail("predict", model, letor, "--best-set", "0.5", "--rank")


def test_calibrated_models_with_scaling_inside_groups_predict(table, tmp_path):
    model = tmp_path / "calibrated.rw"
    plain = tmp_path / "plain.rw"
    options = [table, *TABLE, "--alpha", "1", "--feature-scaling", "group"]
    succeed("train", *options, "--calibrate", "-o", model)
    succeed("train", *options, "-o", plain)
    expected = np.array(succeed("predict", plain, table).stdout.split(), dtype=float)
    scores = np.array(succeed("predict", model, table).stdout.split(), dtype=float)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    out = tmp_path / "intervals.csv"
    succeed("predict", model, table, "--intervals", "-o", out)
    header, *rows = [line.split(",") for line in lines_of(out)]
    column = header.index("score")
    np.testing.assert_allclose([float(row[column]) for row in rows], expected, rtol=1e-6)


def test_a_metric_of_ones_own_is_named_by_module_and_function(model, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["def best(y, scores):", '    """The score of the first item."""']
    (tmp_path / "judged_by_me.py").write_text("\n".join([*lines, "    return y[scores.argmax()]"]))
    shown = succeed("evaluate", model, table, "-m", "judged_by_me:best", "--json").stdout
    (row,) = json.loads(shown)["metrics"]
    assert row["metric"] == "best"
    succeed("report", model, table, "-o", "page.html", "-m", "judged_by_me:best")
    assert "The score of the first item." in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "judged_by_me" in fail("evaluate", model, table, "-m", "judged_by_me:worst")
    own = (table, *TABLE, "-m", "judged_by_me:best", "--json")
    chosen = json.loads(succeed("train", *own, "-o", "own.rw").stdout)["chosen"]
    best = json.loads(succeed("cv", *own).stdout)["best"]
    assert chosen["metric"] == "best"
    assert (best["alpha"], best["best"]) == pytest.approx(
        (chosen["parameters"]["alpha"], chosen["held_out_score"])
    )
    succeed("evaluate", "own.rw", table)
