"""Answers as HTTP wants them: HEAD, methods that are not there, and the API's errors; and what of it is logged."""

from __future__ import annotations

import asyncio
import logging
import warnings
from typing import Any

import pytest
from django.test import AsyncClient, Client

from tests.web.test_api import JOBS, post
from tests.web.test_privacy import finished


def test_head_says_what_get_would(client: Client) -> None:
    found = post(client, zoo="resnet18")
    finished(found)
    job = f"{JOBS}/{found['id']}"
    files = [f"{job}/files/out.onnx", f"{found['url']}files/out.onnx"]
    pages = ["/", "/jobs/", found["url"], found["source"]["url"], "/health", JOBS, job, f"{job}/events", "/api/v1/openapi.json"]
    for path in (*pages, *files):
        got, head = client.get(path), client.head(path)
        assert (head.status_code, head["Content-Type"], head.content) == (200, got["Content-Type"], b""), path
        assert path not in files or head["Content-Length"] == "3"
    assert client.head("/jobs/nothing/").status_code == client.head(f"{JOBS}/nothing").status_code == 404
    assert client.head("/static/cgorl/site.css")["Content-Type"].startswith("text/css")


def test_a_method_that_is_not_there(client: Client) -> None:
    asked = (
        ("put", JOBS, {"GET", "POST"}),
        ("delete", JOBS, {"GET", "POST"}),
        ("post", f"{JOBS}/x", {"GET", "DELETE"}),
    )
    for method, path, there in asked:
        response = getattr(client, method)(path)
        assert response.status_code == 405 and set(response["Allow"].split(", ")) == there
        assert response.json()["detail"].startswith(f"{method.upper()} is not for this address: ")
    assert client.put("/jobs/").status_code == 405


def test_addresses_of_the_api_that_there_are_not(client: Client) -> None:
    for path in ("/api/", "/api/v2/jobs", "/api/v1/job", f"{JOBS}/", f"{JOBS}/x/files/", f"{JOBS}/x/files/a/b"):
        for response in (client.get(path), client.post(path)):
            assert response.status_code == 404 and "nothing" in response.json()["detail"], path
    other = client.get(JOBS, headers={"host": "other.example"})
    assert other.status_code == 400 and "CGORL_HOSTS" in other.json()["detail"]


def test_files_of_pages_are_handed_over_without_a_warning() -> None:
    async def fetched() -> tuple[Any, bytes, Any]:
        first = await AsyncClient().get("/static/cgorl/site.css")
        again = await AsyncClient().get("/static/cgorl/site.css", headers={"If-Modified-Since": first["Last-Modified"]})
        return first, first.content, again

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, content, again = asyncio.run(fetched())
    assert first.status_code == 200 and b"--paper" in content and again.status_code == 304
    assert "Access-Control-Allow-Origin" not in first


def test_strangers_fill_no_log_but_forged_forms_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for host in ("evil.example", "a" * 500, "[::1", "x\r\ny"):
            assert Client(raise_request_exception=False).get("/", headers={"host": host}).status_code == 400
        assert not caplog.records
        strict = Client(enforce_csrf_checks=True)
        assert strict.post("/", {"zoo": "resnet18", "secret": "a secret"}).status_code == 403
    (told,) = [r.getMessage() for r in caplog.records]
    assert "CSRF cookie not set" in told and "secret" not in told and "resnet18" not in told
