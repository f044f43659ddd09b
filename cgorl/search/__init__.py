"""Searchers: every method behind one protocol."""
