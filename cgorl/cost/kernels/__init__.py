"""Which kernels a runtime makes of a graph, and what they are called."""
