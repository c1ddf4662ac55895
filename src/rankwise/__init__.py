"""rankwise: learning to rank from scores, groups and pairwise preferences.

>>> from rankwise import RankRLS
>>> model = RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30])
>>> model.rank([[0.0], [5.0]])
array([2, 1])
"""

import lazy_loader

__version__ = "0.4.0"

# The stub __init__.pyi lists the public names; each is imported on first use (SPEC 1).
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
