"""Reports an experiment: python scripts/report.py sweep=FOLDER [key=value ...]

FOLDER is that of a sweep, of one run or several of train.py or optimize.py, or of an evaluation. Written are report.html, a
page that opens offline, with what was run, the methods with intervals over seeds, curves, rules, best graphs and failed jobs;
report.wandb.json, the same as a report of Weights & Biases; and comparison.csv.

    report.py sweep=runs/sweep/2026-...               after scripts/sweep.py -m icm.beta=0.1,0.2 seed=1,2,3
    report.py sweep=runs/evaluate/2026-... figures=pdf
    report.py sweep=runs/sweep/2026-... push=true     to W&B, with its runs, once logged in

Exit code: 0, 1 if there is nothing to report, or W&B could not be reached.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.report(sys.argv[1:], __doc__))
