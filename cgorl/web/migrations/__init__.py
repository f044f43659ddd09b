"""The tables, change by change."""
