"""Graphs as drawings: what of a graph is shown, where it stands, and the picture that needs no program to be seen."""
