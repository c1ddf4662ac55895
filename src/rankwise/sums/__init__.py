"""Sums over pairs that grow with the data: the normal equations of RankRLS, a chunk at a time."""

from rankwise.sums.group_sums import PairRule
from rankwise.sums.streaming import ONE_LIST, StreamingSums

__all__ = ["ONE_LIST", "PairRule", "StreamingSums"]
