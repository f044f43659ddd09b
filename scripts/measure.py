"""Measures the kernels of models into this machine's table of prices: python scripts/measure.py model=NAME_OR_FILE[,...] [key=value ...]

Keys are those of optimize.py: cost.table=FOLDER, cost.level=extended, cost.seconds=60 (for each model), dims.batch=8, zoo.image=128.
Ctrl-C keeps what is done.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.calibrate("fill", sys.argv[1:], __doc__))
