"""Admission: whether an upload would be taken, by what its request says before its body."""

from __future__ import annotations

import io
from collections.abc import MutableMapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections

from cgorl.web import quotas
from cgorl.web.access import STRANGER, by_password
from cgorl.web.owner import owner
from cgorl.web.refusals import RefusalError


def admit(scope: MutableMapping[str, Any]) -> None:
    """Raises RefusalError where it would not."""
    try:
        request = ASGIRequest(scope, io.BytesIO())
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
        request.user = by_password(request) or get_user(request)
        if settings.ACCOUNTS and not request.user.is_authenticated:
            raise RefusalError(401, STRANGER)
        quotas.check_jobs(owner(request))
        quotas.check_uploads(owner(request))
    finally:
        close_old_connections()
