from .dask_rankers import RankRLS as RankRLS
from .dask_rankers import RankSVM as RankSVM

__all__: list[str]
