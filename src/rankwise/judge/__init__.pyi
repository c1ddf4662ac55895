from .item_set import Item as Item
from .item_set import ItemSet as ItemSet
from .item_set import read_items as read_items
from .session import JudgingSession as JudgingSession
from .storage import Answer as Answer
from .storage import AnswerStore as AnswerStore
from .storage import Question as Question
from .web_app import Address as Address
from .web_app import serve as serve

__all__: list[str]
