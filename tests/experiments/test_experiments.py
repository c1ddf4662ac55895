"""The experiments run and give what their README says; skipped where the data are not."""

import os
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

mpl.use("agg")

from experiments import (
    boosting,
    command_line,
    parse_ranking,
    rankrls07_letor,
    rankrls09_figure1,
    rankrls09_figure2,
    rankrls09_reuters_all,
    rankrls09_table1,
    rankrls09_table3,
    rankrls09_table6,
)
from experiments.shared.letor import Fold, Learner, read_folds, score_test_part
from experiments.shared.letor_tool import letor_ndcg
from experiments.shared.reuters import read_reuters
from experiments.shared.tables import format_table
from rankwise import RankRLS, RankSVM
from rankwise.datasets import RankingData
from rankwise.metrics import disagreement_error, ndcg

DATA = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(autouse=True)
def one_thread():
    """The matrices are small, and threads that wait for each other are slow on a busy machine."""
    with threadpool_limits(1):
        yield


def needs(folder):
    return pytest.mark.skipif(
        not (DATA / folder).is_dir(),
        reason=f"no {DATA / folder}; set RANKWISE_DATA to the folder of the real data",
    )


def numbers(line):
    return [float(text) for text in re.findall(r"(?<![\w@])-?\d+\.\d+", line)]


def table_rows(printed, *names):
    lines = printed.splitlines()
    return [next(line for line in lines if line.startswith(name)) for name in names]


# -- without data ----------------------------------------------------------------------------


def test_figure2_irrelevant_pairs_turn_the_order_around(tmp_path, capsys):
    rankrls09_figure2.main(["--data", "absent", "--output", str(tmp_path)])
    assert (tmp_path / "rankrls09_figure2.png").stat().st_size > 10_000
    relevant, everything = table_rows(capsys.readouterr().out, "relevant pairs only", "all pairs")
    assert "x1 > x2 > x3 > x4" in relevant
    assert "0 of 2" in relevant
    assert "x4 > x3 > x2 > x1" in everything
    assert "2 of 2" in everything


def test_figure2_features_fit_the_description_in_the_paper():
    x, s = rankrls09_figure2.FEATURE[:, 0], rankrls09_figure2.SCORES
    for i in range(4):
        for j in range(4):
            if s[i] > s[j]:
                relevant = rankrls09_figure2.OBJECTS[i] == rankrls09_figure2.OBJECTS[j]
                assert (x[i] < x[j]) == relevant  # from left to right, or the opposite way


@pytest.mark.parametrize(
    "main",
    [rankrls07_letor.main, rankrls09_table1.main, rankrls09_table3.main, parse_ranking.main],
)
def test_absent_data_are_explained(main, tmp_path):
    with pytest.raises(SystemExit, match=r"does not exist.*--data"):
        main(["--data", str(tmp_path)])


def test_nobody_said_where_the_data_are(monkeypatch):
    monkeypatch.delenv(command_line.VARIABLE, raising=False)
    with pytest.raises(SystemExit, match=r"--data, or set RANKWISE_DATA"):
        rankrls09_table3.main([])


def test_data_may_come_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv(command_line.VARIABLE, str(tmp_path))
    assert command_line.make_parser("").parse_args([]).data == tmp_path
    given = command_line.make_parser("").parse_args(["--data", "elsewhere"])
    assert given.data == Path("elsewhere")
    monkeypatch.setenv(command_line.VARIABLE, "")
    assert command_line.make_parser("").parse_args([]).data is None


def test_figure1_draws_the_costs_of_equations_20_to_22(tmp_path, capsys):
    y, g = rankrls09_figure1.MAGNITUDE, rankrls09_figure1.G
    expected = {"sign": (1 - g) ** 2, "magnitude": (y - g) ** 2, "relative": (1 - g / y) ** 2}
    for name, values in expected.items():
        np.testing.assert_allclose(rankrls09_figure1.cost_of(name, g), values)
    rankrls09_figure1.main(["--output", str(tmp_path)])
    assert (tmp_path / "rankrls09_figure1.png").stat().st_size > 10_000
    rows = table_rows(capsys.readouterr().out, "(20)", "(21)", "(22)")
    assert [row.split()[-1] for row in rows] == ["yes", "no", "yes"]  # as the paper says


def make_queries(first, random, n_queries=6, n_items=12):
    X = random.normal(size=(n_queries * n_items, 3))
    y = np.clip(np.round(1 + X[:, 0] + 0.8 * random.normal(size=len(X))), 0, 2)
    return RankingData(X, y, first + np.repeat(np.arange(n_queries), n_items))


def make_fold(seed=0):
    random = np.random.default_rng(seed)
    return Fold(*(make_queries(first, random) for first in (0, 20, 40)))


def test_boosted_trees_are_chosen_on_the_validation_part(monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    monkeypatch.setattr(boosting, "TREES", np.array([1, 20]))
    fold = make_fold()
    shuffled = np.random.default_rng(1).permutation(len(fold.train.y))  # groups need not be sorted
    train = RankingData(*(part[shuffled] for part in fold.train[:3]))
    learner = Learner("LightGBM", (boosting.BoostedTrees(4),))

    def quality(y, scores, groups):
        return -disagreement_error(y, scores, groups)

    scores, model = score_test_part(learner, fold._replace(train=train), quality)
    errors = []
    for n_trees in (1, 20):
        order = np.argsort(train.groups, kind="stable")
        same = lightgbm.LGBMRanker(
            n_estimators=20, num_leaves=4, learning_rate=0.05, n_jobs=1, random_state=0,
            deterministic=True, force_row_wise=True, verbosity=-1,
        ).fit(train.X[order], train.y[order].astype(int), group=[12] * 6)  # fmt: skip
        found = same.predict(fold.validation.X, num_iteration=n_trees)
        errors.append(disagreement_error(fold.validation.y, found, fold.validation.groups))
    assert model.n_trees == (1, 20)[int(np.argmin(errors))]
    np.testing.assert_allclose(scores, same.predict(fold.test.X, num_iteration=model.n_trees))
    assert disagreement_error(fold.test.y, scores, fold.test.groups) < 0.3
    assert str(model) == f"{model.n_trees} trees of 4 leaves"


@pytest.mark.parametrize("is_there", [False, True])
def test_table3_and_the_tables_of_2007_with_and_without_boosted_trees(
    is_there, monkeypatch, capsys
):
    if is_there:
        pytest.importorskip("lightgbm")
        monkeypatch.setattr(boosting, "TREES", np.array([1, 10]))
        learners = (Learner("LightGBM", (boosting.BoostedTrees(4),)),)
    else:
        learners = ()
    monkeypatch.setattr(boosting, "LEARNERS", learners)
    quick = Learner("RankSVM", (RankRLS(beta=0.5),))
    monkeypatch.setattr(rankrls09_table3, "RANK_SVM", quick)
    few = (*rankrls07_letor.make_learners()[:2], quick)
    monkeypatch.setattr(rankrls07_letor, "make_learners", lambda _: few)
    for experiment in (rankrls09_table3, rankrls07_letor):
        monkeypatch.setattr(experiment, "read_folds", lambda *_: [make_fold(k) for k in range(2)])
        experiment.main(["--data", "made-up"])
        printed = capsys.readouterr().out
        assert (boosting.ABSENT in printed) != is_there
        assert ("LightGBM in Tables 1 to 3" in printed) == (
            is_there and experiment is rankrls07_letor
        )
        if experiment is rankrls09_table3:
            row = numbers(table_rows(printed, "LightGBM  ")[0])
            assert len(row) == 2 * is_there


def test_parses_are_ranked_by_rank_svm_with_the_alpha_of_cross_validation(monkeypatch):
    random = np.random.default_rng(0)
    train, test = (make_queries(first, random, n_queries=10) for first in (0, 20))
    alphas = np.array([1e-3, 1.0])
    (method,) = (each for each in parse_ranking.METHODS if each.learner is RankSVM)
    found = parse_ranking.measure(
        method._replace(alphas=alphas), ({"metric": "linear"},), train, test
    )
    held = np.empty((len(train.y), 2))
    for group in np.unique(train.groups):  # ten groups in ten folds
        rest = train.groups != group
        for k, alpha in enumerate(alphas):
            model = RankSVM(alpha).fit(train.X[rest], train.y[rest], train.groups[rest])
            held[~rest, k] = model.predict(train.X[~rest])
    errors = disagreement_error(train.y, held, train.groups, tied_scores="wrong")
    assert found.validation_error == pytest.approx(errors.min(), abs=0.01)  # up to the gap
    best = RankSVM(alphas[errors.argmin()]).fit(*train[:3])
    expected = disagreement_error(test.y, best.predict(test.X), test.groups, per_group=True)
    np.testing.assert_allclose(found.errors, expected[~np.isnan(expected)], atol=0.06)


def test_all_pairs_of_a_user_are_those_of_equal_ratings_too(capsys, monkeypatch):
    random = np.random.default_rng(0)
    quality = random.normal(size=40)
    ratings = np.round(quality + random.normal(size=(60, 40)))
    monkeypatch.setattr(rankrls09_table6, "read_jester", lambda _: ratings)
    monkeypatch.setattr(rankrls09_table6, "GAMMAS", np.array([0.002]))
    monkeypatch.setattr(rankrls09_table6, "ALPHAS", np.array([0.01, 1.0]))
    monkeypatch.setattr(rankrls09_table6, "DENSITIES", {"all": (0, 40)})
    monkeypatch.setattr(rankrls09_table6, "N_REFERENCE", 10)
    published = {name: values[3:] for name, values in rankrls09_table6.PUBLISHED.items()}
    monkeypatch.setattr(rankrls09_table6, "PUBLISHED", published)
    rankrls09_table6.main(["--users", "5", "--data", "made-up"])
    printed = capsys.readouterr().out
    relevant, everything = (
        numbers(table_rows(printed, name)[0].split(")")[1])[0]
        for name in ("RankRLS (21)  ", "RankRLS (21) all pairs")
    )
    (line,) = (line for line in printed.splitlines() if line.startswith("All pairs less"))
    assert numbers(line)[0] == pytest.approx(everything - relevant, abs=0.0011)
    (share,) = re.findall(r"([\d.]+)% of the pairs of a user are of equal ratings", printed)
    assert 5 < float(share) < 60


def test_letor_ndcg_by_hand():
    y, scores, groups = np.array([0.0, 2, 1, 0]), np.array([4.0, 3, 2, 1]), np.ones(4)
    ideal = np.array([3, 3 + 1, 3 + 1])
    expected = np.array([0, 3, 3 + 1 / np.log2(3)]) / ideal
    np.testing.assert_allclose(letor_ndcg(y, scores, groups, 3), expected)


def test_letor_ndcg_equals_ours_at_the_first_place():
    random = np.random.default_rng(0)
    y, scores = random.integers(0, 3, 60).astype(float), random.normal(size=60)
    groups = random.permutation(np.repeat(np.arange(6), 10))
    ours = ndcg(y, scores, groups, k=1, undefined="zero")
    np.testing.assert_allclose(letor_ndcg(y, scores, groups)[0], ours)


def test_choice_is_the_best_on_validation():
    random = np.random.default_rng(0)

    def part(first):
        X = random.normal(size=(40, 5))
        y = X @ [1.0, -1, 0.5, 0, 0] + random.normal(size=40)
        return RankingData(X, y, first + np.arange(40) // 8)

    fold = Fold(part(0), part(10), part(20))
    alphas = np.array([1e-4, 1e-1, 1.0, 100.0])

    def quality(y, scores, groups):
        return -disagreement_error(y, scores, groups)

    scores, model = score_test_part(Learner("RankRLS", (RankRLS(),)), fold, quality, alphas)
    errors = [
        disagreement_error(
            fold.validation.y,
            RankRLS(alpha).fit(*fold.train[:3]).predict(fold.validation.X),
            fold.validation.groups,
        )
        for alpha in alphas
    ]
    assert model.alpha == alphas[np.argmin(errors)]
    np.testing.assert_allclose(
        scores, RankRLS(model.alpha).fit(*fold.train[:3]).predict(fold.test.X)
    )


def test_table_is_aligned():
    text = format_table(["", "ours\nMAP", "paper\nMAP"], [["RankRLS", 0.5, None], ["a", 1.25, 3]])
    header, second, rule, *body = text.splitlines()
    assert header.split() == ["ours", "paper"]
    assert len(second) == len(rule)
    assert [line.split() for line in body] == [["RankRLS", "0.500", "–"], ["a", "1.250", "3"]]
    assert {len(line) for line in body} == {len(rule)}


# -- with data -------------------------------------------------------------------------------


@needs("ohsumed")
def test_folds_are_those_of_letor():
    folds = read_folds(DATA, "ohsumed")
    assert sum(len(fold.test.y) for fold in folds) == 16140
    for fold in folds:
        queries = [set(part.groups) for part in fold]
        assert sum(map(len, queries)) == len(set.union(*queries)) == 106


@needs("ohsumed")
def test_rankrls07_map_is_the_published_one(capsys):
    rankrls07_letor.main(["--data", str(DATA)])
    printed = capsys.readouterr().out
    letor, label_2 = map(numbers, table_rows(printed, "label >= 1, zero", "label 2, zero"))
    rank_rls, rls, *published = letor
    assert published == list(rankrls07_letor.PUBLISHED_MAP)
    assert rank_rls == pytest.approx(published[0], abs=0.02)
    assert rls == pytest.approx(published[1], abs=0.02)
    # the published MAP does not fit the definition in the paper's text
    assert label_2[0] < 0.36
    for k in (1, 5, 10):
        row = numbers(table_rows(printed, f"NDCG@{k} ")[0])
        assert row[0] == pytest.approx(rankrls07_letor.PUBLISHED_NDCG[k - 1][0], abs=0.03)


@needs("ohsumed")
@needs("mq2008")
def test_rankrls09_table3_fits_the_paper():
    errors = {name: rankrls09_table3.measure(DATA, name) for name in ("ohsumed", "mq2008")}
    mean = rankrls09_table3.mean_over_folds
    assert mean(errors["mq2008"]["RankRLS"]) < mean(errors["mq2008"]["RankRLS all pairs"])
    for name, published in rankrls09_table3.PUBLISHED.items():
        if name in errors["ohsumed"]:
            assert mean(errors["ohsumed"][name]) == pytest.approx(published[0], abs=0.02)
    assert rankrls09_table3.compare(errors["ohsumed"])[0] > 0.05
    assert rankrls09_table3.compare(errors["mq2008"])[0] < 0.01


@needs("reuters21578")
def test_reuters_is_the_modapte_split():
    documents = read_reuters(DATA)
    assert (np.sum(documents.split == "train"), np.sum(documents.split == "test")) == (9603, 3299)
    # [RankRLS09] Table 4: 94 + 2275 and 158 + 3806 documents
    assert documents.has_topic("acq").sum() == 94 + 2275
    assert documents.has_topic("earn").sum() == 158 + 3806
    assert min(map(len, documents.texts)) > 0


@needs("reuters21578")
def test_rankrls09_table1(capsys):
    rankrls09_table1.main(["--data", str(DATA), "--short"])
    rows = map(numbers, table_rows(capsys.readouterr().out, "200 ", "500 ", "750 ", "1000 "))
    for fit, path, test_auc in rows:
        assert fit > 0
        assert path > 0
        assert test_auc > 0.95


@needs("bioinfer_parse")
def test_parse_ranking(capsys):
    parse_ranking.main(["--data", str(DATA)])
    printed = capsys.readouterr().out
    for method in parse_ranking.METHODS:
        validation, error, _, tau, *_ = numbers(table_rows(printed, method.name)[0].split(")")[-1])
        assert validation < 0.5
        assert 0 < error < 0.5
        assert tau > 0


@needs("reuters21578")
def test_reuters_all_trains_on_more_than_twelve_thousand_documents_and_words(capsys):
    rankrls09_reuters_all.main(["--data", str(DATA), "--short"])
    printed = capsys.readouterr().out
    assert "12902 documents, 13515 words" in printed
    assert "25.0 million pairs" in printed
    for line in table_rows(printed, "0.01 ", "0.001", "0.0001", "1e-05"):
        assert int(line.split()[2]) < 300
        assert numbers(line)[-1] > 0.98


def test_quality_compares_all_learners_in_the_same_groups(monkeypatch, tmp_path, capsys):
    from experiments import quality, quality_peers
    from rankwise.datasets import make_ranking

    X, y, groups = make_ranking(n_queries=16, n_documents=8, n_features=4, random_state=0)[:3]
    y, new = np.minimum(y, 3), groups >= 10
    split = quality.Split(X[~new], y[~new], groups[~new], X[new], y[new], groups[new])
    monkeypatch.setattr(quality_peers, "N_TREES", 5)
    monkeypatch.setattr(quality, "SETS", {"mq2008": lambda data: iter([split])})
    quality.main(["--output", str(tmp_path), "--only", "mq2008"])
    shown = capsys.readouterr().out
    for learner in quality.LEARNERS:  # regressions are for one list
        assert (learner in shown) == (learner not in quality_peers.LIST_PEERS)
    kept = quality.run(quality_options(tmp_path, quality))  # nothing is measured again
    assert capsys.readouterr().out == ""
    held_out = quality.values_of(kept, "mq2008", "RankRLSCV", "error")
    model = quality.RankRLSCV().fit(*split[:3])
    truth = disagreement_error(y[new], model.predict(X[new]), groups[new], per_group=True)
    np.testing.assert_allclose(held_out, truth)


def quality_options(folder, quality):
    from argparse import Namespace

    learners = list(quality.LEARNERS)
    return Namespace(output=folder, only=["mq2008"], learners=learners, again=False, data=None)
