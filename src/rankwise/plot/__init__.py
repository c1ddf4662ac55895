"""Displays of rankers, in the style of scikit-learn.

A display stores numbers, and ``plot`` draws them. The class methods ``from_...`` compute and draw
the numbers. matplotlib (extra ``plot``) is imported when a display is drawn.
"""

from rankwise.inspection.feature_effects import FeatureCurve
from rankwise.plot.feature_curves_display import FeatureCurvesDisplay
from rankwise.plot.group_comparison import GroupComparisonDisplay
from rankwise.plot.reliability import ReliabilityDisplay
from rankwise.plot.search_curve import Curve, SearchCurveDisplay

__all__ = [
    "Curve",
    "FeatureCurve",
    "FeatureCurvesDisplay",
    "GroupComparisonDisplay",
    "ReliabilityDisplay",
    "SearchCurveDisplay",
]
