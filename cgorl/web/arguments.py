"""Numbers on the command line of the service, checked when they are read."""

from __future__ import annotations

from argparse import ArgumentTypeError


def count(text: str) -> int:
    """A whole number of at least 1. Raises ArgumentTypeError."""
    return _whole(text, 1, None)


def port(text: str) -> int:
    """A port to listen on, 1 to 65535. Raises ArgumentTypeError."""
    return _whole(text, 1, 65535)


def _whole(text: str, least: int, most: int | None) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ArgumentTypeError(f"'{text}' is no whole number {span}")
    return int(text)
