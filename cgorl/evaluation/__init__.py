"""Evaluations: methods x models x seeds into one table."""
