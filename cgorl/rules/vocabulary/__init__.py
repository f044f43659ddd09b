"""The words that rules are written in: conditions, and functions that compute attributes and weights."""
