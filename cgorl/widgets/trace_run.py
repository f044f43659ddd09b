"""What TraceView reads of the folder of a run: the film, the prices, and the policy that chose, if one did."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config, jobs, pipeline
from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.report.film import Film
from cgorl.report.whatif.guide import Guide
from cgorl.search.trace import TraceError
from cgorl.widgets.source import prices

_AGENT = "cgorl.search.agent.Agent"
_CHECKPOINT = "checkpoint.pt"


class Run(NamedTuple):
    """`guide` makes what thinks of each step, if there is such; `note` says why it cannot be asked where it should be."""

    film: Film
    cost: CostModel | None
    guide: Callable[[], Guide] | None
    note: str


def read(path: Path, cost: CostModel | str | None, model: Graph | str | Path | None) -> Run:
    """The film in a run's folder (or of its trace.json), and how that run came to it. Raises TraceError, ConfigError, ModelError."""
    folder = path if path.is_dir() else path.parent
    try:
        trace = json.loads((path / "trace.json" if path.is_dir() else path).read_text())
        ledger = folder / "ledger.json"
        rows = json.loads(ledger.read_text())["rewrites"] if ledger.is_file() else None
    except (OSError, ValueError, LookupError) as e:
        raise TraceError(f"there is no trace in '{path}': {e}") from None
    cfg = config.kept(folder / "config.yaml")
    start = jobs.simplified(cfg, pipeline.load_model(model) if isinstance(model, str | Path) else model)
    options: dict[str, Any] = config.plain(cfg)
    rules = config.rule_set(options["rules"])
    film = Film.read(trace, rows, start, rules)
    given = prices(cost or jobs.cost(cfg), start)
    how = _policy(folder, options)
    if how is None:
        return Run(film, given, None, "")
    if find_spec("torch") is None or find_spec("torch_geometric") is None:
        note = "what the run's policy thought needs the agent's packages: pip install -c constraints.txt -e '.[agent]'"
        return Run(film, given, None, note)
    if not Path(how["path"]).is_file():
        return Run(film, given, None, f"the run's policy is not there any more: '{how['path']}'")
    return Run(film, given, lambda: Guide(rules=rules, **how), "")


def _policy(folder: Path, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where the policy lies that chose the rewrites of a run, and how it was made use of."""
    search = options.get("search") or {}
    if search.get("_target_") == _AGENT:
        from cgorl.search.agent import GENERAL

        return {"path": search["checkpoint"] or GENERAL, "temperature": search["temperature"]}
    return {"path": folder / _CHECKPOINT} if (folder / _CHECKPOINT).is_file() else None
