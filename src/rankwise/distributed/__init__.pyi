from .dask_rankers import RankRLS as RankRLS
from .dask_rankers import RankSVM as RankSVM
from .dask_search import RankRLSCV as RankRLSCV
from .parquet_training import train_parquet as train_parquet

__all__: list[str]
