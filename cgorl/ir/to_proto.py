"""Graph -> ModelProto: the frame as it was read, old nodes as they stood, new ones valid for the model's opset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, Opaque, Value
from cgorl.ir.ops import bodies, make_node, rename_values
from cgorl.ir.tensor import Tensor


def to_proto(graph: Graph) -> tuple[onnx.ModelProto, dict[str, Tensor]]:
    """The model without its weights, and the weights by name in their order (the caller puts them in or beside it)."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.frame.model)
    g = model.graph
    names = Names(graph)
    del g.sparse_initializer[:]
    tensors: dict[str, Tensor] = {}
    for i in graph.order():
        node = graph.nodes[i]
        if node.is_input:
            continue
        if node.holds_tensor and node.proto is None:
            tensors[names[Value(i)]] = node.tensor
        elif node.op == "SparseConstant":
            g.sparse_initializer.append(sparse_proto(node, names[Value(i)]))
        else:
            g.node.append(_node(graph, i, node, names))
    for name, value in names.aliases:
        g.node.append(onnx.helper.make_node("Identity", [names[value]], [name], name=_unique(f"{name}_alias", names.labels)))
    _old_style_inputs(graph, model, tensors)
    _value_info(graph, g, names)
    return model, tensors


def complete(graph: Graph) -> onnx.ModelProto:
    """The model with all its weights inside, external ones read in."""
    model, tensors = to_proto(graph)
    read_in(model, graph.frame.base)
    for name, tensor in tensors.items():
        tensor.to_proto(name, model.graph.initializer.add())
    return model


def read_in(model: onnx.ModelProto, base: Path | None) -> None:
    """Puts the external data that `model` refers to, relative to folder `base`, into it."""
    for proto in all_tensors(model):
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            proto.CopyFrom(Tensor(proto, base=base).to_proto(proto.name))


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a model, wherever it stands: in the graph, its nodes and their bodies, functions, training steps."""
    graphs = [model.graph, *(g for t in model.training_info for g in (t.initialization, t.algorithm))]
    nodes = [n for f in model.functions for n in f.node]
    while graphs or nodes:
        if graphs:
            g = graphs.pop()
            yield from g.initializer
            for s in g.sparse_initializer:
                yield from (s.values, s.indices)
            nodes.extend(g.node)
        else:
            for a in nodes.pop().attribute:
                if a.HasField("t"):
                    yield a.t
                yield from a.tensors
                for s in [a.sparse_tensor, *a.sparse_tensors] if a.HasField("sparse_tensor") else a.sparse_tensors:
                    yield from (s.values, s.indices)
                graphs.extend([a.g, *a.graphs] if a.HasField("g") else a.graphs)


def sparse_proto(node: Node, name: str) -> onnx.SparseTensorProto:
    """The sparse initializer that `node` stands for, called `name`."""
    held = node.attrs["value"]
    assert isinstance(held, Opaque)
    made = onnx.SparseTensorProto()
    made.CopyFrom(held.proto)
    made.values.name = name
    return made


class Names:
    """The name of every value in the file to be written.

    Interface names stand; a value keeps the name it had unless that is taken; new names never repeat one that the model
    has or had, also inside bodies. A graph output that shares its value with another output, or that is a graph input or
    a weight, is written as an Identity (`aliases`).
    """

    def __init__(self, graph: Graph) -> None:
        """Names all values of `graph`."""
        self.graph = graph
        self.taken = set(_interface(graph)) | graph.frame.reserved
        for node in graph.nodes.values():
            self.taken.update(node.names)
            if node.proto is not None:
                self.taken.update(n for b in bodies(node.proto) for n in _inner_names(b))
        self.taken.update(graph.frame.value_info)
        self.labels = {n.proto.name for n in graph.nodes.values() if n.proto is not None}
        self.written: set[int] = set()
        self.by_value: dict[Value, str] = {}
        self.aliases: list[tuple[str, Value]] = []
        self.owned: set[str] = {graph.nodes[i].names[0] for i in graph.inputs}
        # An output that bears an input's name is that input, whatever equal value an edit has put there.
        pairs = zip(graph.frame.model.graph.output, graph.outputs, strict=True)
        wanted = [(info.name, v) for info, v in pairs if info.name not in self.owned]
        self.owned.update(name for name, _ in wanted)
        for i in graph.inputs:
            self.by_value[Value(i)] = graph.nodes[i].names[0]
        exact = {name: v for name, v in wanted if graph.nodes[v.node].names[v.port : v.port + 1] == (name,)}
        for name, v in wanted:
            if exact.get(name) == v:
                self.by_value.setdefault(v, name)
        for name, v in wanted:
            if self.by_value.get(v) == name:
                continue
            source = graph.nodes[v.node].is_source or graph.nodes[v.node].op == "SparseConstant"
            if v in self.by_value or source:
                self.aliases.append((name, v))
            else:
                self.by_value[v] = name

    def __getitem__(self, value: Value) -> str:
        """The name of `value`, found on first use."""
        found = self.by_value.get(value)
        if found is None:
            node = self.graph.nodes[value.node]
            own = node.names[value.port] if value.port < len(node.names) else ""
            found = own if own and own not in self.owned else self.fresh(own or _stem(self.graph, value))
            self.owned.add(found)
            self.by_value[value] = found
        return found

    def fresh(self, stem: str) -> str:
        """`stem`, or `stem_1`, `stem_2`, ...: the first that no value has or had; from now on taken."""
        return _unique(stem, self.taken)

    def label(self, node: Node, stem: str) -> str:
        """The name of the node itself: as it was, also where a file repeats one, but new for a second copy of an old node."""
        if node.proto is not None and id(node.proto) not in self.written:
            self.written.add(id(node.proto))
            return node.proto.name
        return _unique(node.name or stem, self.labels)


def _unique(stem: str, taken: set[str]) -> str:
    name, k = stem, 0
    while name in taken:
        k += 1
        name = f"{stem}_{k}"
    taken.add(name)
    return name


def _stem(graph: Graph, value: Value) -> str:
    node = graph.nodes[value.node]
    return f"{node.op.lower()}_{value.node}" + (f"_{value.port}" if len(node.types) > 1 else "")


def _node(graph: Graph, i: int, node: Node, names: Names) -> onnx.NodeProto:
    inputs = ["" if v is None else names[v] for v in node.inputs]
    if node.proto is None:
        outputs = [names[Value(i, p)] for p in range(len(node.types))]
        made = make_node(node.op, node.domain, graph.opsets.get(node.domain, 1), inputs, outputs, node.attrs)
        made.name = names.label(node, f"{node.op}_{i}")
        return made
    made = onnx.NodeProto()
    made.CopyFrom(node.proto)
    outputs = [names[Value(i, p)] if node.gives(p) else "" for p in range(len(node.types))]
    if list(made.input) != inputs:
        made.input[:] = inputs
    if list(made.output) != outputs:
        made.output[:] = outputs
    label = names.label(node, f"{node.op}_{i}")
    if made.name != label:
        made.name = label
    moved = {old: names[v] for old, v in node.captures if names[v] != old}
    for body in bodies(made) if moved else ():
        own = set(_inner_names(body))
        rename_values(body, _Keep({new: names.fresh(new) for new in moved.values() if new in own} | moved))
    return made


class _Keep(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return key


def _interface(graph: Graph) -> Iterator[str]:
    g = graph.frame.model.graph
    for part in (g.input, g.output):
        for info in part:
            yield info.name
    for t in g.initializer:
        yield t.name
    for s in g.sparse_initializer:
        yield s.values.name


def _inner_names(body: onnx.GraphProto) -> Iterator[str]:
    for part in (body.input, body.output, body.initializer):
        for item in part:
            yield item.name
    for node in body.node:
        yield node.name
        yield from node.output
        for inner in bodies(node):
            yield from _inner_names(inner)


def _old_style_inputs(graph: Graph, model: onnx.ModelProto, tensors: dict[str, Tensor]) -> None:
    """Before IR 4 each initializer is listed as an input too: drops those that are gone, adds the new."""
    if model.ir_version >= 4:
        return
    g = model.graph
    real = {graph.nodes[i].names[0] for i in graph.inputs}
    keep = [info for info in g.input if info.name in real or info.name in tensors]
    if len(keep) < len(g.input):
        copies = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in keep]
        del g.input[:]
        g.input.extend(copies)
    listed = {info.name for info in g.input}
    for name, t in tensors.items():
        if name not in listed:
            g.input.append(onnx.helper.make_tensor_value_info(name, t.dtype, list(t.shape)))


def _value_info(graph: Graph, g: onnx.GraphProto, names: Names) -> None:
    """Keeps what the file declared of values that are still there under their name."""
    present = {n for node in g.node for n in node.output} | {t.name for t in g.initializer}
    present |= {names[Value(i)] for i, n in graph.nodes.items() if n.is_source or n.op == "SparseConstant"}
    for name, info in graph.frame.value_info.items():
        if name in present or name not in graph.frame.reserved:
            g.value_info.add().CopyFrom(info)
