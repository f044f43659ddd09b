"""The oracle: an ONNX model evaluated in float64, independently of onnxruntime, to prove rewrites.

`run_float64` stands for arithmetic over the reals: `double` widens every type that a model computes in, and onnx's reference
evaluator runs the result with the operators of `oracle_ops`, `oracle_fixes`. What is not real arithmetic stays: rounding to integers and to
quantised formats, ties, and the float32 value of an attribute. Needs opset 7 (what onnxruntime supports), no custom operator.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TypeProto
from onnx.helper import make_attribute, make_node, np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype
from onnx.inliner import inline_local_functions
from onnx.numpy_helper import from_array, to_array
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from cgorl.ir.oracle_fixes import CORRECTED
from cgorl.ir.oracle_ops import VECTORISED
from cgorl.ir.oracle_ops import OracleError as OracleError

_DOUBLE: dict[int, int] = {
    TensorProto.FLOAT: TensorProto.DOUBLE,
    TensorProto.FLOAT16: TensorProto.DOUBLE,
    TensorProto.BFLOAT16: TensorProto.DOUBLE,
    TensorProto.COMPLEX64: TensorProto.COMPLEX128,
}
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype", "precision", "softmax_precision", "stash_type")
_OPSET = 7


def double(model: ModelProto) -> ModelProto:
    """Returns the same model over float64: float32, float16 and bfloat16 (complex64 too) become double wherever they occur.

    Types of inputs, outputs, values, initializers, constants and dtype attributes change, also in If, Loop and Scan bodies.
    A Cast to a float type becomes a Cast to double, over the reals the identity, so that a Cast to float16 no longer rounds.
    Formats of 8 bits or fewer are storage, not arithmetic: integers and float8, float6, float4 tensors stay, and so do Casts
    to them, QuantizeLinear, DynamicQuantizeLinear and the QLinear operators with their rounding; their scales, and what
    DequantizeLinear gives, become double. Model-local functions are inlined first, as a dtype may be an argument of theirs;
    one with another opset than the model's cannot be, and is widened where it stands. An operator that can only give float32
    (TfIdfVectorizer, ai.onnx.ml) is followed by a Cast. The model is not modified; external data must be loaded.
    """
    result = _double_all_but_initializers(model)
    for graph in _graphs(result):
        for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
            _double_tensor(tensor)
    return result


def evaluator(model: ModelProto) -> ReferenceEvaluator:
    """Returns an evaluator of `double(model)`, whose weights are widened as arrays: that costs a third of the memory."""
    return _Float64(_dense(_double_all_but_initializers(model)))


def run_float64(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs by name, evaluated in float64; float feeds are widened, integers, bools and strings stay."""
    return _run(evaluator(model), {name: _widened(value) for name, value in feeds.items()})


def run_reference(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs by name, evaluated in the model's own types: for a model that onnxruntime cannot run."""
    return _run(_Vectorised(_dense(_inlined(model))), dict(feeds))


def _run(session: ReferenceEvaluator, feeds: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs of an evaluator by name; an infinity or NaN is a result, not a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return dict(zip(session.output_names, session.run(None, feeds), strict=True))


def _widened(value: Any) -> Any:
    """Returns an array, or a sequence of arrays, with floating-point elements in float64."""
    if value is None or isinstance(value, list):
        return value and [_widened(item) for item in value]
    array = np.asarray(value)
    if array.dtype.kind in "USO" or (to := _DOUBLE.get(np_dtype_to_tensor_dtype(array.dtype))) is None:
        return array
    return array.astype(tensor_dtype_to_np_dtype(to))


def _inlined(model: ModelProto) -> ModelProto:
    """Returns a copy of the model without model-local functions of its own opset."""
    copy = ModelProto()
    copy.CopyFrom(model)
    if not copy.functions:
        return copy
    defaults = {(f.domain, f.name, f.overload): f.attribute_proto for f in copy.functions}
    for nodes in (copy.graph.node, *(f.node for f in copy.functions)):
        for node in _all_nodes(nodes):  # onnx's inliner forgets the default of an attribute
            given = {a.name for a in node.attribute}
            node.attribute.extend(a for a in defaults.get((node.domain, node.op_type, node.overload), ()) if a.name not in given)
    return inline_local_functions(copy)


def _subgraphs(node: NodeProto) -> list[GraphProto]:
    """Returns the bodies of a node."""
    return [graph for a in node.attribute for graph in ([a.g] if a.type == AttributeProto.GRAPH else a.graphs)]


def _all_nodes(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Returns nodes and the nodes of their bodies, at any depth."""
    return [each for node in nodes for each in (node, *(n for graph in _subgraphs(node) for n in _all_nodes(graph.node)))]


def _graphs(model: ModelProto) -> list[GraphProto]:
    """Returns the graph of a model and the bodies in it."""
    return [model.graph, *(graph for node in _all_nodes(model.graph.node) for graph in _subgraphs(node))]


def _dense(model: ModelProto) -> ModelProto:
    """Returns the model with sparse initializers and constants made dense, in place: the reference knows no sparse arithmetic."""
    for graph in _graphs(model):
        graph.initializer.extend(_dense_tensor(sparse) for sparse in graph.sparse_initializer)
        del graph.sparse_initializer[:]
    for attribute in (a for node in _all_nodes(model.graph.node) if node.op_type == "Constant" for a in node.attribute):
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            attribute.CopyFrom(make_attribute("value", _dense_tensor(attribute.sparse_tensor)))
    return model


def _dense_tensor(sparse: SparseTensorProto) -> TensorProto:
    """Returns a sparse tensor in dense form."""
    values, indices = to_array(sparse.values), to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    dense[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)] = values
    return from_array(dense, sparse.values.name)


def _double_all_but_initializers(model: ModelProto) -> ModelProto:
    """Returns a widened copy of the model, but for its initializers."""
    result = _inlined(model)
    _double_graph(result.graph, {i.domain: i.version for i in result.opset_import})
    for function in result.functions:
        _double_function(function)
    return result


def _double_tensor(tensor: TensorProto) -> None:
    """Widens a tensor in place."""
    if tensor.data_type in _DOUBLE:
        tensor.CopyFrom(from_array(to_array(tensor).astype(tensor_dtype_to_np_dtype(_DOUBLE[tensor.data_type])), tensor.name))


def _double_type(proto: TypeProto) -> None:
    """Widens a type in place."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        tensor.elem_type = _DOUBLE.get(tensor.elem_type, tensor.elem_type)
    elif kind in ("sequence_type", "optional_type"):
        _double_type(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        _double_type(proto.map_type.value_type)


def _double_graph(graph: GraphProto, opsets: Mapping[str, int]) -> None:
    """Widens a graph in place, but for its initializers."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        _double_type(value.type)
    _double_nodes(graph, opsets)


def _double_function(function: FunctionProto) -> None:
    """Widens a function in place."""
    for value in function.value_info:
        _double_type(value.type)
    _double_nodes(function, {i.domain: i.version for i in function.opset_import})


def _double_nodes(owner: GraphProto | FunctionProto, opsets: Mapping[str, int]) -> None:
    """Widens the nodes of a graph or function in place."""
    nodes = []
    for node in owner.node:
        nodes.append(node)
        for name in _double_node(node, opsets):
            at = list(node.output).index(name)
            node.output[at] = f"{name}:float32"
            nodes.append(make_node("Cast", [f"{name}:float32"], [name], to=TensorProto.DOUBLE))
    if len(nodes) != len(owner.node):
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del owner.node[:]
        owner.node.extend(copies)


def _double_node(node: NodeProto, opsets: Mapping[str, int]) -> list[str]:
    """Widens a node in place; returns the outputs that remain float32 and need a Cast."""
    attributes = {a.name: a for a in node.attribute}
    for attribute in node.attribute:
        for tensor in (attribute.t, attribute.sparse_tensor.values, *attribute.tensors):
            _double_tensor(tensor)
        for proto in (attribute.tp, *attribute.type_protos):
            _double_type(proto)
    for graph in _subgraphs(node):
        _double_graph(graph, opsets)
    if node.domain == "" and node.op_type == "Constant":
        for name in attributes.keys() & {"value_float", "value_floats"}:
            if attributes[name].ref_attr_name:
                return list(node.output)
            value = attributes[name].f if name == "value_float" else list(attributes[name].floats)
            attributes[name].CopyFrom(make_attribute("value", from_array(np.array(value, np.float64))))
    if node.domain == "" and node.op_type == "ConstantOfShape" and "value" not in attributes:
        node.attribute.append(make_attribute("value", from_array(np.zeros(1))))
    if not onnx.defs.has(node.op_type, node.domain):
        return []
    schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    if node.op_type == "BitCast":  # bits of a float32 stay its bits
        return list(node.output) if attributes["to"].i in _DOUBLE else []
    for name in schema.attributes.keys() & set(_TYPE_ATTRIBUTES):
        attribute = attributes.get(name, schema.attributes[name].default_value)
        if attribute.type == AttributeProto.INT and attribute.i in _DOUBLE:
            if name not in attributes:
                node.attribute.append(make_attribute(name, _DOUBLE[attribute.i]))
            attribute.i = _DOUBLE[attribute.i]
    if node.domain != "ai.onnx.ml" and node.op_type != "TfIdfVectorizer":
        return []
    allowed = {c.type_param_str: list(c.allowed_type_strs) for c in schema.type_constraints}
    types = [allowed.get(formal.type_str, [formal.type_str]) for formal in schema.outputs]
    return [name for name, strings in zip(node.output, types, strict=False) if name and strings == ["tensor(float)"]]


_OPERATORS: list[type[OpRun]] = [*VECTORISED, *CORRECTED]


class _Vectorised(ReferenceEvaluator):
    """An evaluator with these operators, also in functions and in the bodies of operators that onnx defines by functions."""

    def __init__(self, proto: Any, opsets: Any = None, functions: Any = None, verbose: int = 0, new_ops: Any = None) -> None:
        version = max((i.version for i in getattr(proto, "opset_import", ()) if i.domain == ""), default=_OPSET)
        if version < _OPSET:
            raise OracleError(f"opset {version}: the oracle needs {_OPSET}")
        super().__init__(proto, opsets, functions, verbose, new_ops or _OPERATORS)


class _Float64(_Vectorised):
    """The same in float64: what onnx defines by a function, with float32 constants, is widened as the model was."""

    def __init__(self, proto: Any, *arguments: Any, **keywords: Any) -> None:
        if isinstance(proto, FunctionProto):
            widened = FunctionProto()
            widened.CopyFrom(proto)
            _double_function(widened)
            proto = widened
        super().__init__(proto, *arguments, **keywords)
        self.rt_inits_ = {name: _widened(value) for name, value in self.rt_inits_.items()}
