"""Guessing of passwords: after some wrong ones from an address, none is looked at for a while; right ones are not either."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_login_failed
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from cgorl.web.owner import address

_MOST, _SECONDS = 10, 900


class Throttle:
    """A backend that never knows anybody, and lets nobody be known where too many wrong passwords came; each web process counts."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        """Raises PermissionDenied, after which Django asks no other backend."""
        if request is not None and closed(request):
            raise PermissionDenied

    def get_user(self, number: int) -> None:
        """Nobody."""


def closed(request: HttpRequest) -> bool:
    """Whether no password is looked at that comes from where this request does."""
    return bool(cache.get(_key(request), 0) >= _MOST)


@receiver(user_login_failed)
def _failed(sender: Any, request: HttpRequest | None = None, **more: Any) -> None:
    if request is not None:
        cache.add(_key(request), 0, _SECONDS)
        cache.incr(_key(request))


def _key(request: HttpRequest) -> str:
    return f"wrong-passwords-{address(request)}"
