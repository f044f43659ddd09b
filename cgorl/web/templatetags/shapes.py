"""Filters and tags of the templates: sizes, times and bars."""

from __future__ import annotations

import re
from datetime import datetime

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from cgorl.web.labels import label

register = template.Library()


@register.filter
def megabytes(count: int) -> str:
    """Bytes as people read them, in powers of ten like the rest of cgorl."""
    if count < 1_000_000:
        return f"{max(1, round(count / 1000)) if count else 0:,} kB"
    return f"{count / 1e6:,.{1 if count < 1e8 else 0}f} MB"


@register.filter
def breakable(name: str) -> SafeString:
    """A name that may go on in the next line behind its signs, rather than within its words."""
    return mark_safe("<wbr>".join(conditional_escape(part) for part in re.findall(r"[^_/-]*[_/-]+|[^_/-]+$", name)))


@register.filter
def shape(dims: list[int | str | None] | None) -> str:
    """The shape of a value."""
    if dims is None:
        return "unknown shape"
    return " × ".join("?" if d is None else str(d) for d in dims) or "one number"


@register.filter
def moment(text: str | None) -> SafeString | str:
    """A time (ISO 8601), which the page's script turns into the reader's own."""
    if not text:
        return ""
    when = datetime.fromisoformat(text)
    return format_html('<time datetime="{}">{}</time>', text, f"{when:%d %b %Y, %H:%M} UTC".lstrip("0"))


@register.simple_tag
def bar(share: float | None, tone: str = "") -> SafeString:
    """A bar that is so much of its cell wide, for the eye alone: the figure stands beside it."""
    wide = f"{100 * min(1.0, max(0.0, share or 0.0)):.1f}%"
    return format_html('<svg class="bar {}" aria-hidden="true" focusable="false"><rect width="{}" height="100%"/></svg>', tone, wide)


@register.simple_tag
def share(part: float, whole: float | None) -> float:
    """How much of the whole a part is."""
    return part / whole if whole else 0.0


@register.simple_tag
def choice(names: list[str], k: int) -> str:
    """The k-th of a list, if there are so many."""
    return names[k] if k < len(names) else ""


@register.filter
def pairs(mapping: dict[str, int]) -> list[tuple[str, int]]:
    """Keys and values; a template's own way to them would stumble over a key that is called "items"."""
    return list(mapping.items())


@register.filter
def method(options: dict[str, object]) -> str:
    """How a job searches, in a word or two."""
    return label("search", str(options.get("search"))).title + (", measured" if options.get("cost") == "measured" else "")


@register.filter
def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
