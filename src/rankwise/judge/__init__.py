"""`rankwise judge`: a local page that asks people which of two items is better.

Needs the extra ``judge`` (Starlette, uvicorn). Answers are kept by SQLite.
"""

from rankwise.judge.app import Address, serve
from rankwise.judge.items import Item, ItemSet, read_items
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import Comparison, JudgementStore, Question

__all__ = [
    "Address",
    "Comparison",
    "Item",
    "ItemSet",
    "JudgementStore",
    "JudgingSession",
    "Question",
    "read_items",
    "serve",
]
