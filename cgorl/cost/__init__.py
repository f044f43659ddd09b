"""Cost models: estimated run time of a graph."""
