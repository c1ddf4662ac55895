"""Read, write and make ranking data.

>>> from rankwise.datasets import make_ranking
>>> X, y, groups = make_ranking(n_queries=2, n_documents=3, random_state=0)[:3]
>>> X.shape, sorted(groups.tolist())
((6, 10), [0, 0, 0, 1, 1, 1])
"""

import lazy_loader

# The stub __init__.pyi lists the public names; each is imported on first use (SPEC 1), so that
# `import rankwise` needs no reader of files.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
