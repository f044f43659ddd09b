"""Measured: prices of the kernels that onnxruntime makes of a graph, as they were measured on the target."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cgorl.cost.estimate import DOUBT, Nearest
from cgorl.cost.kernels import written
from cgorl.cost.kernels.kernel import Kernel
from cgorl.cost.kernels.lower import kernels
from cgorl.cost.kernels.spots import Spots
from cgorl.cost.kernels.table import Table
from cgorl.cost.measure import measure
from cgorl.cost.model import CostError, Now, Price, View
from cgorl.cost.store import Entry, Store
from cgorl.cost.target import LEVELS, here
from cgorl.ir.graph import Edit, Graph
from cgorl.ir.node import Value
from cgorl.ir.run import RunError
from cgorl.ir.sizes import Sizes
from cgorl.ir.to_proto import complete

_TABLES = 4
"""Graphs whose kernels are kept at hand."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The cost of a graph as the sum of its kernels' measured times, at one thread.

    Prices come from the table of this machine, runtime and session `level` in the folders `table` and `shipped`. Kernels
    that are missing there are measured, `seconds` in all or until an interrupt, and then estimated from their nearest kin; a
    price once given stands. A gain counts only where it is above `doubt` times the noise of the kernels that differ. What an
    edit changes is exact for the kernel rule, however far a layout travels; caches and memory are left to the gate.
    """

    table: str
    shipped: str | None = None
    level: str = "all"
    seconds: float = 30.0
    doubt: float = 1.0
    dims: Mapping[str, int] = field(default_factory=dict)
    unbound: int | None = None
    _prices: dict[Kernel, Entry] = field(default_factory=dict, repr=False)
    _tables: OrderedDict[int, Table] = field(default_factory=OrderedDict, repr=False)
    _counts: Counter[str] = field(default_factory=Counter, repr=False)
    _nearest: dict[int, Nearest] = field(default_factory=dict, repr=False)
    _spent: list[float] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        """Raises CostError for an option that cannot be."""
        for name, folder in (("table", self.table), ("shipped", self.shipped)):
            if not isinstance(folder, str) and (name == "table" or folder is not None):
                raise CostError(f"cost.{name} must be the name of a folder{'' if name == 'table' else ', or null'}, not {folder!r}")
        if self.level not in LEVELS:
            raise CostError(f"cost.level must be one of {', '.join(LEVELS)}, not {self.level!r}")
        for name, value in (("seconds", self.seconds), ("doubt", self.doubt)):
            if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
                raise CostError(f"cost.{name} must be a number of at least 0, not {value!r}")

    @cached_property
    def store(self) -> Store:
        """The table. Raises CostError."""
        return Store(self.table, here(self.level), self.shipped)

    @cached_property
    def _sizes(self) -> Sizes:
        return Sizes(self.dims, self.unbound)

    @cached_property
    def _block(self) -> int:
        return written.block() if self.level == "all" else 1

    @cached_property
    def digest(self) -> str:
        """16 hex digits that stand for target, sizes and the prices that there were at first."""
        h = hashlib.blake2b(repr((self.store.target, self.doubt, sorted(self.dims.items()), self.unbound)).encode(), digest_size=8)
        for key, entry in sorted(self.store.entries.items()):
            h.update(f"{key} {entry.ms}\n".encode())
        return h.hexdigest()

    def cost_ms(self, graph: Graph) -> float:
        """The estimate for the whole graph. Raises DimsError naming a symbol without a size."""
        self._sizes.check(graph)
        found = list(self._table(graph).kernels())
        self._learn(found)
        return math.fsum(self._entry(k).ms for k in found)

    def node_ms(self, view: View, i: int) -> float:
        """The share of node `i`, reorders of its results among it; 0 where another node's kernel takes it along."""
        graph = view.graph if isinstance(view, Now) else None
        found = kernels(Spots(view, self._sizes, self._block), i) if graph is None else self._table(graph).rows[i].kernels
        self._learn(found)
        return math.fsum(self._entry(k).ms for k in found)

    def gain(self, graph: Graph, edit: Edit) -> float:
        """What the edit saves, in ms; 0 where that is within the noise."""
        return self.price(graph, edit).gain

    def price(self, graph: Graph, edit: Edit) -> Price:
        """The gain and what it rests on."""
        change = self._table(graph).change(edit)
        gain, doubt = self._difference(change.gone, change.made)
        return Price(0.0 if 0 < gain < doubt else gain, change.rests)

    def doubt_ms(self, a: Graph, b: Graph) -> float:
        """The noise of the kernels in which two graphs differ: a difference below that counts as none."""
        return self._difference(self.kernels(a), self.kernels(b))[1]

    def _difference(self, gone: Iterable[Kernel], made: Iterable[Kernel]) -> tuple[float, float]:
        """What kernels that go take longer than those that come, and how much of it may be noise; in ms."""
        less, more = Counter(gone), Counter(made)
        less, more = less - more, more - less
        self._learn([*less, *more])
        gain, doubt = 0.0, 0.0
        for sign, counted in ((1, less), (-1, more)):
            for kernel, n in counted.items():
                entry = self._entry(kernel)
                gain += sign * n * entry.ms
                doubt += (n * entry.ms * entry.noise) ** 2
        return gain, self.doubt * math.sqrt(doubt)

    def unknown(self, graph: Graph) -> list[str]:
        """Values of running nodes whose size stays unknown; their unknown dims count as 1."""
        return [
            graph.label(Value(i, p))
            for i, node in graph.nodes.items()
            if not node.constant and not node.is_source
            for p, t in enumerate(self._sizes.types(graph.nodes.__getitem__, i, graph.opset))
            if t is None or not t.static
        ]

    def kernels(self, graph: Graph) -> list[Kernel]:
        """The kernels of a graph, by the local rule."""
        return list(self._table(graph).kernels())

    def kernel_ms(self, kernel: Kernel) -> float:
        """The price of one kernel."""
        self._learn([kernel])
        return self._entry(kernel).ms

    @property
    def estimated(self) -> int:
        """How many kernels have an estimate for a price."""
        return self._counts["estimated"]

    def notes(self, graph: Graph | None = None) -> list[str]:
        """What the prices rest on, in words; with a graph, also whether the runtime makes of it what the rule says."""
        c = self._counts
        found = [f"{c['table']:,} kernels from the table, {c['measured']:,} measured now, {c['estimated']:,} estimated"]
        found = [f"{found[0]}; {self.store.target}"]
        return found if graph is None else [*found, self._checked(graph)]

    def _checked(self, graph: Graph) -> str:
        if self.level != "all":
            return "the kernel rule is not checked at this level"
        try:
            theirs = Counter((n.domain, n.op_type) for n in written.write(complete(graph)).graph.node)
        except RunError as e:
            return f"the kernel rule is not checked: {e}"
        ours = Counter((k.domain, k.op) for k in self._table(graph).kernels())
        total, same = sum(theirs.values()), sum((ours & theirs).values())
        if ours == theirs:
            return f"the kernels are those of the runtime, all {total}"
        return f"{same} of the runtime's {total} kernels are foretold; the others are priced as the rule makes them"

    def _table(self, graph: Graph) -> Table:
        found = self._tables.get(id(graph))
        if found is None or found.graph is not graph:
            near = next(reversed(self._tables.values()), None)
            if near is not None and near.graph.frame is not graph.frame:
                near = None
            found = self._tables[id(graph)] = Table(graph, self._sizes, self._block, near)
            while len(self._tables) > _TABLES:
                self._tables.popitem(last=False)
        self._tables.move_to_end(id(graph))
        return found

    @property
    def waited(self) -> float:
        """Seconds that measuring has taken, which is no part of a search."""
        return sum(s for s in self._spent if s < math.inf)

    def _learn(self, kernels: Iterable[Kernel]) -> None:
        """Looks up, measures or estimates what has no price yet."""
        missing = [k for k in dict.fromkeys(kernels) if k not in self._prices]
        if not missing:
            return
        known = [k for k in missing if self._known(k, "table")]
        left = self.seconds - sum(self._spent)
        if len(known) < len(missing) and left > 0:
            start = time.monotonic()
            try:
                measure([k for k in missing if k not in self._prices], self.store, left)
            except KeyboardInterrupt:
                self._spent.append(math.inf)
                raise
            self._spent.append(time.monotonic() - start)
        for k in missing:
            if k not in self._prices and not self._known(k, "measured"):
                self._prices[k] = Entry(self._estimate(k), DOUBT, 0)
                self._counts["estimated"] += 1

    def _estimate(self, kernel: Kernel) -> float:
        size = len(self.store)
        if size not in self._nearest:
            self._nearest.clear()
            self._nearest[size] = Nearest(
                *([(Kernel.of_key(k), e.ms) for k, e in t.items()] for t in (self.store.entries, self.store.foreign))
            )
        return self._nearest[size].ms(kernel)

    def _known(self, kernel: Kernel, how: str) -> bool:
        found = self.store.get(kernel.key)
        if found is None:
            return False
        self._prices[kernel] = found
        self._counts[how] += 1
        return True

    def _entry(self, kernel: Kernel) -> Entry:
        return self._prices[kernel]
