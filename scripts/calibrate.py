"""Shows what measured prices foretell of whole models, against the models run: python scripts/calibrate.py model=NAME_OR_FILE[,...]

A row for each model: nodes that the runtime runs, how many of them the kernel rule foretells exactly, the time foretold and
measured, and the operators that are furthest off. Missing prices are measured first. Keys are those of measure.py.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.calibrate("calibrate", sys.argv[1:], __doc__))
