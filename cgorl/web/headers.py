"""What every answer carries beside what Django's own middleware sets, and what every page knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

_POLICY = "camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()"

Answer = Callable[[HttpRequest], HttpResponse]


@sync_and_async_middleware
def headers(get_response: Answer | Callable[[HttpRequest], Awaitable[HttpResponse]]) -> Any:
    """Nothing private is kept by caches, read by other sites, or found by search engines."""

    def put(response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        response.headers.setdefault("Permissions-Policy", _POLICY)
        response.headers.setdefault("X-Robots-Tag", "noindex, nofollow")
        return response

    if iscoroutinefunction(get_response):

        async def later(request: HttpRequest) -> HttpResponse:
            return put(await get_response(request))

        return later
    return lambda request: put(get_response(request))


def everywhere(request: HttpRequest) -> dict[str, Any]:
    """What every template knows: `accounts` (whether one logs in), `keep_hours` (how long files stay), `most_upload_mb`."""
    return {
        "accounts": settings.ACCOUNTS,
        "keep_hours": settings.KEEP_SECONDS // 3600,
        "most_upload_mb": settings.MOST_UPLOAD_BYTES >> 20,
    }
