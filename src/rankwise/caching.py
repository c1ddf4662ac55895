"""A cached property that takes no lock.

`functools.cached_property` of Python 3.11 holds one lock per property while the value is computed,
for the objects of all threads. A process that is forked while another thread holds that lock waits
for it forever. Python 3.12 removed the lock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T = TypeVar("T")

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # re-exported
else:

    class cached_property(Generic[T]):
        """A property that is computed once for each object and stored in its `__dict__`.

        Two threads that read the property for the first time may both compute the value.
        """

        def __init__(self, function: Callable[[Any], T]) -> None:
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:  # read from the class
                return self
            cache = instance.__dict__  # where Python looks before it calls this method again
            if self.name not in cache:  # a read through super() comes here every time
                cache[self.name] = self.function(instance)
            return cache[self.name]
