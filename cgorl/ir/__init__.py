"""The graph: nodes, files in and out, running, cleaning up."""
