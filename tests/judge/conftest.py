"""Fixtures of the tests of `rankwise judge`."""

from __future__ import annotations

import pytest

from rankwise.judge.item_set import ItemSet
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import AnswerStore
from tests.judge.data import FIVE


@pytest.fixture
def store(tmp_path):
    store = AnswerStore(tmp_path / "answers.db", FIVE)
    yield store
    store.close()


@pytest.fixture
def session(store):
    session = JudgingSession(ItemSet(FIVE), store, random_state=0)
    yield session
    session.close()
