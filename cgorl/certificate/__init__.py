"""Proof that an optimized graph computes what the original does: each rewrite by itself, then the whole."""
