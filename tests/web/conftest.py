"""The service in a folder of its own: its tables made once for all tests of a process, and emptied after each."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("django")
pytest.importorskip("django_tasks_db")

_DATA = Path(tempfile.mkdtemp(prefix="cgorl-web-"))
atexit.register(shutil.rmtree, _DATA, ignore_errors=True)
for _name in [n for n in os.environ if n.startswith("CGORL_") and n != "CGORL_TEST_DATABASE_URL"]:
    del os.environ[_name]
os.environ |= {"CGORL_DATA": str(_DATA), "CGORL_HTTPS": "false", "CGORL_HOSTS": "testserver,localhost,127.0.0.1"}
os.environ["DATABASE_URL"] = os.environ.get("CGORL_TEST_DATABASE_URL", "")  # never the tables of a service that runs here
os.environ["DJANGO_SETTINGS_MODULE"] = "cgorl.web.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402

from tests.web.serving import Service, serving  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def _tables() -> Iterator[None]:
    setup_test_environment(debug=False)
    call_command("migrate", verbosity=0, interactive=False)
    from django.test import override_settings

    with override_settings(PASSWORD_HASHERS=["tests.web.quick.Quick"]):
        yield


@pytest.fixture(autouse=True)
def _emptied() -> Iterator[None]:
    yield
    from django.contrib.auth.models import User
    from django.contrib.sessions.models import Session
    from django_tasks_db.models import DBTaskResult

    from cgorl.web import folders, runner
    from cgorl.web.models import Job, Source

    runner.stopping.clear()
    for table in (Job, Source, Session, DBTaskResult, User):
        table.objects.all().delete()
    for kind in folders.KINDS:
        shutil.rmtree(_DATA / kind, ignore_errors=True)
    folders.make()


@pytest.fixture
def browser() -> Callable[[], Client]:
    """Makes clients, each with cookies of its own, that have seen the first page and hear of errors as a user does."""

    def made() -> Client:
        found = Client(raise_request_exception=False)
        found.get("/")
        return found

    return made


@pytest.fixture
def client(browser: Callable[[], Client]) -> Client:
    """One of them."""
    return browser()


@pytest.fixture
def settings_of() -> Iterator[Callable[..., None]]:
    """Sets settings for a test."""
    from django.test import override_settings

    with ExitStack() as stack:
        yield lambda **values: stack.enter_context(override_settings(**values))


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The real service, in processes of its own."""
    with serving(tmp_path_factory.mktemp("service")) as found:
        yield found
