"""The models that a command names, with their prices; and the table of prices filled for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from cgorl import config, jobs
from cgorl.cost.kernels.kernel import Kernel
from cgorl.cost.measure import measure
from cgorl.cost.measured import Measured
from cgorl.ir.graph import Graph
from cgorl.ir.sizes import Sizes, symbols
from cgorl.rules.rule_set import RuleSet

SECONDS = 600.0
"""For the missing prices of a model, unless `cost.seconds` says otherwise."""


class Chosen(NamedTuple):
    """A model by name, cleaned up, with its prices, the sizes of its symbols and the rules that the command names."""

    name: str
    graph: Graph
    prices: Measured
    sizes: Mapping[str, int]
    rules: RuleSet


def chosen(arguments: Sequence[str]) -> Iterator[Chosen]:
    """Each model that `model=a,b` names. Raises ConfigError, and DimsError for a symbol without a size."""
    given = next((a.partition("=")[2] for a in arguments if a.startswith("model=")), None)
    if given is None:
        raise config.ConfigError("'model' must be given, as model=...")
    rest = [a for a in arguments if not a.startswith("model=")]
    for name in config.several("model", given):
        cfg = configured(rest, name)
        options = config.plain(cfg)
        graph, rules = jobs.simplified(cfg), config.rule_set(options["rules"])
        Sizes(options["dims"], options["unbound"]).check(graph)
        sizes = {s: options["dims"].get(s, options["unbound"]) for s in symbols(graph)}
        yield Chosen(Path(name).stem, graph, measured(cfg), sizes, rules)


def configured(arguments: Sequence[str], model: str) -> Any:
    """The configuration of a model, with time for missing prices. Raises ConfigError where its prices are no measured ones."""
    if any(a.startswith("cost=") and a != "cost=measured" for a in arguments):
        raise config.ConfigError("only cost=measured has prices that are measured")
    return config.load_config("optimize", ["cost=measured", f"cost.seconds={SECONDS}", *arguments, f"model={model}"])


def measured(cfg: Any) -> Measured:
    """The prices that a configuration of `configured` names."""
    prices = jobs.cost(cfg)
    assert isinstance(prices, Measured)
    return prices


def fill(arguments: Sequence[str], console: Console) -> None:
    """Measures the kernels of the models that `arguments` name into the table, with progress; an interrupt keeps what is done."""
    for name, graph, prices, _, _ in chosen(arguments):
        found = prices.kernels(graph)
        new = {k for k in found if prices.store.get(k.key) is None}
        console.print(f"{name}: {len(found)} kernels, {len(set(found))} distinct, {len(new)} not in the table", highlight=False)

        def tell(done: int, total: int, kernel: Kernel | None, prices: Measured = prices) -> None:
            entry = prices.store.get(kernel.key) if kernel is not None else None
            if entry is not None:
                console.print(f"  {done:4} of {total}  {1000 * entry.ms:9.1f} us  {kernel}", highlight=False, markup=False)

        went = measure(found, prices.store, prices.seconds, tell)
        text = f"{went.done} priced, {len(went.failed)} cannot be run alone, {went.left} left"
        console.print(
            f"{name}: {text}; {100 * went.refused:.0f} % of the samples refused; {prices.store.path}", highlight=False, markup=False
        )
