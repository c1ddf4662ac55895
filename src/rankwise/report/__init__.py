"""One self-contained page that shows how well a ranker orders a data set."""

from rankwise.report.page import make_report, write_report
from rankwise.report.table_page import write_table_report

__all__ = ["make_report", "write_report", "write_table_report"]
