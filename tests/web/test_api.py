"""The API: what it takes, what it refuses and how it says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from cgorl.web import folders, queue
from cgorl.web.models import Job, Kind, Source, State
from tests.web.models import small

JOBS = "/api/v1/jobs"


def upload(content: bytes = b"", name: str = "net.onnx") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content or small())


def post(client: Client, status: int = 201, **fields: Any) -> dict[str, Any]:
    response = client.post(JOBS, {k: v for k, v in fields.items() if v is not None})
    assert response.status_code == status, response.content
    found: dict[str, Any] = response.json()
    return found


def test_a_file_becomes_a_waiting_job_and_is_kept_as_it_is(client: Client) -> None:
    found = post(client, model=upload(), seconds=5, dims="batch=8, 2", search="beam")
    assert (found["state"], found["position"], found["source"]["name"]) == ("queued", 1, "net.onnx")
    assert found["options"]["dims"] == {"batch": 8} and found["options"]["unbound"] == 2 and found["options"]["search"] == "beam"
    job = Job.objects.get(token=found["id"])
    kept = folders.of_source(job.source) / "net.onnx"
    assert kept.read_bytes() == small() and kept.stat().st_mode & 0o77 == 0
    assert client.get(f"{JOBS}/{found['id']}").json() == found
    assert not list((folders.of_source(job.source).parents[1] / "incoming").iterdir())


def test_external_data_comes_beside_the_model(client: Client) -> None:
    found = post(client, model=upload(), data=[upload(b"1", "a.data"), upload(b"2", "b data.bin")])
    assert found["source"]["files"] == ["net.onnx", "a.data", "b data.bin"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "give either"),
        ({"model": upload(), "zoo": "resnet18"}, "give either"),
        ({"zoo": "nothing"}, "there is no model 'nothing'"),
        ({"zoo": "resnet18", "search": "magic"}, "there is no search 'magic'"),
        ({"zoo": "resnet18", "serch": "beam"}, "there is no option 'serch'"),
        ({"zoo": "resnet18"} | {f"f{k}": "1" for k in range(600)}, "cannot be read"),
        ({"zoo": "resnet18", "rules": "taso"}, "there is no rules 'taso'"),
        ({"zoo": "resnet18", "seconds": "1e9"}, "seconds must be a number from 0"),
        ({"zoo": "resnet18", "seconds": "nan"}, "seconds must be a number"),
        ({"zoo": "resnet18", "seconds": "soon"}, "seconds"),
        ({"zoo": "resnet18", "dims": "batch"}, "whole number"),
        ({"zoo": "resnet18", "dims": "batch=99999999"}, "whole number"),
        ({"zoo": "resnet18", "dims": "x=\u0663"}, "whole number"),
        ({"model": SimpleUploadedFile("empty.onnx", b"")}, ""),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(client: Client, fields: dict[str, Any], word: str) -> None:
    assert word in post(client, 400, **fields)["detail"]
    assert not Job.objects.exists() and not Source.objects.exists()


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (400, "multipart/form-data", b"no boundary"),
        (
            400,
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"; filename="' + b"n" * 3000 + b'"\r\n\r\n1\r\n--x--',
        ),
        (
            413,
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"n" * (1 << 21) + b"\r\n--x--",
        ),
    ],
)
@pytest.mark.parametrize("path", [JOBS, "/api/v1/models"])
def test_a_body_that_cannot_be_read_is_its_senders_fault(client: Client, path: str, status: int, kind: str, body: bytes) -> None:
    response = client.post(path, body, content_type=kind)
    assert response.status_code == status and "the request cannot be read: " in response.json()["detail"]


def test_data_of_a_folder_keeps_its_path(client: Client) -> None:
    data = [upload(b"1", "w.bin"), upload(b"2", "w.bin"), upload(b"3", "plain.bin")]
    found = post(client, model=upload(), data=data, path=["a/w.bin", "./b/c/w.bin", ""])
    assert found["source"]["files"] == ["net.onnx", "a/w.bin", "b/c/w.bin", "plain.bin"]
    kept = folders.of_source(Job.objects.get(token=found["id"]).source)
    assert [(kept / n).read_bytes() for n in found["source"]["files"][1:]] == [b"1", b"2", b"3"]
    folder = settings.DATA / "jobs" / "cell"
    folders.lay(Source.objects.get(), folder)
    assert (folder / "b/c/w.bin").read_bytes() == b"2"
    (folder / "run").mkdir()
    folders.unlay(folder)
    assert [p.name for p in folder.iterdir()] == ["run"]


NO_PATHS = [
    "../w",
    "/etc/passwd",
    "a/../../w",
    "a/..",
    "weights/",
    "a//b",
    "run/x",
    "drawn/x",
    ".ssh/x",
    "a/.b",
    "a\\b",
    "a/\n",
    "/".join("x" * 9),
]


@pytest.mark.parametrize("path", NO_PATHS)
def test_paths_that_lead_elsewhere(client: Client, path: str) -> None:
    assert "a name that is not taken" in post(client, 400, model=upload(), data=[upload(b"1", "w")], path=[path])["detail"]
    assert not Source.objects.exists() and not list((settings.DATA / "sources").iterdir())


def test_paths_belong_to_files_of_data(client: Client) -> None:
    assert "1 files of data and 2 paths" in post(client, 400, model=upload(), data=[upload(b"1", "w")], path=["a/w", "b/w"])["detail"]
    crossed = [upload(b"1", "w"), upload(b"2", "v")]
    assert "a folder that is a file" in post(client, 400, model=upload(), data=crossed, path=["a", "a/b"])["detail"]
    assert "a folder that is a file" in post(client, 400, model=upload(), data=[upload(b"1", "w")], path=["net.onnx/w"])["detail"]


@pytest.mark.parametrize("name", [".hidden", "x" * 230, "run", "drawn"])
def test_names_of_data_that_are_no_plain_names(client: Client, name: str) -> None:
    assert "plain file name" in post(client, 400, model=upload(), data=[upload(b"1", name)])["detail"]


def test_paths_in_names_are_cut_off(client: Client) -> None:
    found = post(client, model=upload(name="../../../etc/cron.d/evil.onnx"), data=[upload(b"1", "/etc/passwd")])
    assert found["source"]["files"] == ["evil.onnx", "passwd"]


def test_json_is_no_form(client: Client) -> None:
    response = client.post(JOBS, {"zoo": "resnet18"}, content_type="application/json")
    assert response.status_code == 415 and "curl -F" in response.json()["detail"]


def test_two_files_of_one_name(client: Client) -> None:
    assert "two files" in post(client, 400, model=upload(), data=[upload(b"1", "a"), upload(b"2", "a")])["detail"]


def test_a_form_with_its_file_left_empty_is_one_without(client: Client) -> None:
    assert post(client, zoo="resnet18", source="", model="", data="")["source"]["zoo"]
    assert "give either" in post(client, 400, model="net.onnx")["detail"]


def test_a_model_is_looked_at_first_and_used_again(client: Client) -> None:
    found = client.post("/api/v1/models", {"zoo": "resnet18"}).json()
    assert found["state"] == "queued" and found["facts"] is None and not found["ended"]
    first, second = (post(client, source=found["id"], search=s) for s in ("greedy", "beam"))
    assert first["source"]["id"] == second["source"]["id"] == found["id"]
    assert [j["id"] for j in client.get(JOBS).json()] == [second["id"], first["id"]]
    assert [Job.objects.get(token=j["id"]).kind for j in (first, second)] == [Kind.OPTIMIZE] * 2


def test_too_many_jobs(client: Client, browser: Any, settings_of: Any) -> None:
    settings_of(MOST_WAITING_EACH=2, MOST_WAITING=3, MOST_AN_HOUR=3)
    for _ in range(2):
        post(client, zoo="resnet18")
    assert "2 of your jobs wait" in post(client, 429, zoo="resnet18")["detail"]
    Job.objects.update(state=State.DONE)
    post(client, zoo="resnet18")
    assert "within an hour" in post(client, 429, zoo="resnet18")["detail"]
    other = browser()
    for _ in range(2):
        post(other, zoo="resnet18")
    assert "the queue is full" in post(browser(), 429, zoo="resnet18")["detail"]
    response = browser().post(JOBS, {"zoo": "resnet18"})
    assert int(response["Retry-After"]) > 0


def test_dropping_the_cookie_does_not_give_a_fresh_start(browser: Any, settings_of: Any) -> None:
    settings_of(MOST_AN_HOUR_OF_AN_ADDRESS=3)
    for _ in range(3):
        post(browser(), zoo="resnet18")
    assert "your address" in post(browser(), 429, zoo="resnet18")["detail"]


def test_a_program_without_cookies_is_counted_by_its_address(settings_of: Any) -> None:
    settings_of(MOST_WAITING_EACH=2)
    for _ in range(2):
        post(Client(), zoo="resnet18")
    assert "2 of your jobs wait" in post(Client(), 429, zoo="resnet18")["detail"]


def test_uploads_are_counted_too(client: Client, settings_of: Any) -> None:
    settings_of(MOST_AN_HOUR=2)
    answers = [client.post("/api/v1/models", {"zoo": "resnet18"}).status_code for _ in range(3)]
    assert answers == [201, 201, 429]
    settings_of(MOST_AN_HOUR=100, MOST_KEPT_BYTES_OF_AN_ADDRESS=100)
    post(client, model=upload())
    assert "delete some first" in post(client, 429, model=upload())["detail"]


def test_cancel_and_delete(client: Client) -> None:
    first, second = (post(client, model=upload()) for _ in range(2))
    assert client.post(f"{JOBS}/{first['id']}/cancel").json()["state"] == "cancelled"
    job = Job.objects.get(token=second["id"])
    folder = folders.of_source(job.source)
    assert folder.exists()
    assert client.delete(f"{JOBS}/{second['id']}").status_code == 204
    assert client.get(f"{JOBS}/{second['id']}").status_code == 404 and not folder.exists()
    assert queue.position(Job.objects.get(token=first["id"])) == 0


def test_what_is_not_there_is_said_in_json(client: Client) -> None:
    for path in ("/api/v1/jobs/nothing", "/api/v1/models/nothing", "/api/v1/jobs/nothing/files/x", "/api/v1/jobs/nothing/events"):
        response = client.get(path)
        assert response.status_code == 404 and response.json() == {"detail": "there is nothing by that name"}


def test_the_description_is_whole(client: Client) -> None:
    found = client.get("/api/v1/openapi.json").json()
    assert found["openapi"].startswith("3.1") and found["info"]["version"] == "1"
    paths = {p.removeprefix("/api/v1"): set(v) for p, v in found["paths"].items()}
    assert paths["/jobs"] == {"get", "post"} and paths["/jobs/{name}"] == {"get", "delete"}
    assert "multipart/form-data" in found["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]
    assert all(operation.get("summary") for path in found["paths"].values() for operation in path.values())
    choices = client.get("/api/v1/choices").json()
    assert "greedy" in choices["groups"]["search"] and "resnet18" in choices["zoo"] and choices["defaults"]["seconds"] > 0


def test_an_error_of_ours_shows_no_traceback(client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise OSError("/srv/secret/path")

    monkeypatch.setattr("cgorl.web.start.queue.add", fail)
    response = client.post(JOBS, {"zoo": "resnet18"})
    assert response.status_code == 500 and "/srv" not in response.content.decode() and not Source.objects.exists()
    assert "secret" in caplog.text
    page = client.post("/", {"zoo": "resnet18"})
    assert page.status_code == 500 and b"/srv" not in page.content and b"Traceback" not in page.content


def test_headers(client: Client) -> None:
    for path in ("/", "/jobs/", "/api/v1/choices", "/nowhere"):
        response = client.get(path)
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy and "http" not in policy
        assert response["X-Content-Type-Options"] == "nosniff" and response["X-Frame-Options"] == "DENY"
        assert response["Referrer-Policy"] == "same-origin" and "no-store" in response["Cache-Control"]


def test_names_with_markup_are_shown_as_text(client: Client) -> None:
    name = "<script>alert(1)</script>.onnx"
    found = post(client, model=upload(name=name))
    for path in ("/jobs/", found["url"], found["source"]["url"]):
        page = client.get(path).content.decode()
        assert "<script>alert" not in page
    assert json.loads(client.get(f"{JOBS}/{found['id']}").content)["source"]["name"].endswith("script>.onnx")


def test_all_pages_answer(client: Client) -> None:
    found = post(client, zoo="resnet18")
    for path in ("/", "/jobs/", found["url"], found["source"]["url"], f"/compare/?a={found['id']}", "/health"):
        assert client.get(path).status_code == 200, path
    assert client.get("/jobs/nothing/").status_code == 404 and client.get("/static/assets/theme.js").status_code == 200
    assert client.post(f"/jobs/{found['id']}/cancel").status_code == 302
    assert client.post(f"/jobs/{found['id']}/delete").status_code == 302 and not Job.objects.exists()
