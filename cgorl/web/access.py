"""Who may call the API: everybody, or where there are accounts, those who are logged in or give name and password."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.views.decorators.csrf import csrf_exempt
from ninja.utils import check_csrf

from cgorl.web.refusals import RefusalError

_SAFE = ("GET", "HEAD", "OPTIONS")


def access(request: HttpRequest) -> Any:
    """What ninja asks; falsy: 401. Raises RefusalError (403) for a change asked for by another site's page."""
    given = request.headers.get("Authorization", "")
    if given.lower().startswith("basic ") and (user := _basic(request, given[6:])) is not None:
        request.user = user
        return user
    if request.method not in _SAFE and settings.SESSION_COOKIE_NAME in request.COOKIES:
        _same_site(request)
    return request.user.is_authenticated if settings.ACCOUNTS else True


def _same_site(request: HttpRequest) -> None:
    """A request with a session's cookie comes from a browser: it must show that it comes from a page of ours."""
    if check_csrf(request, csrf_exempt(lambda _: None)) is not None:
        raise RefusalError(403, "the request does not come from a page of this service (send its X-CSRFToken, or no cookie)")


def _basic(request: HttpRequest, given: str) -> Any:
    try:
        name, _, password = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return authenticate(request, username=name, password=password)
