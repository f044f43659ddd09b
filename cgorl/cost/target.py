"""Target: what a measured price is good for: runtime, session options and processor."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import onnxruntime as ort

from cgorl.cost.model import CostError

LEVELS = {"all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL, "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED}
"""Session levels that the kernel rule knows: `extended` has no blocked layout."""

_FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "amx_tile", "asimd", "sve")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a price was measured. Prices of targets that differ in anything are never mixed."""

    runtime: str
    version: str
    provider: str
    level: str
    threads: int
    cpu: str
    features: str
    protocol: int = 2
    """How the prices are measured: those of another protocol mean something else."""

    @property
    def digest(self) -> str:
        """12 hex digits that stand for the target."""
        return hashlib.blake2b(json.dumps(asdict(self), sort_keys=True).encode(), digest_size=6).hexdigest()

    @property
    def file_name(self) -> str:
        """The name of its table."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.runtime}-{self.version}-{self.level}-{self.cpu}".lower()).strip("-")
        return f"{words}-{self.digest}.jsonl"

    def __str__(self) -> str:
        """The target in words."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.runtime} {self.version}, level {self.level}, {threads}, {self.cpu} ({self.features})"


def here(level: str = "all") -> Target:
    """This machine with one thread at a session level. Raises CostError for a level without a rule."""
    if level not in LEVELS:
        raise CostError(f"there is no kernel rule for session level '{level}'; there is one for {', '.join(LEVELS)}")
    name, features = _processor()
    return Target("onnxruntime", ort.__version__, "CPUExecutionProvider", level, 1, name, features)


@lru_cache(maxsize=1)
def _processor() -> tuple[str, str]:
    """Name with family and model, and those features that decide which kernels a runtime has."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine(), platform.machine()
    fields: dict[str, str] = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text.split("\n\n")[0], re.MULTILINE))
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" {fields['cpu family']}/{fields.get('model', '')}"
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return name, " ".join(f for f in _FEATURES if f in flags) or platform.machine()
