"""Features: from items to what a solver sees, and from its solution to scores of new items."""

from rankwise.features.basis import basis_root, check_basis, choose_basis
from rankwise.features.feature_map import (
    FeatureMap,
    FeatureRows,
    Features,
    basis_map,
    explicit_features,
    is_read_once,
    make_features,
    take_columns,
)
from rankwise.features.group_scaling import scale_in_groups, scale_sparse_in_groups, signed_log
from rankwise.features.kernel import Kernel, KernelParameters, center_kernel, set_kernel_tags
from rankwise.features.view import View, check_views, fit_view, view_columns

__all__ = [
    "FeatureMap",
    "FeatureRows",
    "Features",
    "Kernel",
    "KernelParameters",
    "View",
    "basis_map",
    "basis_root",
    "center_kernel",
    "check_basis",
    "check_views",
    "choose_basis",
    "explicit_features",
    "fit_view",
    "is_read_once",
    "make_features",
    "scale_in_groups",
    "scale_sparse_in_groups",
    "set_kernel_tags",
    "signed_log",
    "take_columns",
    "view_columns",
]
