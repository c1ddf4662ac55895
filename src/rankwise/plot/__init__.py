"""Pictures of rankers, in the style of scikit-learn's displays.

A display holds numbers; ``plot`` draws them with matplotlib (extra ``plot``), which is imported
only then. The class methods ``from_...`` compute the numbers and draw them.
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
