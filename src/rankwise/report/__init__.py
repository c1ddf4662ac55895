"""Self-contained pages: how well a ranker orders a data set, and how sure a leaderboard is."""

from rankwise.report.board import board_page
from rankwise.report.page import Page, report

__all__ = ["Page", "board_page", "report"]
