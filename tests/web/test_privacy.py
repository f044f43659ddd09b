"""Jobs are private: found by their links alone, listed to their owner alone; with accounts, nobody else's at all."""

from __future__ import annotations

import base64
from typing import Any

from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from cgorl.web.models import Job, State
from tests.web.results import result
from tests.web.test_api import JOBS, post, upload


def finished(found: dict[str, Any]) -> Job:
    """The job, done, with a file."""
    from cgorl.web import folders

    job = Job.objects.get(token=found["id"])
    job.state, job.attempt, job.result = State.DONE, 1, {**result(seconds=5), "files": [["out.onnx", 3], ["summary.json", 2]]}
    job.save()
    (folders.of_job(job) / "run").mkdir(parents=True)
    (folders.of_job(job) / "run" / "out.onnx").write_bytes(b"abc")
    (folders.of_job(job) / "run" / "secret.txt").write_bytes(b"abc")
    return job


def test_links_cannot_be_guessed(client: Client) -> None:
    names = {post(client, zoo="resnet18")["id"] for _ in range(5)} | {j.source.token for j in Job.objects.all()}
    assert len(names) == 10 and all(len(n) == 32 for n in names)  # 24 bytes: 192 bits
    for guess in [str(j.pk) for j in Job.objects.all()] + [n[:-1] for n in names] + [n.swapcase() for n in names]:
        assert client.get(f"{JOBS}/{guess}").status_code == 404
        assert client.get(f"/jobs/{guess}/").status_code == 404


def test_lists_show_nobody_elses_jobs(client: Client, browser: Any) -> None:
    found = post(client, zoo="resnet18")
    other = browser()
    without = other.post(JOBS, {"zoo": "resnet18"}).json()  # begins a session of its own
    assert [j["id"] for j in client.get(JOBS).json()] == [found["id"]]
    assert [j["id"] for j in other.get(JOBS).json()] == [without["id"]]
    assert browser().get(JOBS).json() == []
    assert found["id"] not in browser().get("/jobs/").content.decode()


def test_a_program_without_a_session_owns_nothing_and_sees_no_list() -> None:
    for _ in range(2):
        post(Client(), model=upload())
    assert set(Job.objects.values_list("owner", flat=True)) == {""}
    assert Client().get(JOBS).json() == []


def test_only_files_of_the_result_are_given_out(client: Client) -> None:
    found = post(client, zoo="resnet18")
    job = finished(found)
    response = client.get(f"/jobs/{job.token}/files/out.onnx")
    assert response.status_code == 200 and "attachment" in response["Content-Disposition"]
    assert response["Content-Security-Policy"] == "sandbox" or "sandbox" in response["Content-Security-Policy"]
    for name in ("secret.txt", "..%2Fsecret.txt", "%2e%2e/secret.txt", "run/out.onnx", "..", "config.yaml", "out.onnx%00"):
        assert client.get(f"/jobs/{job.token}/files/{name}").status_code == 404, name
        assert client.get(f"{JOBS}/{job.token}/files/{name}").status_code == 404, name
    for name in ("..%2Frun%2Fout.onnx", "before", "0-before.txt", "../run/out.onnx"):
        assert client.get(f"/jobs/{job.token}/drawn/{name}").status_code == 404, name


def test_another_sites_page_changes_nothing() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.get("/")
    begun = strict.post(JOBS, {"zoo": "resnet18"})  # no session yet that could be misused
    assert begun.status_code == 201 and "session" in strict.cookies
    name = begun.json()["id"]
    for method, path in (("post", JOBS), ("post", f"{JOBS}/{name}/cancel"), ("delete", f"{JOBS}/{name}"), ("post", f"/jobs/{name}/delete")):
        assert getattr(strict, method)(path).status_code == 403, path
    token = strict.cookies["csrftoken"].value
    assert strict.post(f"{JOBS}/{name}/cancel", headers={"X-CSRFToken": token}).status_code == 200


def test_with_accounts_a_link_opens_nothing_to_others(browser: Any, settings_of: Any) -> None:
    settings_of(ACCOUNTS=True)
    for name in ("ann", "bob"):
        User.objects.create_user(name, password=f"password of {name}")
    ann, bob, nobody = browser(), browser(), browser()
    assert ann.login(username="ann", password="password of ann") and bob.login(username="bob", password="password of bob")
    found = post(ann, zoo="resnet18")
    finished(found)
    job = f"{JOBS}/{found['id']}"
    for path in (found["url"], found["source"]["url"], job, f"{found['url']}files/out.onnx", f"{job}/events"):
        assert ann.get(path).status_code == 200, path
        assert bob.get(path).status_code == 404, path
        assert nobody.get(path).status_code in (302, 401), path
    assert bob.get(JOBS).json() == [] and len(ann.get(JOBS).json()) == 1
    assert bob.delete(f"{JOBS}/{found['id']}").status_code == 404 and nobody.post(JOBS, {"zoo": "resnet18"}).status_code == 401
    basic = {"Authorization": "Basic " + base64.b64encode(b"ann:password of ann").decode()}
    assert len(nobody.get(JOBS, headers=basic).json()) == 1
    wrong = {"Authorization": "Basic " + base64.b64encode(b"ann:password of bob").decode()}
    assert nobody.get(JOBS, headers=wrong).status_code == 401


def test_passwords_are_not_guessed_without_end(browser: Any, settings_of: Any) -> None:
    settings_of(ACCOUNTS=True)
    cache.clear()
    User.objects.create_user("ann", password="password of ann")
    ann = browser()
    right = {"Authorization": "Basic " + base64.b64encode(b"ann:password of ann").decode()}
    assert ann.get(JOBS, headers=right).status_code == 200
    for k in range(10):
        wrong = {"Authorization": "Basic " + base64.b64encode(f"ann:{k}".encode()).decode()}
        assert ann.get(JOBS, headers=wrong).status_code == 401
    assert ann.get(JOBS, headers=right).status_code == 401
    assert ann.post("/login", {"username": "ann", "password": "password of ann"}).status_code == 200  # the form once more
    cache.clear()
    assert ann.post("/login", {"username": "ann", "password": "password of ann"}).status_code == 302
