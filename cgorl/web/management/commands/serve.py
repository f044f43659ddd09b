"""`serve`: the whole service on one machine: makes the tables, then runs the web server and the workers until Ctrl-C."""

from __future__ import annotations

import errno
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cgorl.limits import end_with_parent
from cgorl.web import tables
from cgorl.web.arguments import count, port

_PATIENCE = 15.0
"""Seconds that a part has to end before it is killed."""
_BREATH = 1.0


class Command(BaseCommand):
    """Starts everything, starts again what dies, and ends everything."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """What it may be told."""
        parser.add_argument("--address", default="127.0.0.1", help="what to listen on")
        parser.add_argument("--port", type=port, default=8000)
        parser.add_argument("--workers", type=count, default=1, help="jobs that run at once")
        parser.add_argument("--processes", type=count, default=1, help="web processes")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serves."""
        address, number = options["address"], options["port"]
        _check(address, number)
        if _loopback(address):
            os.environ.setdefault("CGORL_HTTPS", "false")  # nothing leaves this machine
        tables.answers()
        call_command("migrate", verbosity=0, interactive=False)
        me = [sys.executable, "-m", "cgorl.web"]
        parts = {"web": [*me, "web", f"--address={address}", f"--port={number}", f"--processes={options['processes']}"]}
        parts["look"] = [*me, "work", "--queue=look"]
        parts |= {f"worker {k + 1}": [*me, "work", "--queue=optimize"] for k in range(options["workers"])}
        told = threading.Event()
        for end in (signal.SIGINT, signal.SIGTERM):
            signal.signal(end, lambda *_: told.set())
        running = {name: _begin(command) for name, command in parts.items()}
        scheme = "http" if os.environ.get("CGORL_HTTPS", "").lower() in ("false", "0", "no", "off") else "https"
        shown = f"[{address}]" if ":" in address else address
        self.stdout.write(f"cgorl serves at http://{shown}:{number}/ (files in {settings.DATA}); Ctrl-C ends it")
        if scheme == "https":
            self.stdout.write("cookies need HTTPS: put a proxy in front, or set CGORL_HTTPS=false on a network that you trust")
        try:
            while not told.wait(_BREATH):
                for name, process in running.items():
                    if (code := process.poll()) is not None:
                        self.stderr.write(f"{name} ended with {code}: starting it again")
                        running[name] = _begin(parts[name])
        finally:
            _end(running)
            self.stdout.write("ended")


def _begin(command: list[str]) -> subprocess.Popen[bytes]:
    # Ctrl-C is for the one that began them, and so is what ends it; this process has one thread, as preexec_fn wants
    # what a part does is said above for all of them; what it logs goes to the standard error
    return subprocess.Popen(command, start_new_session=True, preexec_fn=end_with_parent, stdout=subprocess.DEVNULL)


def _end(running: dict[str, subprocess.Popen[bytes]]) -> None:
    for process in running.values():
        process.terminate()
    until = time.monotonic() + _PATIENCE
    for process in running.values():
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _check(address: str, number: int) -> None:
    """Raises CommandError where nothing can listen there, and says why."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((address, number))
        except OSError as e:
            if e.errno == errno.EADDRINUSE:
                raise CommandError(f"port {number} of {address} is taken: another one with --port=...") from None
            raise CommandError(f"cannot listen on port {number} of {address}: {e.strerror}") from None


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
