"""What the service is told by environment variables: read, checked, and the secret that is made once and kept."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

_DATABASES = ("postgres", "postgresql", "sqlite")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def flag(name: str, default: bool, source: Mapping[str, str] = os.environ) -> bool:
    """A variable that is true or false. Raises ImproperlyConfigured."""
    text = source.get(name, "").strip().lower()
    if text and text not in _TRUE + _FALSE:
        raise ImproperlyConfigured(f"{name} must be true or false, not '{text}'")
    return default if not text else text in _TRUE


def number(name: str, default: int, least: int = 0, source: Mapping[str, str] = os.environ) -> int:
    """A variable that is a whole number. Raises ImproperlyConfigured."""
    text = source.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number of at least {least}, not '{text}'")
    return int(text)


def words(name: str, default: str = "", source: Mapping[str, str] = os.environ) -> list[str]:
    """A variable that is a list, with commas between."""
    return [w for w in (w.strip() for w in source.get(name, default).split(",")) if w]


def database(given: str, default: str) -> dict[str, Any]:
    """The address of a database as Django wants it. Raises ImproperlyConfigured."""
    scheme = given.partition("://")[0]
    if given and scheme not in _DATABASES:
        raise ImproperlyConfigured(f"DATABASE_URL must be as in postgres://name:password@host/database, not begin with '{scheme[:20]}'")
    try:
        return dict(dj_database_url.parse(given or default))
    except ValueError:
        raise ImproperlyConfigured("DATABASE_URL cannot be read: signs like @ and / in a password are written %40 and %2F") from None


def secret(folder: Path, source: Mapping[str, str] = os.environ) -> str:
    """CGORL_SECRET_KEY, or else the secret kept in the folder, made when it is first asked for. Raises ImproperlyConfigured."""
    if given := source.get("CGORL_SECRET_KEY", ""):
        if len(given) < 32:
            raise ImproperlyConfigured("CGORL_SECRET_KEY must have at least 32 characters")
        return given
    path = folder / "secret.key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            made.touch(mode=0o600)
            made.write_text(secrets.token_urlsafe(48))
            with suppress(FileExistsError):  # another process was first: theirs holds
                os.link(made, path)
            made.unlink()
        return path.read_text().strip()
    except OSError as e:
        raise ImproperlyConfigured(f"cannot keep a secret in '{folder}': {e.strerror}; set CGORL_DATA or CGORL_SECRET_KEY") from None
