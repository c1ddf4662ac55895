"""What type checkers and editors see of the front door; `__init__.py` imports on first use."""

from rankwise import datasets as datasets
from rankwise import inspection as inspection
from rankwise import leaderboard as leaderboard
from rankwise import metrics as metrics
from rankwise import model_selection as model_selection
from rankwise import persistence as persistence
from rankwise import plot as plot
from rankwise import report as report
from rankwise import uncertainty as uncertainty
from rankwise.estimators.auto_ranker import AutoRanker as AutoRanker
from rankwise.estimators.co_rank_rls import CoRankRLS as CoRankRLS
from rankwise.estimators.co_rank_rls import CoRankRLSCV as CoRankRLSCV
from rankwise.estimators.co_rank_rls import CoRankRLSPath as CoRankRLSPath
from rankwise.estimators.columns import Columns as Columns
from rankwise.estimators.conditional_rank_rls import ConditionalRankRLS as ConditionalRankRLS
from rankwise.estimators.conditional_rank_rls import ConditionalRankRLSCV as ConditionalRankRLSCV
from rankwise.estimators.label_ranker import LabelRanker as LabelRanker
from rankwise.estimators.label_ranker import LabelRankerCV as LabelRankerCV
from rankwise.estimators.margin import MarginPath as MarginPath
from rankwise.estimators.margin import RankLogistic as RankLogistic
from rankwise.estimators.margin import RankLogisticCV as RankLogisticCV
from rankwise.estimators.margin import RankSVM as RankSVM
from rankwise.estimators.margin import RankSVMCV as RankSVMCV
from rankwise.estimators.rank_rls import RankRLS as RankRLS
from rankwise.estimators.rank_rls import RankRLSCV as RankRLSCV
from rankwise.estimators.rank_rls import RankRLSPath as RankRLSPath
from rankwise.estimators.ranking_pursuit import RankingPursuit as RankingPursuit
from rankwise.estimators.ranking_pursuit import RankingPursuitCV as RankingPursuitCV
from rankwise.estimators.sums import Sums as Sums
from rankwise.estimators.transformers import GroupScaler as GroupScaler
from rankwise.estimators.transformers import HingeFeatures as HingeFeatures
from rankwise.features.feature_map import View as View
from rankwise.graphs import PairGraph as PairGraph
from rankwise.graphs import PreferenceGraph as PreferenceGraph
from rankwise.graphs import ScoreGraph as ScoreGraph
from rankwise.inputs import make_target as make_target
from rankwise.leaderboard import rate as rate
from rankwise.uncertainty import CalibratedRanker as CalibratedRanker

__version__: str
__all__: list[str]
