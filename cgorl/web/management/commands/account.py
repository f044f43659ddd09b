"""`account`: makes an account, gives it another password, or removes it with all that is its own; without a name, lists all."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cgorl.web import folders, tables
from cgorl.web.models import Job, Source


class Command(BaseCommand):
    """Asks for the password at a terminal, else reads it from its input: it stands on no command line."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """What it may be told."""
        parser.add_argument("name", nargs="?", help="who it is for")
        parser.add_argument("--remove", action="store_true", help="remove the account, its jobs and their files")

    def handle(self, *args: Any, **options: Any) -> None:
        """Does it, and says what was done."""
        tables.ready()
        name = options["name"]
        if name is None and options["remove"]:
            raise CommandError("whose account is to be removed?")
        if name is None:
            for each in User.objects.order_by("username").values_list("username", flat=True):
                self.stdout.write(each)
        elif options["remove"]:
            self._remove(name)
        else:
            self._make(name)
        if name is not None and not options["remove"] and not settings.ACCOUNTS:
            self.stderr.write("nobody is asked to log in yet: set CGORL_ACCOUNTS=true")

    def _make(self, name: str) -> None:
        user = User.objects.filter(username=name).first() or User(username=name)
        new = user.pk is None
        try:
            User.username_validator(name)
            password = _password()
            validate_password(password, user)
        except ValidationError as e:
            raise CommandError(" ".join(e.messages)) from None
        user.set_password(password)  # which also logs it out everywhere
        user.save()
        self.stdout.write(f"{name} {'can log in' if new else 'has another password'}")

    def _remove(self, name: str) -> None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no account '{name}'")
        jobs = list(Job.objects.filter(user=user).values_list("pk", flat=True))
        sources = {str(pk) for pk in Source.objects.filter(user=user).values_list("pk", flat=True)}
        user.delete()  # and with it all rows that are its own; a worker that runs one of them ends it
        for number in jobs:
            folders.remove_job(number)
        folders.remove("sources", sources)
        self.stdout.write(f"{name} is removed, with {len(sources)} uploads and {len(jobs)} jobs")


def _password() -> str:
    """The password, asked for twice, or the first line of the input. Raises CommandError."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Once more: ") != password:
        raise CommandError("these were two different ones")
    return password
