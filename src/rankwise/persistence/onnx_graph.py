"""A graph of ONNX operators under construction; all numbers inside are float64."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.environment import require

ML = "ai.onnx.ml"
OPSETS = {"": 18, ML: 3}  # in place since 2022, so that older runtimes can read the file

IR_VERSION = 8
TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "int64": "INT64", "text": "STRING"}


class Graph:
    """Operators, constants, inputs and at last the model; a tensor is known by its name."""

    def __init__(self) -> None:
        self._onnx = require("onnx", "export to ONNX")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._same_group = ""  # made with the input "groups"
        self._n_names = 0

    def add_input(self, name: str, kind: str, width: int) -> str:
        """An input of shape (n_items, width), of kind "float64" or "text"."""
        self._inputs.append(self._described(name, kind, [width]))
        return name

    def same_group(self) -> str:
        """A matrix of 0 and 1: whether two items have the same number in the input "groups"."""
        if not self._same_group:
            self._inputs.append(self._described("groups", "int64", []))
            rows, columns = (self.add("Unsqueeze", "groups", np.array([k])) for k in (1, 0))
            self._same_group = self.cast(self.add("Equal", rows, columns))
        return self._same_group

    def add(
        self, operator: str, *inputs: str | ArrayLike, domain: str = "", **settings: Any
    ) -> str:
        """Apply an operator; arrays among its inputs become constants. The name of the result."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        out = self._new_name(operator)
        make_node = self._onnx.helper.make_node
        self._nodes.append(make_node(operator, names, [out], out, domain=domain, **settings))
        return out

    def cast(self, tensor: str, kind: str = "float64") -> str:
        """Numbers or truth values as another kind of numbers."""
        return self.add("Cast", tensor, to=self._type(kind))

    def constant(self, values: ArrayLike) -> str:
        """What the graph itself holds: text, whole numbers as int64, all others as float64."""
        array: NDArray[Any] = np.asarray(values)
        kinds = {"i": np.int64, "u": np.int64, "O": object, "U": object}
        kept = array.astype(kinds.get(array.dtype.kind, np.float64))
        name = self._new_name("constant")
        self._constants.append(self.tensor(kept, name))
        return name

    def tensor(self, array: NDArray[Any], name: str = "") -> Any:
        """An array as ONNX keeps it."""
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)

    def join(self, tensors: Sequence[str]) -> str:
        """The columns of all tensors as one matrix."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=1)

    def take(self, matrix: str, columns: Iterable[int]) -> str:
        """Some of the columns, in this order."""
        return self.add("Gather", matrix, np.array([*columns], dtype=int), axis=1)

    def model(self, scores: str, shape: Sequence[int], facts: dict[str, str], version: str) -> Any:
        """The whole model, checked: scores of shape (n_items, *shape), and facts for people."""
        helper = self._onnx.helper
        last = helper.make_node("Identity", [scores], ["scores"])
        graph = helper.make_graph(
            [*self._nodes, last],
            "ranker",
            self._inputs,
            [self._described("scores", "float64", shape)],
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

    def _described(self, name: str, kind: str, shape: Sequence[int]) -> Any:
        """An input or an output, with a row for each item."""
        make_info = self._onnx.helper.make_tensor_value_info
        return make_info(name, self._type(kind), ["n_items", *shape])

    def _type(self, kind: str) -> Any:
        return getattr(self._onnx.TensorProto, TYPES[kind])

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"rankwise/{kind}_{self._n_names}"
