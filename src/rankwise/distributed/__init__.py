"""RankRLS and RankSVM on Dask arrays and data frames that are spread over a cluster.

Requires the extra ``dask`` and is imported on demand. The estimators have the parameters of the
estimators of the same name in `rankwise` and, up to rounding or tolerance, the same coefficients.
`fit` computes on the workers, the client receives sums only, and `predict` is lazy.

>>> import dask.array as da
>>> import numpy as np
>>> from rankwise.distributed import RankRLS
>>> X = da.from_array(np.arange(12.0).reshape(6, 2), chunks=(2, 2))
>>> y = da.from_array(np.array([1.0, 2, 3, 0, 1, 2]), chunks=2)
>>> model = RankRLS(alpha=0.01).fit(X, y, groups=da.from_array(np.repeat([7, 8], 3), chunks=2))
>>> model.predict(X)
dask.array<..., shape=(6,), dtype=float64, chunksize=(2,), chunktype=numpy.ndarray>
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
