"""Features and parameters of a ranker that is trained on chunks of rows, for `partial_fit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from numpy.typing import ArrayLike

from rankwise.arrays import MatrixLike, RandomState
from rankwise.kernels.basis import basis_map
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap
from rankwise.kernels.kernel import Kernel, KernelName
from rankwise.kernels.solver_input import has_basis


class ChunkLearner(Protocol):
    """Parameters of a ranker that is trained on chunks."""

    kernel: KernelName
    n_basis: int | None
    basis: str | ArrayLike
    random_state: RandomState

    def make_kernel(self) -> Kernel:
        """The kernel, checked."""
        ...


def learns_in_chunks(model: ChunkLearner) -> bool:
    """True if the features do not depend on later chunks; otherwise raises an AttributeError."""
    is_linear = isinstance(model.kernel, str) and model.kernel == "linear"
    is_precomputed = isinstance(model.kernel, str) and model.kernel == "precomputed"
    is_on_basis = has_basis(model.n_basis, model.basis)
    features_are_columns = is_linear and not is_on_basis
    features_are_basis = is_on_basis and not is_linear and not is_precomputed
    if not features_are_columns and not features_are_basis:
        raise AttributeError(  # which `available_if` expects of a method that is not available
            "partial_fit needs features that do not change from chunk to chunk, but kernel="
            f"{model.kernel!r}, n_basis={model.n_basis!r}; use kernel='linear' without a basis, or "
            "a kernel other than 'precomputed' with basis points."
        )
    return True


def make_chunk_features(model: ChunkLearner, first_chunk: MatrixLike) -> FeatureMap:
    """Features of all chunks: the columns, or a basis chosen from the first chunk."""
    kernel = model.make_kernel()
    if kernel.is_linear:
        return ColumnFeatures(None, first_chunk.shape[1])
    return basis_map(kernel, first_chunk, model.n_basis, model.basis, model.random_state)


def check_same_parameters(earlier: Mapping[str, object], current: Mapping[str, object]) -> None:
    """Raise an error if a parameter has changed since the first chunk."""
    for name, value in current.items():
        if value != earlier[name]:
            raise ValueError(
                f"{name} is {value!r} but was {earlier[name]!r} in the chunks before; only "
                "alpha may change between chunks. Train a clone of the model instead."
            )
