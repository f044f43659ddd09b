"""Whose a request is: an account's where there are accounts, or else that of an anonymous session; and which jobs it may see.

A job's link is its key: 192 random bits, shown to its owner alone. With accounts, a job is its user's and nobody else's.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest

from cgorl.web.models import Job, Kind, Source, token

_KEY = "owner"
_Row = TypeVar("_Row", Job, Source)


class Owner(NamedTuple):
    """Who made a thing: an account, a session ("" without one), and a keyed digest of the address."""

    user: Any
    session: str
    address: str

    def fields(self) -> dict[str, Any]:
        """As fields of a row."""
        return {"user": self.user, "owner": self.session, "address": self.address}

    def own(self) -> Q:
        """What is this owner's."""
        if self.user is not None:
            return Q(user=self.user)
        return Q(user=None, owner=self.session) & ~Q(owner="")


def owner(request: HttpRequest, begin: bool = False) -> Owner:
    """The owner that a request speaks for; `begin` starts an anonymous session where there is none."""
    user = request.user if request.user.is_authenticated else None
    if begin and user is None and not request.session.get(_KEY):
        request.session[_KEY] = token()
    return Owner(user, "" if user is not None else request.session.get(_KEY, ""), address(request))


def address(request: HttpRequest) -> str:
    """A keyed digest of where a request comes from: enough to count by, nothing to know anybody by."""
    where = str(request.META.get("REMOTE_ADDR", ""))
    return hmac.new(settings.SECRET_KEY.encode(), where.encode(), hashlib.sha256).hexdigest()[:32]


def job(request: HttpRequest, name: str) -> Job:
    """The optimization that a link names. Raises Http404."""
    found = find(Job, request, name)
    if found.kind != Kind.OPTIMIZE:
        raise Http404
    return found


def mine(rows: QuerySet, request: HttpRequest) -> QuerySet:
    """Those of `rows` that are the owner's own, for a list."""
    return rows.filter(owner(request).own())


def find(table: type[_Row], request: HttpRequest, name: str) -> _Row:
    """The row of a table that a link names. Raises Http404, the same for one that there is not and one that is another user's."""
    found: _Row | None = table.objects.filter(token=name).first()
    if found is None or (settings.ACCOUNTS and found.user != (request.user if request.user.is_authenticated else None)):
        raise Http404
    return found
