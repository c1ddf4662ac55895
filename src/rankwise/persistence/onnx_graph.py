"""A graph of ONNX operators under construction; all numbers inside are float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.environment import require

ML = "ai.onnx.ml"
OPSETS = {"": 18, ML: 3}  # in place since 2022, so that older runtimes can read the file

IR_VERSION = 8
LARGEST = 2**31 - 2**20  # bytes: the format holds no more in one file


def import_onnx(module: str = "onnx") -> Any:
    """A module of the extra, or the message that says how to get it."""
    return require(module, "export to ONNX")


class Values(NamedTuple):
    """Columns in the graph.

    Attributes
    ----------
    tensors : list of str
        Names of tensors with the rows of the items; side by side they are the columns.
    widths : list of int
        Number of columns of each.
    """

    tensors: list[str]
    widths: list[int]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return sum(self.widths)

    def __add__(self, other: Any) -> Values:
        return Values(self.tensors + other.tensors, self.widths + other.widths)


class Graph:
    """Operators, constants, inputs and at last the model."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._same_group: str | None = None
        self._n_names = 0
        self._n_bytes = 0

    def add_input(self, name: str, kind: str, width: int) -> Values:
        """An input of shape (n_items, width), of kind "float32", "float64" or "text"."""
        kinds = self._onnx.TensorProto
        types = {"float32": kinds.FLOAT, "float64": kinds.DOUBLE, "text": kinds.STRING}
        shape = ["n_items", width]
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, types[kind], shape))
        inner = self.add("Cast", name, to=kinds.DOUBLE) if kind == "float32" else name
        return Values([inner], [width])

    def same_group(self) -> str:
        """A matrix of 0 and 1: whether two items have the same number in the input "groups"."""
        if self._same_group is None:
            helper, kinds = self._onnx.helper, self._onnx.TensorProto
            self._inputs.append(helper.make_tensor_value_info("groups", kinds.INT64, ["n_items"]))
            rows, columns = (self.add("Unsqueeze", "groups", np.array([k])) for k in (1, 0))
            equal = self.add("Equal", rows, columns)
            self._same_group = self.add("Cast", equal, to=kinds.DOUBLE)
        return self._same_group

    @property
    def has_groups(self) -> bool:
        """Whether the graph takes the groups of the items."""
        return self._same_group is not None

    def add_output(self, name: str, tensor: str, shape: Sequence[int], kind: str) -> None:
        """An output of shape (n_items, *shape), of kind "float32" or "float64"."""
        kinds = self._onnx.TensorProto
        to = kinds.FLOAT if kind == "float32" else kinds.DOUBLE
        info = self._onnx.helper.make_tensor_value_info(name, to, ["n_items", *shape])
        self._outputs.append(info)
        self._nodes.append(self._onnx.helper.make_node("Cast", [tensor], [name], to=to))

    def add(
        self, operator: str, *inputs: str | ArrayLike, domain: str = "", **settings: Any
    ) -> str:
        """Apply an operator; arrays among its inputs become constants. The name of the result."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        out = self._new_name(operator)
        make_node = self._onnx.helper.make_node
        self._nodes.append(make_node(operator, names, [out], out, domain=domain, **settings))
        return out

    def floats(self, tensor: str) -> str:
        """Truth values or whole numbers as floats."""
        return self.add("Cast", tensor, to=self._onnx.TensorProto.DOUBLE)

    def whole_numbers(self, tensor: str) -> str:
        """Floats as whole numbers, cut off."""
        return self.add("Cast", tensor, to=self._onnx.TensorProto.INT64)

    def rounded(self, tensor: str) -> str:
        """Floats rounded to 32 bits."""
        return self.floats(self.add("Cast", tensor, to=self._onnx.TensorProto.FLOAT))

    def constant(self, values: ArrayLike) -> str:
        """What the graph itself holds: text, whole numbers as int64, all others as float64."""
        array: NDArray[Any] = np.asarray(values)
        kinds = {"i": np.int64, "u": np.int64, "O": object, "U": object}
        kept = array.astype(kinds.get(array.dtype.kind, np.float64))
        self._n_bytes += kept.nbytes
        if self._n_bytes > LARGEST:
            raise ValueError(
                f"the model has more than {self._n_bytes / 2**30:.1f} GB of numbers, and ONNX "
                "files hold 2 GB; train it with fewer basis items (n_basis)."
            )
        name = self._new_name("constant")
        self._constants.append(self.tensor(kept, name))
        return name

    def tensor(self, array: NDArray[Any], name: str = "") -> Any:
        """An array as ONNX keeps it."""
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)

    def matrix(self, values: Values) -> str:
        """All columns as one matrix."""
        if len(values.tensors) == 1:
            return values.tensors[0]
        return self.add("Concat", *values.tensors, axis=1)

    def take(self, values: Values, columns: Sequence[int] | NDArray[Any]) -> Values:
        """Some of the columns, in this order."""
        columns = [int(column) for column in columns]
        if len(columns) == values.n_columns and columns == list(range(values.n_columns)):
            return values
        if all(width == 1 for width in values.widths):
            return Values([values.tensors[column] for column in columns], [1] * len(columns))
        chosen = self.add("Gather", self.matrix(values), np.array(columns, dtype=int), axis=1)
        return Values([chosen], [len(columns)])

    def model(self, name: str, facts: dict[str, str], version: str) -> Any:
        """The whole model, checked, with facts for people."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            name,
            self._inputs,
            self._outputs,
            self._constants,
            doc_string=facts["about"],
        )
        opsets = [helper.make_opsetid(domain, number) for domain, number in OPSETS.items()]
        model = helper.make_model(
            graph,
            producer_name="rankwise",
            producer_version=version,
            opset_imports=opsets,
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, facts)
        self._onnx.checker.check_model(model, full_check=True)
        return model

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"rankwise/{kind}_{self._n_names}"
