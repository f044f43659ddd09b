"""Rules: what may be substituted for what, and where."""
