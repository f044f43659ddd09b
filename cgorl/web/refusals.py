"""Refusals: what the service will not take, with its HTTP status and a sentence that names the limit."""

from __future__ import annotations


class RefusalError(ValueError):
    """A request that is refused; the message is for its user."""

    def __init__(self, status: int, text: str, after: int = 0) -> None:
        """`status` is HTTP's, `after` the seconds until it may be tried again (0: not said)."""
        super().__init__(text)
        self.status, self.after = status, after
