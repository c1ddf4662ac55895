"""Bounds over unjudged documents equal brute force over all gradings, and gradings attain them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankwise.metrics import evaluate_runs, judgments_to_flip, ndcg_bounds


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
    """Every assignment of grades to the unjudged documents of the first k ranks of one query."""
    query = next(iter(qrels))
    shown = {*first_documents(one[query], k), *first_documents(two[query], k)}
    unjudged = sorted(shown - qrels[query].keys())
    for grades in itertools.product(range(n_grades + 1), repeat=len(unjudged)):
        added = dict(zip(unjudged, grades, strict=True))
        yield {query: {**qrels[query], **added}}, sum(grade > 0 for grade in grades)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_bounds_of_a_difference_equal_those_over_all_gradings(gain):
    for seed in range(150):
        qrels, one, two, n_grades, k = random_problem(seed)
        bounds = ndcg_bounds(qrels, one, two, k=k, max_grade=n_grades, gain=gain)
        values = [
            difference(graded, one, two, k, gain)[0]
            for graded, _ in all_gradings(qrels, one, two, k, n_grades)
        ]
        assert bounds.low == pytest.approx(min(values), abs=1e-12)
        assert bounds.high == pytest.approx(max(values), abs=1e-12)
        assert bounds.zero == pytest.approx(difference(qrels, one, two, k, gain)[0], abs=1e-12)


def test_the_gradings_of_the_bounds_attain_them_for_every_query():
    qrels, one, two, n_grades, _ = random_problem(7, n_queries=40, n_grades=3)
    bounds = ndcg_bounds(qrels, one, two, k=4, max_grade=n_grades)
    for end in (0, 1):
        graded = {q: {**qrels[q], **bounds.by_query[q][end].grades} for q in qrels}
        values = difference(graded, one, two, 4, "linear")
        expected = [bounds.by_query[q][end].value for q in sorted(qrels)]
        np.testing.assert_allclose(values, expected, atol=1e-12)
    assert bounds.low == pytest.approx(np.mean([b[0].value for b in bounds.by_query.values()]))


def test_bounds_of_one_run_hold_its_value():
    qrels, one, _, n_grades, _ = random_problem(3, n_queries=20, n_grades=2)
    bounds = ndcg_bounds(qrels, one, k=3, max_grade=n_grades)
    assert 0.0 <= bounds.low <= bounds.zero <= bounds.high <= 1.0
    fully_judged = {q: {**dict.fromkeys(one[q], 0), **qrels[q]} for q in qrels}
    narrow = ndcg_bounds(fully_judged, one, k=3)
    assert narrow.n_unjudged == 0
    assert narrow.low == narrow.high == narrow.zero


def test_judgments_to_flip_equals_the_fewest_over_all_gradings():
    for seed in range(150):
        qrels, one, two, n_grades, k = random_problem(seed)
        today = difference(qrels, one, two, k, "linear")[0]
        sign = -1.0 if today > 0 else 1.0
        enough = [
            n_relevant
            for graded, n_relevant in all_gradings(qrels, one, two, k, n_grades)
            if sign * difference(graded, one, two, k, "linear")[0] >= -1e-12
        ]
        expected = min(enough) if enough else None
        assert judgments_to_flip(qrels, one, two, k=k, max_grade=n_grades) == expected


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
        assert judgments_to_flip(qrels, one, two, k=k, max_grade=n_grades) == expected


def test_a_largest_grade_below_that_of_the_qrels_is_refused():
    with pytest.raises(ValueError, match="max_grade"):
        ndcg_bounds({"q": {"a": 2}}, {"q": {"a": 1.0}}, max_grade=1)
