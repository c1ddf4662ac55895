"""Kernels of objects: texts by their n-grams, and anything by a function."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from rankwise import ConditionalRankRLSCV, LabelRankerCV, RankRLS, View
from rankwise.kernels import ngram
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.ngram import ngram_kernel
from rankwise.model_selection import leave_group_out_predict, leave_pair_out
from rankwise.persistence import load, save
from tests.ranker_cases import kernel_rankers

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abcd"), size=RNG.integers(3, 12))) for _ in range(24)]
Y = np.array([word.count("a") - word.count("b") for word in WORDS], dtype=float)
GROUPS = np.repeat(np.arange(4), 6)
VIEWS = [View(kernel="ngram", kernel_params={"ngram_range": (n, 2)}) for n in (1, 2)]


def tanimoto(one, other, shortest, longest):
    sets = [
        {text[k : k + n] for n in range(shortest, longest + 1) for k in range(len(text) - n + 1)}
        for text in (one, other)
    ]
    union = sets[0] | sets[1]
    return len(sets[0] & sets[1]) / len(union) if union else 0.0


@given(
    st.lists(st.text("abß\n ", max_size=6), min_size=1, max_size=5),
    st.lists(st.text("abß\n ", max_size=6), min_size=1, max_size=4),
    st.sampled_from([(1, 1), (1, 3), (2, 3)]),
    st.sampled_from([0.0, 0.25]),
)
def test_ngram_kernel_is_tanimoto_of_sets_mixed_with_a_constant(texts, others, sizes, shared):
    truth = [[tanimoto(one, other, *sizes) for other in others] for one in texts]
    K = ngram_kernel(texts, others, sizes, shared)
    np.testing.assert_allclose(K, (1 - shared) * np.array(truth) + shared, rtol=1e-12)
    own = ngram_kernel(texts, None, sizes, shared)
    np.testing.assert_allclose(own, ngram_kernel(texts, texts, sizes, shared), rtol=1e-12)
    assert np.linalg.eigvalsh(own)[0] > -1e-9


@kernel_rankers(VIEWS, kernel="ngram")
def test_every_ranker_learns_from_texts_as_from_their_kernel_matrix(model, tmp_path):
    pd = pytest.importorskip("pandas")
    model.fit(WORDS, Y, GROUPS)
    assert model.score(WORDS, Y, GROUPS) > 0.8
    scores = model.predict(["aab", "bbb", "aab"])
    assert scores[0] > scores[1]
    assert scores[0] == scores[2]
    for texts in (np.array(WORDS), pd.Series(WORDS), np.array(WORDS, dtype=object)[:, None]):
        again = clone(model).fit(texts, Y, GROUPS)
        np.testing.assert_array_equal(again.predict(texts), model.predict(WORDS))
    save(model, tmp_path / "model.rw")
    np.testing.assert_array_equal(load(tmp_path / "model.rw").predict(WORDS), model.predict(WORDS))


def test_a_kernel_function_gets_the_objects_themselves():
    graphs = [{"nodes": set(word), "size": len(word)} for word in WORDS]

    def common(one, other):
        return float(len(one["nodes"] & other["nodes"]))

    K = np.array([[common(one, other) for other in graphs] for one in graphs])
    model = RankRLS(kernel=common).fit(graphs, Y, GROUPS)
    truth = RankRLS(kernel="precomputed").fit(K, Y, GROUPS)
    np.testing.assert_allclose(model.predict(graphs), truth.predict(K), rtol=1e-10)
    held_out = leave_group_out_predict(RankRLS(kernel=common), graphs, Y, GROUPS)
    np.testing.assert_allclose(
        held_out, leave_group_out_predict(RankRLS(kernel="precomputed"), K, Y, GROUPS), rtol=1e-8
    )


def test_lists_of_different_lengths_are_objects():
    lists = [list(range(len(word))) for word in WORDS]
    model = RankRLS(kernel=lambda one, other: float(min(len(one), len(other))))
    lengths = np.array([len(word) for word in WORDS], dtype=float)
    assert model.fit(lists, lengths).score(lists, lengths) > 0.99


def test_hold_outs_of_texts_equal_refits():
    model = RankRLS(kernel="ngram", alpha=0.01)
    held_out = leave_group_out_predict(model, WORDS, Y, GROUPS)
    for group in range(4):
        rest = np.flatnonzero(group != GROUPS)
        left = np.flatnonzero(group == GROUPS)
        refit = model.fit([WORDS[k] for k in rest], Y[rest], GROUPS[rest])
        scores = refit.predict([WORDS[k] for k in left])
        np.testing.assert_allclose(np.diff(held_out[left]), np.diff(scores), rtol=1e-7, atol=1e-10)
    K = Kernel("ngram").matrix(np.array(WORDS, dtype=object)[:, None])
    pairs = leave_pair_out(model, WORDS, Y)
    truth = leave_pair_out(RankRLS(kernel="precomputed", alpha=0.01), K, Y)
    np.testing.assert_allclose(pairs.differences, truth.differences, rtol=1e-8, atol=1e-10)


def test_labels_and_both_sides_of_a_table_are_learned_from_texts(tmp_path):
    labels = RNG.normal(size=(24, 3)) + np.array([0, 1, 2])
    model = LabelRankerCV(kernel="ngram").fit(WORDS, labels)
    assert model.predict(WORDS[:2]).shape == (2, 3)
    columns = ["aa", "bb", "ca", "dd", "ab"]
    table = np.array([[len(set(w) & set(c)) for c in columns] for w in WORDS], dtype=float)
    search = ConditionalRankRLSCV(
        row_kernel="ngram",
        column_kernel="ngram",
        row_kernel_params={"shared": 0.2, "ngram_range": (1, 1)},
        leave="both",
    ).fit(WORDS, columns, table)
    assert search.best_score_ < 0.3
    save(search, tmp_path / "table.rw")
    again = load(tmp_path / "table.rw").predict(["abcd"], ["cd", "aa"])
    np.testing.assert_array_equal(again, search.predict(["abcd"], ["cd", "aa"]))


@pytest.mark.parametrize(
    "params, message",
    [
        ({"ngram_range": (2, 1)}, "ngram_range"),
        ({"ngram_range": 3}, "ngram_range"),
        ({"shared": 1.0}, "shared"),
        ({"width": 2}, "width"),
    ],
)
def test_parameters_of_the_ngram_kernel_are_checked(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RankRLS(kernel="ngram", kernel_params=params).fit(WORDS, Y, GROUPS)


def test_numbers_and_missing_texts_are_refused():
    with pytest.raises(ValueError, match="texts"):
        RankRLS(kernel="ngram").fit(np.eye(24), Y, GROUPS)
    with pytest.raises(ValueError, match="row 3"):
        RankRLS(kernel="ngram").fit([*WORDS[:3], None, *WORDS[4:]], Y, GROUPS)


def test_one_matrix_of_similarities_is_in_memory_at_a_time(monkeypatch):
    """Its values are scaled in place."""
    monkeypatch.setattr(ngram, "PRODUCT_ENTRIES", 2**14)  # rows of few texts at a time
    texts = [f"{number * 7919 % 8192:013b}" for number in range(1000)]
    ngram_kernel(texts[:2])  # imports
    tracemalloc.start()
    try:
        similarity = ngram_kernel(texts, shared=0.1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.8 * similarity.nbytes
