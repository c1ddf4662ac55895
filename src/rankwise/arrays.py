"""The two kinds of arrays that nearly every module works with.

The shape is in the docstring of the function that takes or returns the array.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
