"""Defaults that several packages share; importing this module imports nothing else.

The options of the command have the same defaults, and ``rankwise --help`` should not wait for
NumPy.
"""

#: Confidence of intervals and of ranks.
DEFAULT_CONFIDENCE = 0.95
