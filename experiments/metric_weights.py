"""Weights of AutoRanker's stack for the requested metric, next to weights that count pairs.

    python -m experiments.metric_weights --data DIR [--only ohsumed,mq2008] [--scoring ndcg@10]

The five public sets and splits of `experiments.quality`. The scores of Jester and of California
housing are no grades: for this table they are replaced by their quintiles in the training data, 0
to 4. "pairs" is AutoRanker with the weights that count pairs only, "metric" with the weights that
leave-group-out selects for the metric. Both have the same members.
"""

import time
from unittest.mock import patch

import numpy as np
from scipy.stats import t as student

from experiments.quality import SETS
from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import AutoRanker
from rankwise.auto import stacking
from rankwise.metrics import get_metric

WITHOUT_GRADES = ("jester", "cadata")
STRENGTHS = {"pairs": (), "metric": stacking.STRENGTHS}


def as_grades(y, y_train):
    """Number of quintiles of the training data below each value."""
    return np.searchsorted(np.quantile(y_train, [0.2, 0.4, 0.6, 0.8]), y).astype(float)


def measure(split, scoring, strengths):
    """The metric and the error in each test group, and the seconds of the fit."""
    is_one_list = len(np.unique(split.groups)) == 1
    start = time.process_time()
    model = AutoRanker(scoring=scoring)
    with patch.object(stacking, "STRENGTHS", strengths):
        model.fit(split.X, split.y, None if is_one_list else split.groups)
    seconds = time.process_time() - start
    scores = model.predict(split.X_test, None if is_one_list else split.groups_test)
    values = [
        get_metric(name)(split.y_test, scores, split.groups_test, per_group=True)
        for name in (scoring, "disagreement")
    ]
    return *values, seconds


def compare_weights(name, options):
    """A row of the table for one set."""
    results = {kind: [] for kind in STRENGTHS}
    for split in SETS[name](options.data):
        if name in WITHOUT_GRADES:
            grades = as_grades(split.y, split.y)
            split = split._replace(y=grades, y_test=as_grades(split.y_test, split.y))
        for kind, strengths in STRENGTHS.items():
            results[kind].append(measure(split, options.scoring, strengths))
    values = {kind: np.concatenate([r[0] for r in rows]) for kind, rows in results.items()}
    errors = {kind: np.concatenate([r[1] for r in rows]) for kind, rows in results.items()}
    seconds = {kind: sum(r[2] for r in rows) for kind, rows in results.items()}
    gains = values["metric"] - values["pairs"]
    gains = gains[~np.isnan(gains)]
    half_width = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return [
        name,
        f"{np.nanmean(values['pairs']):.4f}",
        f"{np.nanmean(values['metric']):.4f}",
        f"{gains.mean():+.4f} ± {half_width:.4f}",
        f"{np.nanmean(errors['pairs']):.4f}",
        f"{np.nanmean(errors['metric']):.4f}",
        f"{seconds['metric'] / seconds['pairs']:.2f}",
    ]


def main(arguments=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--scoring", default="ndcg@10")
    options = parser.parse_args(arguments)
    rows = [compare_weights(name, options) for name in options.only]
    header = ["set", "pairs", "metric", "difference", "error, pairs", "error, metric", "time ratio"]
    print_table(f"{options.scoring} on test groups", header, rows)
    print_notes(
        "difference: mean over test groups with its 95% interval (Student's t).",
        "error: share of wrong pairs. time ratio: processor time of both fits, metric / pairs.",
    )


if __name__ == "__main__":
    record(main)
