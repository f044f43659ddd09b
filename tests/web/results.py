"""What a job on a small model comes to, without a service."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import onnx

import cgorl
from cgorl.ir.from_proto import from_proto
from cgorl.report.brief import brief
from cgorl.report.ledger import ledger, summary
from cgorl.report.screen import lines
from cgorl.web import process
from tests.web.models import small


@cache
def result(**how: Any) -> dict[str, Any]:
    """The result as the job's process tells it, and in `rows_of_ledger` what it writes to its folder."""
    done = cgorl.optimize(from_proto(onnx.load_from_string(small())), **how)
    end = {"summary": summary(done), "lines": lines(done), "operators": [], "files": [], "rewrites": len(done.trace)}
    more = {"folder": "run", "files": [["net_optimized.onnx", 900], ["trace.json", 10]], "counts": process._counts(done)}
    told = {"summary": end["summary"], "steps": len(done.trace), "drawn": True, "points": [[0, 2.0], [1, 1.0]]}
    return {**brief(end, Path("run")), **more, **told, "rows_of_ledger": ledger(done)}
