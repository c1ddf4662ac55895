"""The five folds of the LETOR collections, and choosing a model on the validation part."""

from typing import NamedTuple

import numpy as np

from experiments.shared.command_line import find_data
from rankwise import RankRLS, RankSVM
from rankwise.datasets import RankingData, read_letor

__all__ = ["ALPHAS", "Fold", "Learner", "read_folds", "score_test_part", "with_labels"]

ALPHAS = 2.0 ** np.arange(-20, 11)
"""31 values as in [RankRLS09] section 5, there of λ; ours are relative to the mean over pairs."""

FILES = {
    "ohsumed": ("ohsumed/QueryLevelNorm/S{}.txt.gz", 45),
    "mq2008": ("mq2008/S{}.txt.gz", 46),
}


class Fold(NamedTuple):
    """Data to train on, to choose parameters on and to test on."""

    train: RankingData
    validation: RankingData
    test: RankingData


class Learner(NamedTuple):
    """What competes for one column of a table: the best candidate and alpha on validation wins."""

    name: str
    candidates: tuple[RankRLS | RankSVM, ...]
    uses_groups: bool = True
    has_constant: bool = False


def read_folds(data, dataset):
    """Fold k trains on S(k), S(k+1), S(k+2), validates on S(k+3), tests on S(k+4), cyclically."""
    pattern, n_features = FILES[dataset]
    paths = find_data(data, *(pattern.format(k) for k in range(1, 6)))
    subsets = [read_letor(path, n_features=n_features, sparse=False) for path in paths]  # S1 … S5
    folds = []
    for k in range(5):
        first, second, third, fourth, fifth = subsets[k:] + subsets[:k]
        folds.append(Fold(train=_join(first, second, third), validation=fourth, test=fifth))
    return folds


def with_labels(folds, relabel):
    """The same folds with labels ``relabel(y)``."""
    return [Fold(*(data._replace(y=relabel(data.y)) for data in fold)) for fold in folds]


def score_test_part(learner, fold, quality, alphas=ALPHAS):
    """Scores of the test part by the model that is best on the validation part, and that model.

    `quality` takes (y, scores of shape (n, n_alphas), groups) to n_alphas numbers, larger is
    better. One path of models serves all alphas.
    """
    X_train, X_validation, X_test = (_features(data.X, learner.has_constant) for data in fold)
    groups = None
    if learner.uses_groups:
        groups = fold.train.groups

    best_quality = -np.inf
    best_model = None
    for candidate in learner.candidates:
        path = candidate.path(X_train, fold.train.y, groups, alphas=alphas)
        validation_scores = path.predict(X_validation)  # (n_items, n_alphas)
        qualities = quality(fold.validation.y, validation_scores, fold.validation.groups)
        if qualities.max() > best_quality:
            best_quality = qualities.max()
            best_model = path.model(int(qualities.argmax()))
    return best_model.predict(X_test), best_model


def _join(*subsets):
    """The rows of several subsets as one."""
    return RankingData(
        np.concatenate([subset.X for subset in subsets]),
        np.concatenate([subset.y for subset in subsets]),
        np.concatenate([subset.groups for subset in subsets]),
    )


def _features(X, has_constant):
    """The features, with a column of ones if the learner has a constant."""
    if has_constant:
        return np.column_stack([X, np.ones(len(X))])
    return X
