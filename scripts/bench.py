"""Measures a part of the engine: python scripts/bench.py NAME [argument ...], NAME one of the modules of cgorl.report.bench."""

import importlib
import pkgutil
import sys

from cgorl.report import bench

if __name__ == "__main__":
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"{__doc__}\nNAME is one of: {', '.join(names)}")
    try:
        importlib.import_module(f"cgorl.report.bench.{sys.argv[1]}").main(sys.argv[2:])
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except ValueError as e:
        if not type(e).__module__.startswith("cgorl"):
            raise
        sys.exit(f"error: {e}")
