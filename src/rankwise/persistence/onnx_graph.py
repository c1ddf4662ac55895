"""An ONNX graph under construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import AnyArray
from rankwise.environment import require

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

#: A tensor of a graph, by its name.
Tensor: TypeAlias = str

ML_DOMAIN = "ai.onnx.ml"
OPSETS = {"": 18, ML_DOMAIN: 3}  # of 2022, so that older runtimes can read the file
IR_VERSION = 8

ONNX_TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "int64": "INT64", "text": "STRING"}

CONSTANT_TYPES = {"i": np.int64, "u": np.int64, "O": object, "U": object}  # by dtype.kind

GROUPS_INPUT = "groups"
SCORES_OUTPUT = "scores"

AXIS_1 = np.array([1])  # the axis along a row, as operators take it
ZERO = np.array(0.0)
ONE = np.array(1.0)
NAN = np.array(np.nan)


class OnnxGraph:
    """Inputs, constants and operators, which `make_model` joins to a model."""

    def __init__(self) -> None:
        self._onnx = require("onnx", "export to ONNX")
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._same_group: Tensor | None = None
        self._n_names = 0

    def add_input(self, name: str, kind: str, width: int) -> Tensor:
        """Add an input of shape (n_items, width), of kind "float64" or "text"."""
        self._inputs.append(self._describe_tensor(name, kind, [width]))
        return name

    def same_group(self) -> Tensor:
        """Matrix of 0 and 1: whether two items have the same number in the input "groups"."""
        if self._same_group is None:  # only models that use the groups have this input
            self._inputs.append(self._describe_tensor(GROUPS_INPUT, "int64", []))
            groups_as_column = self.add("Unsqueeze", GROUPS_INPUT, AXIS_1)
            groups_as_row = self.add("Unsqueeze", GROUPS_INPUT, np.array([0]))
            is_equal = self.add("Equal", groups_as_column, groups_as_row)  # (n_items, n_items)
            self._same_group = self.cast(is_equal)
        return self._same_group

    def add(
        self,
        operator: str,
        *inputs: Tensor | ArrayLike,
        domain: str = "",
        **attributes: int | Sequence[int] | Sequence[str] | TensorProto,
    ) -> Tensor:
        """Apply an operator, and return its result. Arrays among its inputs become constants."""
        input_names = []
        for value in inputs:
            if isinstance(value, str):  # the name of a tensor
                input_names.append(value)
            else:
                input_names.append(self.constant(value))
        result_name = self._new_name(operator)
        node = self._onnx.helper.make_node(
            operator, input_names, [result_name], result_name, domain=domain, **attributes
        )
        self._nodes.append(node)
        return result_name

    def cast(self, tensor: Tensor, kind: str = "float64") -> Tensor:
        """Convert numbers or truth values to another type of numbers."""
        return self.add("Cast", tensor, to=self._type_number(kind))

    def constant(self, values: ArrayLike) -> Tensor:
        """Add a constant: text, integers as int64, other numbers as float64."""
        array = np.asarray(values)
        stored_type = CONSTANT_TYPES.get(array.dtype.kind, np.float64)
        name = self._new_name("constant")
        self._constants.append(self.tensor_proto(array.astype(stored_type), name))
        return name

    def tensor_proto(self, array: AnyArray, name: str = "") -> TensorProto:
        """Convert an array to ONNX's representation."""
        proto: TensorProto = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        return proto

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        """The columns of all tensors as one matrix."""
        if len(tensors) == 1:
            return tensors[0]
        return self.add("Concat", *tensors, axis=1)

    def take(self, matrix: Tensor, columns: Iterable[int]) -> Tensor:
        """Select columns of a matrix, in this order."""
        column_numbers = np.array([*columns], dtype=int)
        return self.add("Gather", matrix, column_numbers, axis=1)

    def make_model(
        self, scores: Tensor, shape: Sequence[int], metadata: Mapping[str, str], version: str
    ) -> ModelProto:
        """Make the complete model, and check it.

        Parameters
        ----------
        scores : str
            The output, of shape (n_items, *shape).
        shape : sequence of int
            Shape of the scores of one item.
        metadata : mapping of str to str
            Metadata for readers; the entry "about" is also the description of the graph.
        version : str
            Version of rankwise.
        """
        helper = self._onnx.helper
        output_node = helper.make_node("Identity", [scores], [SCORES_OUTPUT])  # names the output
        output = self._describe_tensor(SCORES_OUTPUT, "float64", shape)
        graph = helper.make_graph(
            [*self._nodes, output_node],
            "ranker",
            self._inputs,
            [output],
            self._constants,
            doc_string=metadata["about"],
        )
        opsets = [helper.make_opsetid(domain, number) for domain, number in OPSETS.items()]
        model: ModelProto = helper.make_model(
            graph,
            producer_name="rankwise",
            producer_version=version,
            opset_imports=opsets,
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, metadata)
        self._onnx.checker.check_model(model, full_check=True)
        return model

    def _describe_tensor(self, name: str, kind: str, shape: Sequence[int]) -> ValueInfoProto:
        """Describe an input or the output, which has one row for each item."""
        make_info = self._onnx.helper.make_tensor_value_info
        info: ValueInfoProto = make_info(name, self._type_number(kind), ["n_items", *shape])
        return info

    def _type_number(self, kind: str) -> int:
        number: int = getattr(self._onnx.TensorProto, ONNX_TYPES[kind])
        return number

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"rankwise/{kind}_{self._n_names}"
