"""Read, write and make ranking data.

>>> from rankwise.datasets import make_ranking
>>> X, y, groups = make_ranking(n_queries=2, n_documents=3, random_state=0)[:3]
>>> X.shape, sorted(groups.tolist())
((6, 10), [0, 0, 0, 1, 1, 1])
"""

from rankwise.datasets.any_format import read_ranking
from rankwise.datasets.group_sizes import read_group_sizes, write_group_sizes
from rankwise.datasets.letor import read_letor
from rankwise.datasets.letor_writer import write_letor
from rankwise.datasets.pair_data import PairData
from rankwise.datasets.pairs import pairs_from_frame, read_pairs
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.score_files import read_scores, write_scores, write_table_with_scores
from rankwise.datasets.score_tables import (
    ItemFeatures,
    ScoreTable,
    read_item_features,
    read_score_table,
)
from rankwise.datasets.synthetic import RankingProblem, make_ranking
from rankwise.datasets.tables import RankingTable, read_frame, read_table
from rankwise.groups import groups_from_sizes

__all__ = [
    "ItemFeatures",
    "PairData",
    "RankingData",
    "RankingProblem",
    "RankingTable",
    "ScoreTable",
    "groups_from_sizes",
    "make_ranking",
    "pairs_from_frame",
    "read_frame",
    "read_group_sizes",
    "read_item_features",
    "read_letor",
    "read_pairs",
    "read_ranking",
    "read_score_table",
    "read_scores",
    "read_table",
    "write_group_sizes",
    "write_letor",
    "write_scores",
    "write_table_with_scores",
]
