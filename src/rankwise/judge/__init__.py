"""The page of ``rankwise judge``, which asks people which of two items is better.

Needs the extra ``judge`` (Starlette, uvicorn). Answers are stored by SQLite.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
