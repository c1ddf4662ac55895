"""HTML pages in one file: the report of a model, and a leaderboard."""

from rankwise.pages.board.leaderboard_page import board_page
from rankwise.pages.page import Page
from rankwise.pages.report.report_page import report

__all__ = ["Page", "board_page", "report"]
