"""The kinds of arrays that nearly every module works with.

The shape is in the docstring of the function that takes or returns the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Texts = NDArray[np.object_]  # strings of Python

Labels = NDArray[Any]  # of groups or items: integers or strings
Numbers = NDArray[Any]  # integers or floats, whose type is preserved
AnyArray = NDArray[Any]  # numbers, text, dates or objects
