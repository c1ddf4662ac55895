"""Bounds over unjudged documents equal brute force over all gradings, and gradings attain them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import pytrec_eval

from rankwise.datasets import read_qrels
from rankwise.metrics import evaluate_runs, judgments_to_flip, unjudged_bounds

WITNESSED = {
    "nDCG@3": "ndcg_cut.3",
    "nDCG": "ndcg",
    "P@2": "P.2",
    "RR": "recip_rank",
    "Success@2": "success.2",
    "AP": "map",
}


def random_problem(seed, n_queries=1, n_grades=None):
    """Few documents, so that all gradings can be enumerated."""
    rng = np.random.default_rng(seed)
    n_grades = int(rng.integers(1, 4)) if n_grades is None else n_grades
    qrels, one, two = {}, {}, {}
    for query in range(n_queries):
        documents = [f"d{k}" for k in range(int(rng.integers(3, 7)))]
        n_judged = int(rng.integers(1, len(documents)))
        judged = rng.permutation(documents)[:n_judged]
        grades = rng.integers(0, n_grades + 1, n_judged)
        qrels[f"q{query}"] = {str(d): int(g) for d, g in zip(judged, grades, strict=True)}
        for run in (one, two):
            chosen = rng.permutation(documents)[: rng.integers(2, len(documents) + 1)]
            run[f"q{query}"] = {str(d): float(rng.normal()) for d in chosen}
    return qrels, one, two, n_grades, int(rng.integers(1, 5))


def difference(qrels, one, two, k, gain):
    measure = f"nDCG(gain={gain})@{k}"
    result = evaluate_runs(qrels, {"one": one, "two": two}, measure)
    return result.per_query(measure, "one") - result.per_query(measure, "two")


def first_documents(run, k):
    return sorted(run, key=lambda d: (-np.float32(run[d]), d))[:k]


def all_gradings(qrels, one, two, k, n_grades):
    """Every assignment of grades to the unjudged documents that a run retrieves for one query."""
    query = next(iter(qrels))
    shown = {*one[query], *two[query]}
    unjudged = sorted(shown - qrels[query].keys())
    for grades in itertools.product(range(n_grades + 1), repeat=len(unjudged)):
        added = dict(zip(unjudged, grades, strict=True))
        yield {query: {**qrels[query], **added}}, sum(grade > 0 for grade in grades)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_bounds_of_a_difference_equal_those_over_all_gradings(gain):
    for seed in range(150):
        qrels, one, two, n_grades, k = random_problem(seed)
        bounds = unjudged_bounds(qrels, one, two, f"nDCG(gain={gain})@{k}", max_grade=n_grades)
        values = [
            difference(graded, one, two, k, gain)[0]
            for graded, _ in all_gradings(qrels, one, two, k, n_grades)
        ]
        assert bounds.low == pytest.approx(min(values), abs=1e-12)
        assert bounds.high == pytest.approx(max(values), abs=1e-12)
        assert bounds.zero == pytest.approx(difference(qrels, one, two, k, gain)[0], abs=1e-12)


def test_the_gradings_of_the_bounds_attain_them_for_every_query():
    qrels, one, two, n_grades, _ = random_problem(7, n_queries=40, n_grades=3)
    bounds = unjudged_bounds(qrels, one, two, "nDCG@4", max_grade=n_grades)
    for end in (0, 1):
        graded = {q: {**qrels[q], **bounds.by_query[q][end].grades} for q in qrels}
        values = difference(graded, one, two, 4, "linear")
        expected = [bounds.by_query[q][end].value for q in sorted(qrels)]
        np.testing.assert_allclose(values, expected, atol=1e-12)
    assert bounds.low == pytest.approx(np.mean([b[0].value for b in bounds.by_query.values()]))


def test_bounds_of_one_run_hold_its_value():
    qrels, one, _, n_grades, _ = random_problem(3, n_queries=20, n_grades=2)
    bounds = unjudged_bounds(qrels, one, metric="nDCG@3", max_grade=n_grades)
    assert 0.0 <= bounds.low <= bounds.zero <= bounds.high <= 1.0
    fully_judged = {q: {**dict.fromkeys(one[q], 0), **qrels[q]} for q in qrels}
    narrow = unjudged_bounds(fully_judged, one, metric="nDCG@3")
    assert narrow.n_unjudged == 0
    assert narrow.low == narrow.high == narrow.zero


def test_judgments_to_flip_equals_the_fewest_over_all_gradings():
    for seed in range(160):
        qrels, one, two, n_grades, k = random_problem(seed)
        today = difference(qrels, one, two, k, "linear")[0]
        sign = -1.0 if today > 0 else 1.0
        enough = [
            n_relevant
            for graded, n_relevant in all_gradings(qrels, one, two, k, n_grades)
            if sign * difference(graded, one, two, k, "linear")[0] >= -1e-12
        ]
        expected = min(enough) if enough else None
        assert judgments_to_flip(qrels, one, two, f"nDCG@{k}", max_grade=n_grades) == expected


def test_judgments_to_flip_of_two_queries_equals_brute_force():
    for seed in range(40):
        qrels, one, two, n_grades, k = random_problem(seed, n_queries=2, n_grades=1)
        today = difference(qrels, one, two, k, "linear").sum()
        sign = -1.0 if today > 0 else 1.0
        options = []
        for query in qrels:
            parts = ({query: qrels[query]}, {query: one[query]}, {query: two[query]})
            options.append(
                [
                    (n, difference(graded, parts[1], parts[2], k, "linear")[0])
                    for graded, n in all_gradings(*parts, k, n_grades)
                ]
            )
        enough = [
            n_first + n_second
            for (n_first, first), (n_second, second) in itertools.product(*options)
            if sign * (first + second) >= -1e-12
        ]
        expected = min(enough) if enough else None
        assert judgments_to_flip(qrels, one, two, f"nDCG@{k}", max_grade=n_grades) == expected


# ---------------------------------------------------------------- other metrics


def brute_force(qrels, runs, metric, level):
    """Values of one run, or of the first minus the second, over all choices of relevant documents.

    Returns the values and the number of relevant unjudged documents of each choice.
    """
    query = next(iter(qrels))
    unjudged = sorted({d for run in runs for d in run[query]} - qrels[query].keys())
    values, sizes = [], []
    for is_relevant in itertools.product([False, True], repeat=len(unjudged)):
        chosen = [d for d, relevant in zip(unjudged, is_relevant, strict=True) if relevant]
        graded = {query: {**qrels[query], **dict.fromkeys(chosen, level)}}
        of_runs = [evaluate_runs(graded, run, metric)[metric] for run in runs]
        values.append(of_runs[0] - (of_runs[1] if len(runs) > 1 else 0.0))
        sizes.append(len(chosen))
    return np.array(values), np.array(sizes)


@pytest.mark.parametrize(
    "metric", ["P@3", "P(rel=2)@2", "RBP(p=0.7)@4", "RBP", "RR", "RR@2", "Success@2"]
)
@pytest.mark.parametrize("n_runs", [1, 2])
def test_bounds_of_other_metrics_equal_brute_force(metric, n_runs):
    level = 2 if "rel=2" in metric else 1
    for seed in range(40):
        qrels, *runs, _, _ = random_problem(seed, n_grades=2)
        runs = runs[:n_runs]
        bounds = unjudged_bounds(qrels, *runs, metric=metric)
        values, sizes = brute_force(qrels, runs, metric, level)
        assert bounds.low == pytest.approx(values.min(), abs=1e-12)
        assert bounds.high == pytest.approx(values.max(), abs=1e-12)
        assert bounds.zero == pytest.approx(values[0], abs=1e-12)
        if n_runs == 2:
            sign = -1.0 if values[0] > 0 else 1.0
            enough = sizes[sign * values >= -1e-12]
            assert bounds.judgments_to_flip == (enough.min() if len(enough) else None)


@pytest.mark.parametrize("metric", ["AP", "AP@2", "AP(rel=2)"])
def test_bounds_of_average_precision_equal_brute_force(metric):
    level = 2 if "rel=2" in metric else 1
    for seed in range(60):
        qrels, run, _, _, _ = random_problem(seed, n_grades=2)
        bounds = unjudged_bounds(qrels, run, metric=metric)
        values, _ = brute_force(qrels, [run], metric, level)
        assert bounds.low == pytest.approx(values.min(), abs=1e-12)
        assert bounds.high == pytest.approx(values.max(), abs=1e-12)


def test_documents_that_no_run_retrieves_enlarge_the_ideal():
    for seed in range(40):
        qrels, one, two, n_grades, k = random_problem(seed)
        hidden = {query: {**run, "pool-1": -1e9, "pool-2": -2e9} for query, run in one.items()}
        last = {query: {**run, "pool-1": -1e9, "pool-2": -2e9} for query, run in two.items()}
        metric = f"nDCG@{min(k, 2)}"  # both lists have two documents before them
        bounds = unjudged_bounds(qrels, one, two, metric, max_grade=n_grades, pool=2)
        expected = unjudged_bounds(qrels, hidden, last, metric, max_grade=n_grades)
        assert (bounds.low, bounds.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        whole = unjudged_bounds(qrels, one, metric="AP", pool=1)
        judged = {q: {**grades, "pool-1": 1} for q, grades in qrels.items()}
        lowest = [unjudged_bounds(q, one, metric="AP").low for q in (qrels, judged)]
        assert whole.low == pytest.approx(min(lowest), abs=1e-12)


@pytest.mark.parametrize("metric, theirs", WITNESSED.items())
def test_witnesses_written_as_qrels_give_the_bounds_in_pytrec_eval(tmp_path, metric, theirs):
    qrels, one, two, _, _ = random_problem(11, n_queries=30, n_grades=2)
    runs = [one] if metric == "AP" else [one, two]
    bounds = unjudged_bounds(qrels, *runs, metric=metric)
    for end in ("low", "high"):
        bounds.write_qrels(tmp_path / end, end)
        graded = read_qrels(tmp_path / end).to_dict()
        evaluator = pytrec_eval.RelevanceEvaluator(graded, {theirs})
        means = []
        for run in runs:
            by_query = evaluator.evaluate(run)
            means.append(np.mean([by_query[q][theirs.replace(".", "_")] for q in qrels]))
        value = means[0] - (means[1] if len(means) > 1 else 0.0)
        assert value == pytest.approx(getattr(bounds, end), abs=1e-12)
    with pytest.raises(ValueError, match="end"):
        bounds.witness("middle")


def test_a_thousand_random_problems_equal_brute_force():
    rng = np.random.default_rng(5)
    for seed in range(1000):
        qrels, one, two, n_grades, k = random_problem(seed + 1000)
        runs = [one, two][: int(rng.integers(1, 3))]
        gain = ["linear", "exponential"][int(rng.integers(2))]
        other = two if len(runs) == 2 else None
        bounds = unjudged_bounds(qrels, one, other, f"nDCG(gain={gain})@{k}", max_grade=n_grades)
        second = two if other is not None else {query: {} for query in two}
        lists = [first_documents(run[next(iter(qrels))], k) for run in (one, second)]
        values = [
            dcg_difference(graded, lists, k, gain)
            for graded, _ in all_gradings(qrels, one, second, k, n_grades)
        ]
        assert bounds.low == pytest.approx(min(values), abs=1e-12)
        assert bounds.high == pytest.approx(max(values), abs=1e-12)


def dcg_difference(graded, lists, k, gain):
    """nDCG of the first list minus nDCG of the second, by loops."""
    (grades,) = graded.values()

    def gain_of(grade):
        return 2.0**grade - 1.0 if gain == "exponential" else float(grade)

    ideal_grades = sorted(grades.values(), reverse=True)[:k]
    ideal = sum(gain_of(g) / np.log2(rank + 2) for rank, g in enumerate(ideal_grades))
    sums = [
        sum(gain_of(grades.get(d, 0)) / np.log2(rank + 2) for rank, d in enumerate(documents))
        for documents in lists
    ]
    return (sums[0] - sums[1]) / ideal if ideal else 0.0


def test_many_relevant_documents_to_flip_need_more_than_the_first_limit():
    n_queries = 90
    qrels = {f"q{q}": {"good": 1, "bad": 0} for q in range(n_queries)}
    one = {f"q{q}": {"good": 1.0} for q in range(n_queries)}
    two = {f"q{q}": {"new": 2.0, "other": 1.0} for q in range(n_queries)}
    # every flipped query gains one place: half of the queries are enough
    assert judgments_to_flip(qrels, one, two, "P@1") == n_queries
    assert judgments_to_flip(qrels, two, one, "P@1") == n_queries
    assert judgments_to_flip(qrels, one, {q: {"bad": 1.0} for q in qrels}, "P@1") is None
    assert judgments_to_flip(qrels, one, one, "P@1") == 0


def test_evaluate_runs_has_the_bounds_of_each_run_and_the_next_judgments():
    qrels, one, two, _, _ = random_problem(4, n_queries=20, n_grades=2)
    result = evaluate_runs(qrels, {"one": one, "two": two}, ["nDCG@3", "AP"], unjudged="bounds")
    for name, run in {"one": one, "two": two}.items():
        expected = unjudged_bounds(qrels, run, metric="nDCG@3")
        bounds = result.bounds[name, "ndcg(gain=linear)@3"]
        assert (bounds.low, bounds.high) == (expected.low, expected.high)
        assert bounds.low <= result[name, "nDCG@3"] <= bounds.high
        low, high = bounds.interval()
        assert low < bounds.low < bounds.high < high
    assert "any grades" in str(result)
    difference = unjudged_bounds(qrels, one, two, "nDCG@3")
    names = [(entry.query, entry.document) for entry in result.next_judgments(8)]
    effects = [entry.effect for entry in difference.next_judgments(8)]
    assert effects == sorted(effects, reverse=True)
    assert [entry.effect for entry in result.next_judgments(8)] == pytest.approx(effects)
    assert all(document not in qrels[query] for query, document in names)
    with pytest.raises(ValueError, match="unjudged='bounds'"):
        evaluate_runs(qrels, one, "AP").next_judgments()


@pytest.mark.parametrize(
    "metric, options, word",
    [
        ("Rprec", {}, "no bounds"),
        ("nDCG(judged_only=True)@10", {}, "no bounds"),
        ("AP", {}, "difference"),
        ("nDCG", {"max_grade": 1}, "max_grade"),
        ("nDCG", {"pool": -1}, "pool"),
    ],
)
def test_what_has_no_bounds_is_refused_by_name(metric, options, word):
    run = {"q": {"a": 1.0}}
    with pytest.raises(ValueError, match=word):
        unjudged_bounds({"q": {"a": 2}}, run, run, metric, **options)


def test_grades_with_fractions_have_no_bounds():
    with pytest.raises(ValueError, match="whole grades"):
        unjudged_bounds({"q": {"a": 0.5}}, {"q": {"a": 1.0}})
