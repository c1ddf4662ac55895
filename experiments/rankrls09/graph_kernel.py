"""Graph kernels by a kernel function of objects: [RankRLS09] section 5.1, [CoRankRLS10] section 6.

    python -m experiments.rankrls09.graph_kernel [--train 100]

The papers compare parses by a graph kernel (Pahikkala et al. 2006): pairs of labels that a walk
joins, in both graphs. The parses are not available to us. What the data allow:

* The parse sample holds a sparse vector for each parse, whose features have numbers and no names,
  so no graph of words and links can be made of it. Its values are multiples of 1/4, like weights
  of walks, and the inner product of two vectors is probably the graph kernel itself. Parses are
  given here as dicts, one feature a key, to a kernel function.
* BioInfer's sentences are there as text with proteins and interactions, without parses. So graphs
  are made of words and the links between neighbors, one for each pair of proteins of a sentence,
  and pairs that interact have to come first. The walk kernel of the papers compares them.

Sentences are lists. Alpha is chosen by leaving out sentences, the error is that of test sentences.
The last rows have the scores of half of the training sentences, as [CoRankRLS10] has, with views of
20 random basis graphs.
"""

import functools
import gzip
import itertools
import re
import warnings
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy.stats import wilcoxon

from experiments.rankrls09.parses import read_parses, standard_error
from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import CoRankRLSCV, RankRLSCV, RankSVMCV, View
from rankwise.metrics import disagreement_error

MOST_PAIRS = 10  # of proteins in a sentence
DECAY = 0.5
N_BASIS = 20
ALPHAS = 2.0 ** np.arange(-24, 9, 2)
LEARNERS = {
    "RankRLS (20)": functools.partial(RankRLSCV, cost="sign"),
    "RankRLS (21)": functools.partial(RankRLSCV, ties="exclude"),
    "RankRLS (22)": functools.partial(RankRLSCV, cost="relative"),
    "RankSVM": functools.partial(RankSVMCV, cv=5),
}


class Lists(NamedTuple):
    """Objects of any kind, their scores and sentences."""

    objects: list
    y: np.ndarray
    groups: np.ndarray


class Graph:
    """Labels of the nodes, and ``L (I − decay A)⁻¹ Lᵀ``: the walks that join two labels."""

    def __init__(self, labels, A):
        names = sorted(set(labels))
        L = np.array([[label == name for label in labels] for name in names], dtype=float)
        walks = np.linalg.inv(np.eye(len(A)) - DECAY * A)
        self.place = {name: k for k, name in enumerate(names)}
        self.walks = L @ walks @ L.T
        self.counts = L @ L.T


@functools.cache
def share_walks(first_graph, second_graph):
    """The walk kernel: label pairs that walks join, in both graphs."""
    return _compare(first_graph, second_graph, "walks")


@functools.cache
def share_words(first_graph, second_graph):
    """The same without links: labels in both graphs."""
    return _compare(first_graph, second_graph, "counts")


def _compare(first_graph, second_graph, name):
    common = first_graph.place.keys() & second_graph.place.keys()
    ours = getattr(first_graph, name)
    theirs = getattr(second_graph, name)
    i, j = ([graph.place[label] for label in common] for graph in (first_graph, second_graph))
    value = np.vdot(ours[np.ix_(i, i)], theirs[np.ix_(j, j)])
    return float(value / (np.linalg.norm(ours) * np.linalg.norm(theirs)))


def share_features(first, second):
    """Inner product of parses, dicts of features."""
    return sum(first[key] * second[key] for key in first.keys() & second.keys())


def share_features_normalized(first, second):
    """The same of vectors of length 1."""
    squares = share_features(first, first) * share_features(second, second)
    return share_features(first, second) / squares**0.5


def read_parse_lists(data):
    """The parse sample, a dict for each parse."""
    for lists in read_parses(data):
        rows = [lists.X[[k]] for k in range(len(lists.y))]
        dicts = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]
        yield Lists(dicts, lists.y, lists.groups)


def read_sentences(data):
    """Graphs of sentences with some pairs of proteins that interact and some that do not."""
    names = [f"bioinfer_ppi/BioInfer-{split}.xml.gz" for split in ("train", "test")]
    for path in find_data(data, *names):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for sentence in ElementTree.parse(file).iter("sentence"):
                pairs = list(itertools.combinations(sentence.iter("entity"), 2))
                interactions = {
                    frozenset((i.get("e1"), i.get("e2"))) for i in sentence.iter("interaction")
                }
                y = [float({a.get("id"), b.get("id")} in interactions) for a, b in pairs]
                if len(pairs) <= MOST_PAIRS and 0 < sum(y) < len(y):
                    yield [make_graph(sentence, *pair) for pair in pairs], y


def character_spans(entity):
    """First and last character of each piece of an entity, such as "3-7,12-15"."""
    spans = []
    for span in entity.get("charOffset").split(","):
        start, end = span.split("-")
        spans.append((int(start), int(end)))
    return spans


def make_graph(sentence, first, second):
    """Words in their order; the two proteins, and each word before, between or after them."""
    spans_of_proteins = [character_spans(first), character_spans(second)]
    protein_starts = sorted(spans[0][0] for spans in spans_of_proteins)
    other_starts = {
        character_spans(entity)[0][0]
        for entity in sentence.iter("entity")
        if entity not in (first, second)
    }
    labels = []
    for word in re.finditer(r"\w+|[^\w\s]", sentence.get("text")):
        position = word.start()
        is_protein = any(
            start <= position <= end for spans in spans_of_proteins for start, end in spans
        )
        if is_protein:
            labels.append("PROTEIN")
            continue
        text = word[0].lower()
        if position in other_starts:
            text = "OTHER"
        n_proteins_before = sum(position > start for start in protein_starts)
        labels.append(f"{text} {n_proteins_before}")
    return Graph(labels, np.eye(len(labels), k=1))


def draw_sentences(data, n_train):
    """Training and test sentences, drawn once."""
    sentences = list(read_sentences(data))
    order = np.random.default_rng(0).permutation(len(sentences))
    for numbers in (order[:n_train], order[n_train : 2 * n_train]):
        sizes = [len(sentences[k][1]) for k in numbers]
        objects = [graph for k in numbers for graph in sentences[k][0]]
        y = np.concatenate([sentences[k][1] for k in numbers])
        yield Lists(objects, y, np.repeat(np.arange(len(numbers)), sizes))


def errors_of(model, train, test):
    """Disagreement error of each test sentence that has pairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an alpha at the end of the list
        model.fit(train.objects, train.y, train.groups)
    errors = disagreement_error(
        test.y, model.predict(test.objects), test.groups, undefined="nan", per_group=True
    )
    return errors[~np.isnan(errors)]


def with_half(train, kernel):
    """Name, model and lists of those who know the scores of half of the sentences."""
    rng = np.random.default_rng(1)
    names = np.unique(train.groups)
    is_scored = np.isin(train.groups, rng.permutation(names)[: len(names) // 2])
    rows = np.flatnonzero(is_scored)
    scored = Lists([train.objects[k] for k in rows], train.y[rows], train.groups[rows])
    drawn = rng.choice(len(train.y), size=2 * N_BASIS, replace=False)
    views = [View(kernel=kernel, basis=half) for half in np.split(drawn, 2)]
    half = train._replace(y=np.where(is_scored, train.y, np.nan))
    yield "half scored: RankRLS (21)", RankRLSCV(ALPHAS, kernel=kernel, ties="exclude"), scored
    for name, nus in (("ν = 0", (0.0,)), ("agreeing", (0.01, 0.1, 1.0, 10.0))):
        model = CoRankRLSCV(ALPHAS, nus=nus, views=views, ties="exclude", cv=5)
        yield f"half scored: Co-RankRLS, {name}", model, half


def print_errors(title, train, test, kernels):
    """A row for each learner, a column for each kernel function."""
    errors_of_models = {}
    for kernel in kernels.values():
        runs = [(name, make(ALPHAS, kernel=kernel), train) for name, make in LEARNERS.items()]
        for name, model, training in [*runs, *with_half(train, kernel)]:
            errors_of_models.setdefault(name, []).append(errors_of(model, training, test))
    rows = [
        [
            name,
            *(f"{e.mean():.3f} ± {standard_error(e):.3f}" for e in errors),
            f"{wilcoxon(*errors).pvalue:.2g}" if np.any(errors[0] != errors[1]) else None,
        ]
        for name, errors in errors_of_models.items()
    ]
    n_train, n_test = (len(np.unique(lists.groups)) for lists in (train, test))
    sizes = (
        f"{n_train} sentences ({len(train.y)} objects) to train, {n_test} ({len(test.y)}) to test"
    )
    print_table(f"{title}: {sizes}", ["", *kernels, "p"], rows)


def main(argv=None):
    """Print both tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--train", type=int, default=100, help="sentences of BioInfer")
    options = parser.parse_args(argv)
    features = {"inner product": share_features, "normalized": share_features_normalized}
    print_errors("Parse sample", *read_parse_lists(options.data), features)
    words = {"words alone": share_words, "words and links": share_walks}
    print_errors("Pairs of proteins", *draw_sentences(options.data, options.train), words)
    print_notes(
        "Disagreement errors, mean ± standard error over test sentences; p of the two columns by "
        "Wilcoxon's signed-rank test over sentences.",
        "Published on parses: RankRLS .225 (20), .222 (21), .216 (22), RankSVM .214 with 500 + 600 "
        "sentences; half scored: RankRLS .348, Co-RankRLS .326. Not comparable: another task or "
        "a small sample.",
        "Where scores are 0 and 1, as of pairs of proteins, costs (20), (21) and (22) are one.",
    )


if __name__ == "__main__":
    record(main)
