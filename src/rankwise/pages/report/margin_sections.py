"""The margins of a report: differences of predicted scores, and predicted probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array
from rankwise.formatting import JsonObject
from rankwise.pages.page_values import short_numbers
from rankwise.pages.report.report_data import ScoredItems
from rankwise.uncertainty import CalibratedRanker
from rankwise.uncertainty.held_out_pairs import draw_pairs

MAX_PAIRS = 1_000_000
N_BINS = 60
TAIL = 0.0025  # share of the pairs in the outermost bins on each side


@dataclass(frozen=True, eq=False)
class Margins:
    """Differences f_i − f_j over pairs of a group with y_i > y_j.

    Attributes
    ----------
    n_pairs : int
        Number of all such pairs.
    differences : ndarray of shape (n_sampled,)
        Differences of all pairs, or of a random sample.
    n_wrong_pairs, n_tied_pairs : int
        Number of all pairs with a negative difference, and with the difference 0.
    """

    n_pairs: int
    differences: Array
    n_wrong_pairs: int
    n_tied_pairs: int

    @property
    def is_sample(self) -> bool:
        """Whether the differences are those of a sample of the pairs."""
        return len(self.differences) < self.n_pairs

    def describe(self) -> JsonObject:
        """A histogram of the differences, with the exact numbers of wrong and tied pairs."""
        if not self.n_pairs:
            return {"total": 0}
        is_zero = self.differences == 0
        bin_edges = _make_bin_edges(self.differences)
        # The outermost bins contain all larger differences; zeros are counted by themselves.
        clipped = np.clip(self.differences[~is_zero], bin_edges[0], bin_edges[-1])
        n_pairs_per_bin, _ = np.histogram(clipped, bin_edges)
        (median,) = short_numbers(np.median(self.differences))
        return {
            "total": self.n_pairs,
            "used": len(self.differences),
            "edges": short_numbers(bin_edges),
            "counts": n_pairs_per_bin.tolist(),
            "zero": int(is_zero.sum()),
            "wrong": self.n_wrong_pairs,
            "tied": self.n_tied_pairs,
            "median": median,
        }


def find_margins(scored: ScoredItems, rng: np.random.Generator) -> Margins:
    """Differences of the predicted scores of pairs, at most `MAX_PAIRS` of them."""
    n_pairs = int(scored.counts.different_y.sum())
    differences = np.empty(0)
    if n_pairs:
        # all pairs, or MAX_PAIRS of them at random
        better, worse = draw_pairs(scored.y, scored.groups.codes, MAX_PAIRS, rng)
        differences = scored.scores[better] - scored.scores[worse]
    n_wrong_pairs = int(scored.counts.discordant.sum())
    n_tied_pairs = int(scored.counts.tied_scores.sum())
    return Margins(n_pairs, differences, n_wrong_pairs, n_tied_pairs)


def _make_bin_edges(differences: Array) -> Array:
    """Edges of bins of equal width; 0 is an edge."""
    low, high = np.quantile(differences, [TAIL, 1 - TAIL])
    low = min(float(low), 0.0)
    high = max(float(high), 0.0)
    bin_width = (high - low) / (N_BINS - 2)  # rounding both ends to edges adds up to two bins
    if bin_width == 0:  # almost all differences are 0
        bin_width = float(np.abs(differences).max())
    if bin_width == 0:  # all differences are 0
        bin_width = 1.0
    # Edges are multiples of the width, so that 0 is an edge, with a bin on each side.
    first_multiple = min(np.floor(low / bin_width), -1)
    last_multiple = max(np.ceil(high / bin_width), 1)
    return np.asarray(np.arange(first_multiple, last_multiple + 1) * bin_width)


def describe_reliability(ranker: CalibratedRanker | None) -> JsonObject | None:
    """Predicted probabilities and observed shares of held-out pairs; None without probabilities."""
    if ranker is None:
        return None
    bins = ranker.reliability()
    (log_loss,) = short_numbers(ranker.log_loss_)
    return {
        "predicted": short_numbers(bins.predicted),
        "observed": short_numbers(bins.observed),
        "pairs": int(bins.n_pairs.sum()),
        "loss": log_loss,
    }
