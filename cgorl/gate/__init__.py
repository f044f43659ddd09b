"""The gate: a graph is called faster only once it has been run against the original, and the best measured one is kept."""

from cgorl.gate.judge import ORIGINAL, SIMPLIFIED, Verdict
from cgorl.gate.runner import runners
from cgorl.gate.timing import Ratio, Timing, compare

__all__ = ["ORIGINAL", "SIMPLIFIED", "Ratio", "Timing", "Verdict", "compare", "runners"]
