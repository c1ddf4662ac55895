"""One self-contained page that shows how well a ranker orders a data set."""

from rankwise.report.page import make_report, write_report

__all__ = ["make_report", "write_report"]
