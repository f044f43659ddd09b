"""What the engine's parts cost: one module a benchmark, each with a `main(arguments)` that prints its figures."""
