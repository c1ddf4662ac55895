"""The order of the gallery: from what a newcomer asks first to what few people need."""

from __future__ import annotations

__all__ = ["StoryOrder"]

STORY = [
    "plot_auto_ranker.py",
    "plot_messy_table.py",
    "plot_board.py",
    "plot_score_board.py",
    "plot_ratings_over_time.py",
    "plot_compare_rankers.py",
    "plot_importance.py",
    "plot_calibration.py",
    "plot_best_sets.py",
    "plot_hybrid_search.py",
    "plot_clicks.py",
    "plot_unjudged_documents.py",
    "plot_alpha_path.py",
    "plot_preference_graph.py",
    "plot_label_ranking.py",
    "plot_table.py",
    "plot_survival.py",
    "plot_kernels.py",
    "plot_leave_pair_out.py",
    "plot_pursuit.py",
    "plot_unscored_items.py",
]


class StoryOrder:
    """Place of a script in the story; a script without a place stops the build."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return "StoryOrder"

    def __call__(self, name: str) -> int:
        """Where a file comes; the gallery sorts by it."""
        return STORY.index(name)
