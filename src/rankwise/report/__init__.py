"""Self-contained pages: how well a ranker orders a data set, and how sure a leaderboard is."""

from rankwise.report.board_page import make_board, write_board
from rankwise.report.page import make_report, write_report
from rankwise.report.table_page import write_table_report

__all__ = ["make_board", "make_report", "write_board", "write_report", "write_table_report"]
