"""Pictures of the service's pages, light and dark, wide and as on a phone, to look at: python -m tests.web.screenshots FOLDER."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.web.chromium import User, user
from tests.web.serving import serving
from tests.widgets.page import browser

MODEL = "squeezenet1_1"


def made(anna: User) -> dict[str, str]:
    """Two jobs, and the paths of the pages to look at."""
    found = []
    for search in ("greedy", "backtracking"):
        anna.go().click(f"button[value={MODEL}]")
        anna.tab.wait_for_selector("#options")
        source = anna.tab.url
        anna.tab.select_option("#f-device", "v100")
        anna.optimize(search=search, seconds=10).wait_for_selector("#verdict")
        found.append(anna.tab.url)
    token = [url.rstrip("/").rpartition("/")[2] for url in found]
    pages = {"home": "/", "model": source, "result": found[1], "jobs": "/jobs/", "delete": f"{found[0]}delete", "gone": "/jobs/none/"}
    return {**pages, "compare": f"/compare/?job={token[1]}&job={token[0]}"}


def shoot(tab: Any, path: Path) -> None:
    """The whole page, once all that is drawn has been."""
    for place in tab.query_selector_all("[data-graph], [data-film], figure.curve"):
        place.scroll_into_view_if_needed()
        tab.wait_for_timeout(700)
    tab.evaluate("scrollTo(0, 0)")
    tab.wait_for_timeout(200)
    tab.screenshot(path=str(path), full_page=True)


def main(folder: Path) -> None:
    """Writes the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, serving(Path(data)) as service, browser() as chromium:
        with user(chromium, service.url) as anna:
            pages = made(anna)
            state = anna.context.storage_state()
        for width in (1200, 360):
            for scheme in ("light", "dark"):
                look = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "storage_state": state}
                context = chromium.new_context(**look)
                for name, page in pages.items():
                    shoot(User(context, service.url).go(page), folder / f"{name}_{width}_{scheme}.png")
                context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
