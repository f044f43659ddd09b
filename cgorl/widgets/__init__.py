"""Widgets: graphs, optimizations, rules, runs and comparisons to look at in a notebook, and a panel to optimize with.

Each also has a picture that needs no program to be seen.
"""

from cgorl.widgets.compare_table import CompareTable
from cgorl.widgets.graph_view import GraphView
from cgorl.widgets.optimize_panel import OptimizePanel
from cgorl.widgets.rule_browser import RuleBrowser
from cgorl.widgets.run_view import RunView
from cgorl.widgets.trace_view import TraceView

__all__ = ["CompareTable", "GraphView", "OptimizePanel", "RuleBrowser", "RunView", "TraceView"]
