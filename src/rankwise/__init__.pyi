"""The public names of rankwise; `__init__.py` imports each on first use."""

from . import datasets as datasets
from . import distributed as distributed
from . import graphs as graphs
from . import inspection as inspection
from . import judge as judge
from . import leaderboard as leaderboard
from . import losses as losses
from . import metrics as metrics
from . import model_selection as model_selection
from . import persistence as persistence
from . import plot as plot
from . import preprocessing as preprocessing
from . import report as report
from . import uncertainty as uncertainty
from .auto.auto_ranker import AutoRanker as AutoRanker
from .dyadic.conditional_rank_rls import ConditionalRankRLS as ConditionalRankRLS
from .dyadic.conditional_rank_rls import ConditionalRankRLSCV as ConditionalRankRLSCV
from .dyadic.label_ranker import LabelRanker as LabelRanker
from .dyadic.label_ranker import LabelRankerCV as LabelRankerCV
from .graphs import PairGraph as PairGraph
from .graphs import PreferenceGraph as PreferenceGraph
from .graphs import ScoreGraph as ScoreGraph
from .graphs import SurvivalGraph as SurvivalGraph
from .graphs.supervision import make_target as make_target
from .kernels.views import View as View
from .leaderboard import rate as rate
from .leaderboard import rate_scores as rate_scores
from .preprocessing import GroupScaler as GroupScaler
from .preprocessing import HingeFeatures as HingeFeatures
from .preprocessing import TableVectorizer as TableVectorizer
from .rankers.co_rank_rls import CoRankRLS as CoRankRLS
from .rankers.co_rank_rls import CoRankRLSPath as CoRankRLSPath
from .rankers.co_rank_rls_cv import CoRankRLSCV as CoRankRLSCV
from .rankers.out_of_core import SufficientStatistics as SufficientStatistics
from .rankers.pairwise_ranker import PairwisePath as PairwisePath
from .rankers.rank_logistic import RankLogistic as RankLogistic
from .rankers.rank_logistic import RankLogisticCV as RankLogisticCV
from .rankers.rank_rls import RankRLS as RankRLS
from .rankers.rank_rls import RankRLSPath as RankRLSPath
from .rankers.rank_rls_cv import RankRLSCV as RankRLSCV
from .rankers.rank_svm import RankSVM as RankSVM
from .rankers.rank_svm import RankSVMCV as RankSVMCV
from .rankers.ranking_pursuit import RankingPursuit as RankingPursuit
from .rankers.ranking_pursuit_cv import RankingPursuitCV as RankingPursuitCV
from .uncertainty import CalibratedRanker as CalibratedRanker

__version__: str
__all__: list[str]
