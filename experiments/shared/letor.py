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
    parts = [read_letor(path, n_features=n_features, sparse=False) for path in paths]
    return [
        Fold(
            _join(parts[k], parts[(k + 1) % 5], parts[(k + 2) % 5]),
            parts[(k + 3) % 5],
            parts[(k + 4) % 5],
        )
        for k in range(5)
    ]


def with_labels(folds, relabel):
    """The same folds with labels ``relabel(y)``."""
    return [Fold(*(part._replace(y=relabel(part.y)) for part in fold)) for fold in folds]


def score_test_part(learner, fold, quality, alphas=ALPHAS):
    """Scores of the test part by the model that is best on the validation part, and that model.

    `quality` takes (y, scores of shape (n, n_alphas), groups) to n_alphas numbers, larger is
    better. One path of models serves all alphas.
    """
    X, X_validation, X_test = (_features(part.X, learner.has_constant) for part in fold)
    best, chosen = -np.inf, None
    for candidate in learner.candidates:
        groups = fold.train.groups if learner.uses_groups else None
        path = candidate.path(X, fold.train.y, groups, alphas=alphas)
        found = quality(fold.validation.y, path.predict(X_validation), fold.validation.groups)
        if found.max() > best:
            best, chosen = found.max(), path.model(int(found.argmax()))
    return chosen.predict(X_test), chosen


def _join(*parts):
    return RankingData(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.groups for part in parts]),
    )


def _features(X, has_constant):
    return np.column_stack([X, np.ones(len(X))]) if has_constant else X
