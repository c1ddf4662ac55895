"""Transformers in front of a ranker: table vectorizer, scaling inside groups, hinge features."""

from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.preprocessing.table_vectorizer import TableVectorizer

__all__ = ["GroupScaler", "HingeFeatures", "TableVectorizer"]
