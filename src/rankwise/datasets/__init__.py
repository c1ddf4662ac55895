"""Read, write and make ranking data.

>>> from rankwise.datasets import make_ranking
>>> X, y, groups = make_ranking(n_queries=2, n_documents=3, random_state=0)[:3]
>>> X.shape, sorted(groups.tolist())
((6, 10), [0, 0, 0, 1, 1, 1])
"""

from rankwise.datasets.comparisons import pairs_from_frame, read_pairs
from rankwise.datasets.letor import read_letor
from rankwise.datasets.letor_groups import read_group_sizes
from rankwise.datasets.letor_writer import write_letor
from rankwise.datasets.pair_data import PairData
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.ranking_reader import read_ranking
from rankwise.datasets.score_files import read_scores, write_scores, write_table_with_scores
from rankwise.datasets.synthetic import RankingProblem, make_ranking
from rankwise.datasets.teams import Teams
from rankwise.datasets.trec import TrecRun, read_qrels, read_trec_run, write_qrels, write_trec_run
from rankwise.groups import groups_from_sizes

__all__ = [
    "PairData",
    "RankingData",
    "RankingProblem",
    "Teams",
    "TrecRun",
    "groups_from_sizes",
    "make_ranking",
    "pairs_from_frame",
    "read_group_sizes",
    "read_letor",
    "read_pairs",
    "read_qrels",
    "read_ranking",
    "read_scores",
    "read_trec_run",
    "write_letor",
    "write_qrels",
    "write_scores",
    "write_table_with_scores",
    "write_trec_run",
]
