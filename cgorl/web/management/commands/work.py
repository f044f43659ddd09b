"""`work`: a worker, which runs jobs one after another; as many as wanted, on any machine that shares database and files."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connections
from django.utils.crypto import get_random_string
from django_tasks_db.management.commands.db_worker import Worker

from cgorl.web import queue, runner, sweep, tables
from cgorl.web.models import Kind

_RECOVER, _EXPIRE = 5.0, 300.0
"""Seconds between two looks for jobs of dead workers, and for what has expired."""


class Command(BaseCommand):
    """Runs jobs until it is told to end (SIGTERM, Ctrl-C): the job at hand then goes back into the queue."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """What it may be told."""
        parser.add_argument("--queue", choices=[*Kind, "all"], default="all", help="which jobs it runs")
        parser.add_argument("--interval", type=float, default=0.5, help="seconds between two looks at an empty queue")

    def handle(self, *args: Any, **options: Any) -> None:
        """Works."""
        tables.ready()
        queues = list(Kind) if options["queue"] == "all" else [options["queue"]]
        worker = Worker(
            queue_names=queues,
            interval=options["interval"],
            batch=False,
            backend_name="default",
            startup_delay=False,
            max_tasks=None,
            worker_id=get_random_string(16),
            excluded_queue_names=[],
        )

        def end(number: int, frame: Any) -> None:
            runner.stopping.set()
            worker.running = False
            if not worker.running_task:
                sys.exit(0)  # it may be asleep

        self.stdout.write(f"works: {' and '.join(queues)}")
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        threading.Thread(target=_housekeeping, daemon=True).start()
        worker.run()


def _housekeeping() -> None:
    """Sweeps now and then, whatever the job at hand is doing. Every worker does; each step may be done by several at once."""
    expired = 0.0
    while True:
        try:
            queue.recover()
            if time.monotonic() - expired > _EXPIRE or not expired:
                expired = time.monotonic()
                sweep.expire()
        except (DatabaseError, queue.Lost):
            pass  # busy, away, or another worker was first: next time
        finally:
            connections.close_all()
        time.sleep(min(_RECOVER, settings.LEASE_SECONDS / 2))
