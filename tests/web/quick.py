"""Passwords that are quick to check: guessing is meant to take long, tests are not."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class Quick(PBKDF2PasswordHasher):
    """The service's own, once over; the service can read it, too."""

    iterations = 1
