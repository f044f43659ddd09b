"""Runs: what trainings and searches wrote while they ran, read while they run and after, as curves."""
