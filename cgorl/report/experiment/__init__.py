"""An experiment from its folders: one tidy frame, tables with intervals, figures, a page, and a report of W&B.

    of = read("runs/sweep/2026-...")     an Experiment: of a sweep, of runs of train.py or optimize.py, or of evaluate.py
    of.metrics                           tidy and wide: a row for each line of metrics; `tidy("runs/sweep/...")` is short for it
    of.results, of.jobs, of.curves       a row a job and graph; a row a job, the failed ones too; points of searches
    comparison(of)                       methods x problems with intervals over seeds (a Grid; CompareTable(of.results) shows it)
    differences(of)                      paired differences to the best, or to `reference`, with intervals
    ends(of)                             returns and speed of trainings at their ends
    learning_curves(of, metric)          a line and a band over seeds for each method
    returns(of), cost_over_time(of)      lists of pictures: extrinsic and intrinsic returns; anytime curves
    intervals(of)                        each seed, mean and interval, a picture for each problem
    rule_usage(of), rule_usage_over_time(of, method)    heat maps (in cgorl.report.experiment.figures)
    page(compose(of))                    the report as one HTML file (`compose` in .compose, `page` in .page, W&B's in .spec)

Figures are a `Picture`: shown by a notebook as they stand, `.save("x.svg")` (PNG, PDF) writes a file, `.figure` is matplotlib's.
`read(..., source="wandb")` reads the offline runs of W&B in the place of metrics.jsonl.
"""

from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.figures import cost_over_time, intervals, learning_curves, returns, rule_usage
from cgorl.report.experiment.read import read, tidy
from cgorl.report.experiment.standing import comparison, differences

__all__ = [
    "Experiment",
    "comparison",
    "cost_over_time",
    "differences",
    "intervals",
    "learning_curves",
    "read",
    "returns",
    "rule_usage",
    "tidy",
]
