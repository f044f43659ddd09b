"""Optimizes one model and proves the result: python scripts/optimize.py model=FILE_OR_NAME output=out.onnx [key=value ...]

Exit code: 0 optimized or already optimal, 3 refused, 4 proof failed (the last good graph is written), 1 error, 130
interrupted before there was a proven result. With exit_codes=detailed, already optimal is 10, and 11 says
that the budget ended before anything was found.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.optimize(sys.argv[1:], __doc__))
