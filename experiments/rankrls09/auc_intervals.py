"""Confidence intervals of an AUC, ours and those of [RankRLS09] Tables 4 and 5."""

import numpy as np

from rankwise.metrics import evaluate

__all__ = ["PUBLISHED_INTERVALS", "auc_interval", "count_apart"]

PUBLISHED_INTERVALS = {  # 95%, lower and upper end, of RankRLS, of RLS, of RankSVM
    "acq": (0.978, 0.983, 0.977, 0.982, 0.977, 0.982),
    "bop": (0.947, 0.985, 0.843, 0.917, 0.949, 0.983),
    "cocoa": (0.891, 0.970, 0.776, 0.899, 0.881, 0.966),
    "coffee": (0.948, 0.990, 0.950, 0.975, 0.939, 0.984),
    "corn": (0.959, 0.982, 0.936, 0.964, 0.956, 0.975),
    "cpi": (0.925, 0.969, 0.555, 0.648, 0.925, 0.969),
    "crude": (0.969, 0.982, 0.969, 0.982, 0.970, 0.983),
    "dlr": (0.961, 0.981, 0.926, 0.965, 0.962, 0.982),
    "earn": (0.993, 0.995, 0.991, 0.994, 0.992, 0.995),
    "gnp": (0.981, 0.993, 0.891, 0.956, 0.980, 0.993),
    "gold": (0.953, 0.986, 0.897, 0.948, 0.940, 0.980),
    "grain": (0.973, 0.985, 0.968, 0.980, 0.974, 0.984),
    "interest": (0.956, 0.974, 0.941, 0.962, 0.960, 0.976),
    "livestock": (0.642, 0.761, 0.578, 0.696, 0.698, 0.784),
    "money-fx": (0.946, 0.962, 0.938, 0.957, 0.952, 0.966),
    "money-supply": (0.930, 0.968, 0.877, 0.937, 0.950, 0.976),
    "nat-gas": (0.933, 0.981, 0.920, 0.962, 0.933, 0.981),
    "oilseed": (0.877, 0.919, 0.783, 0.849, 0.873, 0.918),
    "reserves": (0.908, 0.977, 0.458, 0.564, 0.902, 0.938),
    "ship": (0.934, 0.963, 0.907, 0.942, 0.939, 0.964),
    "soybean": (0.839, 0.913, 0.757, 0.853, 0.848, 0.916),
    "sugar": (0.979, 0.991, 0.952, 0.976, 0.970, 0.985),
    "trade": (0.970, 0.986, 0.960, 0.977, 0.976, 0.988),
    "veg-oil": (0.865, 0.914, 0.656, 0.739, 0.818, 0.888),
    "wheat": (0.978, 0.990, 0.969, 0.983, 0.978, 0.989),
}


def auc_interval(y, scores):
    """AUC with its 95% interval (DeLong) from the library: value, lower and upper end."""
    (row,) = evaluate(y, scores, None, ["auc"]).rows
    return row.mean, row.low, row.high


def count_apart(first, second):
    """In how many rows the first interval lies above the second, in how many below."""
    first = np.asarray(first)
    second = np.asarray(second)
    return int(np.sum(first[:, 0] > second[:, 1])), int(np.sum(first[:, 1] < second[:, 0]))
