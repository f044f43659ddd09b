"""Where each node ends up: in whose kernel, and whether its result has its channels in blocks.

The local part of what onnxruntime does to a graph, followed through producers only; see `kernels` for what is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from cgorl.cost.kernels import fusions, gelu
from cgorl.cost.kernels.look import Look
from cgorl.cost.model import View
from cgorl.ir.node import Node, Value
from cgorl.ir.sizes import Sizes

OPEN, SUMMED, CLOSED = "open", "summed", "closed"
"""What a kernel can still take along: a sum and an activation, an activation, nothing."""

PRODUCT, AFFINE = "product", "affine"
"""The same for matrix products: a bias and an activation, an activation."""

BLOCKED_ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh"})
ACTIVATIONS = BLOCKED_ACTIVATIONS | {"LeakyRelu", "HardSigmoid", "Clip"}
GEMM_ACTIVATIONS = BLOCKED_ACTIVATIONS | {"LeakyRelu", "Elu", "HardSigmoid", "Selu", "Softplus", "Softsign", "ThresholdedRelu"}
POOLS = frozenset({"MaxPool", "AveragePool"})
_NARROW = 8
"""Channels up to which the runtime was seen to tell that operands of unnamed dims are of one shape, with blocks of 8 and of 16."""

_LATER = ACTIVATIONS | GEMM_ACTIVATIONS | {"Add", "Mul", "Div", "BatchNormalization"}
GLOBAL_POOLS = frozenset({"GlobalMaxPool", "GlobalAveragePool"})


class Spot(NamedTuple):
    """Whether the result is blocked, the node whose kernel this one belongs to, and what that can still take.

    `reads` are the nodes that were looked at to find it, `rests` those whose own spots were asked for.
    """

    blocked: bool
    head: int
    stage: str
    reads: frozenset[int] = frozenset()
    rests: frozenset[int] = frozenset()

    @property
    def said(self) -> tuple[bool, int, str]:
        """What others see of it."""
        return self[:3]


class Spots(Look):
    """The spot of every node of a view, found on demand. `known` gives those that need not be found again."""

    def __init__(self, view: View, sizes: Sizes, block: int, known: Callable[[int], Spot | None] = lambda i: None) -> None:
        """Looks at `view`; `block` is the block of channels of machine and session level (1: none, and sums stay apart)."""
        super().__init__(view, sizes)
        self.block, self._known = block, known
        self.memo: dict[int, Spot] = {}
        self.asked: set[int] = set()

    def spot(self, i: int) -> Spot:
        """Where node `i` ends up."""
        self.asked.add(i)
        found = self.memo.get(i) or self._known(i)
        if found is None:
            outer = self.seen, self.asked
            self.seen, self.asked = {i}, set()
            said = self._spot(i)
            found = self.memo[i] = Spot(*said, frozenset(self.seen), frozenset(self.asked))
            self.seen, self.asked = outer
        return found

    def blocked(self, value: Value | None) -> bool:
        """Whether a value has its channels in blocks."""
        return value is not None and self.spot(value.node).blocked

    def takes_blocks(self, user: int, value: Value) -> bool:
        """Whether node `user` wants `value` in blocks."""
        spot = self.spot(user)
        if not spot.blocked:
            return False
        node = self.at(user)
        if node.op == "Conv":
            weight = self.shape(node.inputs[1])
            return node.inputs[0] == value and weight is not None and not self._reads_plain(node, weight)
        if node.op == "BatchNormalization":
            return node.inputs[0] == value
        return not self.constant(value)

    def _reads_plain(self, node: Node, weight: tuple[int, ...]) -> bool:
        return node.attrs.get("group", 1) == 1 and weight[1] < self.block

    def _spot(self, i: int) -> tuple[bool, int, str]:
        node = self.at(i)
        plain = (False, i, CLOSED)
        if node.constant or node.is_source or node.domain or not node.inputs or node.inputs[0] is None:
            return plain
        op, first = node.op, node.inputs[0]
        if op == "Conv":
            return self._blocked_conv(node), i, OPEN
        if op == "Pad" and (user := self.sole(Value(i))) is not None and fusions.pad_of(self, i, user):
            return self.takes_blocks(user, Value(i)), user, CLOSED
        if op == "Reshape" and (head := fusions.reshaped_again(self, i)) is not None:
            return False, head, CLOSED
        if op == "Slice" and (user := self.sole(Value(i))) is not None and fusions.focus(self, user) is not None:
            return False, user, CLOSED
        if op == "MatMul":
            return False, i, PRODUCT
        if op == "Gemm":
            return False, i, AFFINE
        if (head := gelu.taken(self, i, node)) is not None:
            inner = gelu.quick(self, head)
            blocked = inner is not None and self.blocked(inner) and self.blockable(inner)
            return blocked, head, CLOSED
        if (found := self._plain(i, node)) is not None:
            return found
        if (head := gelu.biased(self, i, node)) is not None:
            return False, head, CLOSED
        if not self.blockable(first):
            return plain
        if op == "BatchNormalization":
            return self._batchnorm(i, node, first)
        if op in ACTIVATIONS:
            return self._activation(i, node, first)
        if op in POOLS and self.block > 1 and len([n for n in node.names if n] or [0]) == 1:
            return self._channels(first) % self.block == 0, i, CLOSED
        if op in GLOBAL_POOLS:
            return self.blocked(first) and self._channels(first) % self.block == 0, i, CLOSED
        if op in ("Add", "Sum", "Mul"):
            return self._binary(i, node)
        if op == "Concat" and node.attrs.get("axis") in (1, -3):
            parts = [v for v in node.inputs if v is not None]
            return all(self.blocked(v) for v in parts) and all(self._channels(v) % self.block == 0 for v in parts), i, CLOSED
        if op in ("Resize", "Upsample") and self.blocked(first):
            return fusions.whole_scales(self, node), i, CLOSED
        return plain

    def _channels(self, value: Value) -> int:
        kind = self.type(value)
        found = kind.shape[1] if kind is not None and kind.shape is not None else 1
        return found if isinstance(found, int) else 1

    def _blocked_conv(self, node: Node) -> bool:
        weight = self.shape(node.inputs[1])
        if self.block == 1 or weight is None or len(weight) != 4 or not self.blockable(node.inputs[0]):
            return False
        if not all(self.constant(v) for v in node.inputs[1:] if v is not None):
            return False
        out, into, group = weight[0], weight[1], node.attrs.get("group", 1)
        assert isinstance(group, int)
        if group == 1:
            return into < self.block or into % 4 == 0
        if out % 4:
            return False
        if into == 1 and out == group:
            return True
        return into % self.block == 0 and out % group == 0 and (out // group) % self.block == 0

    def _batchnorm(self, i: int, node: Node, first: Value) -> tuple[bool, int, str]:
        if not all(self.constant(v) for v in node.inputs[1:]):
            return False, i, CLOSED
        producer = self.spot(first.node)
        if producer.stage == OPEN and self.at(producer.head).op == "Conv" and self.sole(first) == i and self._weights(producer.head):
            return producer.blocked, producer.head, OPEN
        return producer.blocked, i, OPEN if producer.blocked else CLOSED

    def _weights(self, conv: int) -> bool:
        return all(self.constant(v) for v in self.at(conv).inputs[1:] if v is not None)

    def _activation(self, i: int, node: Node, first: Value) -> tuple[bool, int, str]:
        producer = self.spot(first.node)
        if self.sole(first) == i and producer.stage in (OPEN, SUMMED):
            far = producer.stage == SUMMED or self.at(producer.head).op == "BatchNormalization"
            good = BLOCKED_ACTIVATIONS if producer.blocked and far else ACTIVATIONS
            if node.op in good and fusions.bounds_known(self, node):
                return producer.blocked, producer.head, CLOSED
        return producer.blocked and node.op in BLOCKED_ACTIVATIONS, i, CLOSED

    def _binary(self, i: int, node: Node) -> tuple[bool, int, str]:
        if len(node.inputs) == 2 and node.op != "Sum":
            for k in (0, 1):
                folded = self._per_channel(i, node, k)
                if folded is not None:
                    return folded
        values = [v for v in node.inputs if v is not None]
        if any(self.constant(v) for v in values):
            return False, i, CLOSED
        same = len({self.shape(v) or v for v in values}) == 1
        blocked = all(self.blocked(v) for v in values)
        if blocked and node.op != "Sum" and len(values) == 2 and self.must_cut(node):
            return self._cut(node, values, same), i, CLOSED
        blocked = blocked and same
        adds = (node.op == "Add" and self.block > 1) or (node.op == "Sum" and blocked)
        if adds and len(values) == 2 and same:
            for v in values:
                host = self.spot(v.node)
                if host.stage == OPEN and self.sole(v) == i and host.blocked == blocked:
                    return blocked, host.head, SUMMED
        return blocked, i, CLOSED

    def must_cut(self, node: Node) -> bool:
        """Whether the runtime cannot see of which shapes the operands of a sum or product are, and goes by way of Reshapes."""
        values = [v for v in node.inputs if v is not None]
        return self._channels(values[0]) > _NARROW and not all(map(self.named, values))

    def _cut(self, node: Node, values: list[Value], same: bool) -> bool:
        """Whether two blocked values are cut into blocks by Reshapes: a map and a number for each channel, or of unknown size."""
        if same:
            return self._channels(values[0]) % self.block == 0
        a, b = (self.shape(v) for v in values)
        if a is None or b is None or node.op != "Mul":
            return False
        large, small = (a, b) if math.prod(a) >= math.prod(b) else (b, a)
        return large[:2] == small[:2] and small[2:] == (1, 1) and large[1] % self.block == 0

    def _per_channel(self, i: int, node: Node, k: int) -> tuple[bool, int, str] | None:
        """The spot of a product or sum with a constant for each channel, right after a conv: it goes into the weights."""
        value, other = node.inputs[k], node.inputs[1 - k]
        if value is None or other is None or not self.constant(other) or self.constant(value):
            return None
        producer, shape = self.spot(value.node), self.shape(other)
        if producer.stage != OPEN or self.at(producer.head).op != "Conv" or self.sole(value) != i or shape is None:
            return None
        channels = self._channels(value)
        scalar = node.op == "Mul" and math.prod(shape) == 1 and not shape
        each = len(shape) in (3, 4) and shape[-3] == channels and math.prod(shape) == channels
        return (producer.blocked, producer.head, OPEN) if (scalar or each) and self._weights(producer.head) else None

    def _plain(self, i: int, node: Node) -> tuple[bool, int, str] | None:
        """The spot of what goes with a matrix product, a conv that is not of two dims, or a layer normalization; else None."""
        if node.op in _LATER:
            for v in node.inputs:
                if v is None or self.constant(v) or self.sole(v) != i:
                    continue
                producer = self.spot(v.node)
                if producer.stage == PRODUCT and node.op == "Add" and fusions.bias(self, producer.head, node, v):
                    return False, producer.head, AFFINE
                if producer.stage == AFFINE and node.op in GEMM_ACTIVATIONS and fusions.flat(self, producer.head):
                    return False, producer.head, CLOSED
                if producer.stage == PRODUCT and node.op in ("Mul", "Div") and fusions.scaled(self, node, v):
                    return False, producer.head, CLOSED
                if producer.stage == OPEN and not self.blockable(v):
                    if node.op == "BatchNormalization" and self._weights(producer.head):
                        return False, producer.head, OPEN
                    if node.op in ACTIVATIONS and fusions.bounds_known(self, node):
                        return False, producer.head, CLOSED
        if node.op == "LayerNormalization" and (added := fusions.skip(self, i, node)) is not None:
            return False, added, CLOSED
        if node.op in ("Mul", "Div", "Transpose") and (head := fusions.for_product(self, i, node)) is not None:
            return False, head, CLOSED
        return None
