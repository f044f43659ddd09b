"""Widgets: graphs, optimizations, rules and runs to look at in a notebook; each also has a picture that needs no program to be seen."""

from cgorl.widgets.graph_view import GraphView
from cgorl.widgets.rule_browser import RuleBrowser
from cgorl.widgets.run_view import RunView
from cgorl.widgets.trace_view import TraceView

__all__ = ["GraphView", "RuleBrowser", "RunView", "TraceView"]
