"""The database: whether it answers, and has the tables that this version needs, before anything is begun on it."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import ConnectionHandler


def answers() -> None:
    """Raises CommandError where the database cannot be reached: said at once, where a pool would try for half a minute."""
    plain = {**settings.DATABASES["default"]}
    plain["OPTIONS"] = {k: v for k, v in plain["OPTIONS"].items() if k != "pool"}
    found = ConnectionHandler({"default": plain})["default"]
    try:
        found.ensure_connection()
    except DatabaseError as e:
        raise CommandError(f"the database cannot be reached: {str(e).splitlines()[0]} (DATABASE_URL says where it is)") from None
    finally:
        found.close()


def ready() -> None:
    """Raises CommandError where that is so, or tables are not there or older than this version."""
    answers()
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    connection.close()
    if missing:
        raise CommandError("the database has no tables yet, or older ones: run `python -m cgorl.web migrate` first")
