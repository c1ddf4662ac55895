from .comparisons import pairs_from_frame as pairs_from_frame
from .comparisons import read_pairs as read_pairs
from .group_sizes import groups_from_sizes as groups_from_sizes
from .group_sizes import read_group_sizes as read_group_sizes
from .letor import read_letor as read_letor
from .letor_writer import write_letor as write_letor
from .pair_data import PairData as PairData
from .ranking_data import RankingData as RankingData
from .ranking_reader import read_ranking as read_ranking
from .score_files import read_scores as read_scores
from .score_files import write_scores as write_scores
from .score_files import write_table_with_scores as write_table_with_scores
from .synthetic import RankingProblem as RankingProblem
from .synthetic import make_ranking as make_ranking
from .teams import Teams as Teams
from .trec import TrecRun as TrecRun
from .trec import read_qrels as read_qrels
from .trec import read_trec_run as read_trec_run
from .trec import write_qrels as write_qrels
from .trec import write_trec_run as write_trec_run

__all__: list[str]
