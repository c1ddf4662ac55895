"""Defaults that several packages share; this module has no imports.

The options of the command have the same defaults, and ``rankwise --help`` should not wait for
NumPy.
"""

#: Confidence of intervals and of ranks.
DEFAULT_CONFIDENCE = 0.95
