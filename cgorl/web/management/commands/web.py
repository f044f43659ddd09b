"""`web`: a web server for the pages and the API; several, on any machine that shares database and files, behind a proxy."""

from __future__ import annotations

from typing import Any

import uvicorn
from django.core.management.base import BaseCommand, CommandParser

from cgorl.web import tables
from cgorl.web.arguments import count, port

_AT_ONCE, _LAST_WORDS = 2000, 5  # watches count too


class Command(BaseCommand):
    """Serves until it is told to end."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """What it may be told."""
        parser.add_argument("--address", default="127.0.0.1", help="what to listen on")
        parser.add_argument("--port", type=port, default=8000)
        parser.add_argument("--processes", type=count, default=1)
        parser.add_argument("--proxies", default="127.0.0.1", help="addresses of proxies whose X-Forwarded-For is believed")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serves."""
        tables.ready()
        self.stdout.write(f"answers on port {options['port']} of {options['address']}")
        uvicorn.run(
            "cgorl.web.asgi:application",
            host=options["address"],
            port=options["port"],
            workers=options["processes"],
            forwarded_allow_ips=options["proxies"],
            limit_concurrency=_AT_ONCE,
            timeout_graceful_shutdown=_LAST_WORDS,
            access_log=False,  # links to jobs are secrets
            server_header=False,
            lifespan="on",
            log_level="warning",
        )
