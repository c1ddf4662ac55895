"""Self-contained pages: how well a ranker orders a data set, and how sure a leaderboard is."""

from rankwise.pages.board.leaderboard_page import board_page
from rankwise.pages.page import Page, report

__all__ = ["Page", "board_page", "report"]
