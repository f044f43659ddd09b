"""A user of the service in a real browser: a context with cookies of its own, which notes what the pages should not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 90_000
"""Milliseconds that anything may take, on a machine that is busy with other things."""


class User:
    """`tab` is the page; `complaints` are errors of scripts and policies, failed loads, and requests to anywhere else."""

    def __init__(self, context: Any, url: str) -> None:
        self.url, self.complaints = url, []
        context.set_default_timeout(PATIENCE)
        context.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(f"console: {m.text}"))
        context.on("weberror", lambda e: self.complaints.append(f"script: {e.error}"))
        context.on("request", lambda r: r.url.startswith((url, "data:", "blob:")) or self.complaints.append(f"outside: {r.url}"))
        context.on("response", lambda r: r.status >= 500 and self.complaints.append(f"{r.status}: {r.url}"))
        self.context = context
        self.tab = context.new_page()

    def go(self, path: str = "/") -> Any:
        """Opens a page."""
        self.tab.goto(path if path.startswith("http") else self.url + path)
        return self.tab

    def upload(self, *files: Path) -> Any:
        """Uploads a model and waits until it is known what it is."""
        tab = self.go()
        tab.set_input_files("#files", [str(f) for f in files])
        tab.click(".send")
        tab.wait_for_url("**/models/**")
        tab.wait_for_selector("#options, .verdict")
        return tab

    def optimize(self, **choices: Any) -> Any:
        """Fills in the form that stands there, starts the job, and waits for its page."""
        for name, value in choices.items():
            if name == "search":
                self.tab.select_option("#f-search", value)
            else:
                self.tab.fill(f"[name={name}]", str(value))
        self.tab.click("#options button.primary")
        self.tab.wait_for_url("**/jobs/**")
        return self.tab

    def tab_to(self, selector: str) -> None:
        """Goes on by the keyboard until that has the focus."""
        for _ in range(120):
            if self.tab.evaluate("(s) => Boolean(document.activeElement?.matches(s))", selector):
                return
            self.tab.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {selector}")


@contextmanager
def user(browser: Any, url: str, **how: Any) -> Iterator[User]:
    """A user, with cookies of its own, whose pages must not have complained at the end."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **how})
    try:
        found = User(context, url)
        yield found
        assert found.complaints == [], found.complaints
    finally:
        context.close()
