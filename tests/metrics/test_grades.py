"""One largest grade and one choice of default metrics, in the command and in Python."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import rankwise
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.metrics import evaluate, expected_reciprocal_rank, ndcg
from rankwise.metrics.grades import LARGEST_GRADE, are_grades, default_metrics

PACKAGE = Path(rankwise.__file__).parent
RANKINGS = {
    "grades": [2.0, 0, 1, 4],
    "the largest grade": [0.0, 1, 2, LARGEST_GRADE],
    "above the largest grade": [0.0, 1, 2, LARGEST_GRADE + 1],
    "ratings from 1 to 5": [5.0, 1, 3, 2],
    "prices": [1000.0, 250, 12.5, 99],
    "negative": [-1.0, 2, 0, 1],
    "decimals": [0.5, 1, 2, 0],
}


@pytest.mark.parametrize("name", RANKINGS)
def test_the_command_and_evaluate_choose_the_same_metrics(name):
    models = pytest.importorskip("rankwise.cli.model_options")
    y = np.array(RANKINGS[name])
    names = [metric.name for metric in models.metrics_for(None, y)]
    assert [row.name for row in evaluate(y, [4, 3, 2, 1])] == names


def test_grades_end_at_32():
    assert LARGEST_GRADE == 32
    assert are_grades(np.array([0.0, 32.0, np.nan]))
    assert not are_grades(np.array([0.0, 33.0]))
    assert not are_grades(np.array([0.5, 1.0]))
    assert not are_grades(np.array([-1.0, 1.0]))


def test_map_is_a_default_only_where_orders_differ_in_it():
    graded = np.array([2.0, 0, 1])
    assert default_metrics(graded) == ["ndcg@10", "map", "disagreement", "tau"]
    assert default_metrics(graded, has_weights=True) == ["ndcg@10", "disagreement", "tau"]
    assert default_metrics(graded + 1) == ["ndcg@10", "disagreement", "tau"]
    assert default_metrics(graded * 100) == ["disagreement", "tau"]


@pytest.mark.parametrize("metric", [ndcg, expected_reciprocal_rank])
def test_the_exponential_gain_takes_grades_up_to_the_largest(metric):
    assert metric([LARGEST_GRADE, 0], [2, 1]) == pytest.approx(1, abs=1e-6)
    with pytest.raises(ValueError, match="gain"):
        metric([LARGEST_GRADE + 1, 0], [2, 1])


def test_the_default_confidence_has_one_definition():
    name = r"\s*\w*(confidence|level)\w*"
    defined = re.compile(rf"{name}\s*(:\s*float)?\s*=\s*0\.95", re.IGNORECASE)
    places = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if defined.match(line)
    ]
    assert places == ["defaults.py: DEFAULT_CONFIDENCE = 0.95"]
    assert DEFAULT_CONFIDENCE == 0.95
