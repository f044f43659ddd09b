"""Which convs of a TASO rule belong together: those of the source for which one of the target stands."""

from __future__ import annotations

from cgorl.rules.pattern import RuleError
from cgorl.rules.taso_file import Operand, TasoOp, TasoRule


class ConvClasses:
    """Which source convs share their window since one target conv stands for them, and how their groups come together.

    `of` gives the class of a source conv, `sources` a source conv for each of the target, `merge` how the source's come
    together: "sum" (data and weights joined by input channel), "beside" (data by channel, weights by output), "stack"
    (one input, weights by output), or "" (not at all).
    """

    def __init__(self, raw: TasoRule) -> None:
        """Compares the weights that the convs of both sides read. Raises RuleError."""
        source = {i: _leaves(raw.source, op.inputs[1]) for i, op in enumerate(raw.source) if op.op == "Conv"}
        self.of = {i: i for i in source}
        self.sources: dict[int, int] = {}
        self.merge = dict.fromkeys(source, "")
        for j, op in enumerate(raw.target):
            if op.op != "Conv":
                continue
            mine = [i for i in source if source[i] & _leaves(raw.target, op.inputs[1])]
            if not mine:
                raise RuleError("a target's conv has a weight of no source conv")
            self.sources[j] = mine[0]
            for i in mine:
                self.of[i] = self.of[mine[0]]
                if len(mine) > 1:
                    data, weight = (_joined(raw.target, v) for v in op.inputs)
                    self.merge[i] = {(1, 1): "sum", (1, 0): "beside", (-1, 0): "stack"}.get((data, weight), "")

    def names(self, i: int) -> tuple[str, str, str]:
        """The names of kernel, pads and group of source conv `i`."""
        several = len(set(self.of.values())) > 1
        suffix = str(self.of[i]) if several else ""
        return f"k{suffix}", f"p{suffix}", f"g{suffix}"


def _leaves(side: tuple[TasoOp, ...], v: Operand) -> frozenset[int]:
    i, _ = v
    return frozenset({i}) if i < 0 else frozenset().union(*(_leaves(side, w) for w in side[i].inputs))


def _joined(side: tuple[TasoOp, ...], v: Operand) -> int:
    """The axis along which an operand is a Concat; -1 if it is none."""
    i, _ = v
    return side[i].parameters["AXIS"] if i >= 0 and side[i].op == "Concat" else -1
