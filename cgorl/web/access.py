"""Who may call the API: everybody, or where there are accounts, those who are logged in or give name and password."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate
from django.http import HttpRequest
from ninja.utils import check_csrf

from cgorl.web.refusals import RefusalError

STRANGER = "log in first, or give name and password"
_SAFE = ("GET", "HEAD", "OPTIONS")


def access(request: HttpRequest) -> Any:
    """What ninja asks; falsy: 401. Raises RefusalError (403) for a change asked for by another site's page."""
    if (user := by_password(request)) is not None:
        request.user = user
        return user
    if request.method not in _SAFE and settings.SESSION_COOKIE_NAME in request.COOKIES:
        _same_site(request)
    return request.user.is_authenticated if settings.ACCOUNTS else True


def by_password(request: HttpRequest) -> Any:
    """The account whose name and password a request carries; None without those, or where they are wrong."""
    given = request.headers.get("Authorization", "")
    if not settings.ACCOUNTS or not given.lower().startswith("basic "):
        return None
    try:
        name, _, password = base64.b64decode(given[6:], validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return authenticate(request, username=name, password=password)


def _same_site(request: HttpRequest) -> None:
    """A request with a session's cookie comes from a browser: it must show that it comes from a page of ours."""
    if check_csrf(request) is not None:
        raise RefusalError(403, "the request does not come from a page of this service (send its X-CSRFToken, or no cookie)")
