"""What every search for parameters does once it has found them: stand for its best model."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise.features import KernelParameters

__all__ = ["BestModel"]


class BestModel(KernelParameters):
    """Mixin that predicts by ``best_estimator_`` and shows the attributes of that."""

    shown: ClassVar[tuple[str, ...]]
    """Attributes of the best model that the search has, too."""

    best_estimator_: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items by the model of the best parameters; see ``predict`` of the model."""
        check_is_fitted(self)
        scores: NDArray[Any] = self.best_estimator_.predict(X)
        return scores

    def __getattr__(self, name: str) -> Any:
        if name in type(self).shown and "best_estimator_" in self.__dict__:
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
