"""A database that will not do is said to be so in a sentence, before anything is begun."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db.utils import ConnectionHandler

from cgorl.web import tables
from cgorl.web.environment import database

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}}


@pytest.mark.parametrize(
    "address", ["nonsense", "mysql://a@b/c", "postgres://x:a/b@c@h/d", "postgres://a:b@[::1/d", "postgres://u@h:port/d"]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL ") as said:
        database(address, "sqlite:///x")
    assert "a/b" not in str(said.value)  # a password, perhaps


def test_addresses() -> None:
    assert database("", "sqlite:////srv/x.db")["NAME"] == "/srv/x.db"
    found = database("postgres://cgorl:p%40ss@db.lab.example:5433/tables", "")
    told = [found[k] for k in ("HOST", "PORT", "USER", "PASSWORD", "NAME")]
    assert told == ["db.lab.example", 5433, "cgorl", "p@ss", "tables"]


def test_one_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tables.answers()
    nowhere = {"default": {**SQLITE, "NAME": tmp_path / "nowhere" / "x.db"}}
    monkeypatch.setattr(tables, "settings", SimpleNamespace(DATABASES=nowhere))
    with pytest.raises(CommandError, match=r"^the database cannot be reached: .*\(DATABASE_URL says where it is\)$"):
        tables.answers()


def test_one_without_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tables.ready()
    empty = ConnectionHandler({"default": {**SQLITE, "NAME": tmp_path / "x.db"}})["default"]
    monkeypatch.setattr(tables, "connection", empty)
    with pytest.raises(CommandError, match="migrate"):
        tables.ready()
