"""Holds measured prices against what is measured: python scripts/calibrate.py [models] [pairs] [variants] model=NAME_OR_FILE[,...]

models: each model's kernels that the rule foretells exactly, its time foretold and measured, and the operators that are furthest off;
pairs: blocks before and after a substitution, and whether the sign of the gain is foretold; variants: random rewrites of the first
model, and whether they are put into order. All three without a word. Missing prices are measured first; tables go to the screen, rows
and a picture into a folder under runs/calibrate. Keys are those of measure.py.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.calibrate("calibrate", sys.argv[1:], __doc__))
