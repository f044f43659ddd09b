"""The page of a job says what came of it, and whatever names a model has, they are text."""

from __future__ import annotations

from html.parser import HTMLParser

from cgorl.report.page import page

BRIEF = {
    "headline": "optimized: 2 → 1 ms estimated (-50 %)",
    "proven": "equal on 3 inputs",
    "rows": [["nodes", "3", "2", "-33.3 %"]],
    "operators": [["Conv", "2.0", "1.0", "-50.0 %"]],
    "lines": ["status    optimized"],
}
EVIL = "<script>alert(1)</script>"
ROW = {"rule": "conv-batchnorm", "names": [EVIL, "x"], "before_ms": 2.0, "after_ms": 1.0, "measured": {"share": 0.25}}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_whole_and_names_are_text() -> None:
    text = page(EVIL, BRIEF, [ROW] * 501, {"search": "beam", "dims": {}, "seconds": 5.0})
    tags = Tags()
    tags.feed(text)
    assert not tags.open and "script" not in tags.seen and text.count(EVIL) == 0
    for word in ("optimized: 2 → 1 ms", "equal on 3 inputs", "25.0 %", "and 1 more", "beam", "conv-batchnorm"):
        assert word in text
    assert "<td>dims</td>" not in text


def test_a_job_that_changed_nothing_has_no_table_of_rewrites() -> None:
    assert "Rewrites" not in page("m", {**BRIEF, "operators": []}, [], {})
