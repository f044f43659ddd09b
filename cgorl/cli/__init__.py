"""The command line: arguments -> a job on the screen -> an exit code; every error is one clear line."""

from cgorl.cli.compare_searches import evaluate
from cgorl.cli.make_report import report
from cgorl.cli.measure_prices import calibrate
from cgorl.cli.optimize_model import optimize
from cgorl.cli.show_rules import rules
from cgorl.cli.train_agent import sweep, train

__all__ = ["calibrate", "evaluate", "optimize", "report", "rules", "sweep", "train"]
