"""What pages say, without a browser: every choice has a name, what is typed comes back, markup is text, and nothing is inline."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from cgorl.web import choices, folders, form
from cgorl.web.labels import LABELS
from cgorl.web.models import Job, Kind, Source, State
from cgorl.web.reasons import TIME
from cgorl.web.shown import shown
from cgorl.web.verdict import verdict
from tests.web.results import result

NASTY = "<img src=x onerror=alert(1)>\"'.onnx"
FACTS: dict[str, Any] = {
    "operators": [["Conv", 3], [NASTY, 1]],
    "nodes": 4,
    "weight_bytes": 1000,
    "inputs": [{"name": NASTY, "type": "float[batch,3,?,?]", "shape": ["batch", 3, None, None]}],
    "outputs": [{"name": "y", "type": "float", "shape": None}],
    "symbols": ["batch", f"{NASTY}:2", "seq_len"],
    "opset": 17,
    "producer": NASTY,
    "coverage": {"total": 4, "touchable": 3, "opaque": {"items": 1, NASTY: 2}, "text": ""},
}


def job(client: Client, state: State, found: dict[str, Any] | None = None, **more: Any) -> Job:
    """A job of the client's."""
    client.get("/")
    session = client.session
    session["owner"] = "me"
    session.save()
    client.cookies["session"] = session.session_key
    source = Source.objects.create(owner="me", name=NASTY, bytes=1200, files=["model.onnx"])
    options = choices.read({}) | more.pop("options", {})
    made: Job = Job.objects.create(kind=Kind.OPTIMIZE, source=source, owner="me", options=options, state=state, result=found, **more)
    if found:
        folder = folders.of_job(made) / found["folder"]
        folder.mkdir(parents=True)
        (folder / "ledger.json").write_text(json.dumps({"rewrites": found["rows_of_ledger"]}))
    return made


def looked(**facts: Any) -> Source:
    """A model that was looked at."""
    source: Source = Source.objects.create(owner="me", name=NASTY, bytes=1200, files=["model.onnx"])
    Job.objects.create(kind=Kind.LOOK, source=source, state=State.DONE, result={"facts": {**FACTS, **facts}})
    return source


def page(client: Client, path: str, status: int = 200) -> str:
    """A page, in which nothing is inline and no name has become markup."""
    response = client.get(path)
    assert response.status_code == status
    text: str = response.content.decode()
    tags = Tags()
    tags.feed(text)
    for tag, given in tags.found:
        assert tag not in ("img", "style") and not any(name == "style" or name.startswith("on") for name in given)
        assert tag != "script" or given.get("type") == "application/json" or given["src"].startswith("/static/")
        links = [given[name] for name in ("href", "src", "action") if name in given]
        assert all(re.match(r"(/(?!/)|#)[^<>]*$", link) for link in links), links
    return text


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {k: v or "" for k, v in attrs}))


def test_every_choice_has_a_name_for_people() -> None:
    assert {g: sorted(names) for g, names in choices.menus().items()} == {
        g: sorted(n for n in names if n in choices.menus()[g]) for g, names in LABELS.items()
    }


def test_a_model_says_what_it_is_with_likely_sizes_for_its_open_axes(client: Client) -> None:
    text = page(client, f"/models/{looked().token}/")
    sizes = re.findall(r'name="size:([^"]+)"[^>]*value="(\d+)"', text)
    assert [v for _, v in sizes] == ["1", "224", "128"]
    assert "1 items" in text and "75 %" in text


def test_a_model_that_came_with_a_job_is_looked_at_once_its_page_is_asked_for(client: Client) -> None:
    found = client.post("/api/v1/jobs", {"zoo": "resnet18"}).json()
    for _ in range(2):
        text = page(client, found["source"]["url"])
        assert "Waiting for its turn to be read" in text and "could not be read" not in text
    assert Job.objects.filter(kind=Kind.LOOK).count() == 1


def test_a_form_without_the_cookie_is_told_what_to_do() -> None:
    response = Client(enforce_csrf_checks=True).post("/", {"zoo": "resnet18"})
    assert response.status_code == 403 and b"allow its cookies" in response.content and b"DEBUG" not in response.content
    other = Client(enforce_csrf_checks=True).post("/", {"zoo": "resnet18"}, headers={"origin": "https://other.example"})
    assert other.status_code == 403 and b"CGORL_ORIGINS" in other.content


def test_a_form_that_cannot_be_read_and_a_wrong_host_are_told(client: Client) -> None:
    crowd = client.post("/", {f"f{k}": "1" for k in range(600)})
    assert crowd.status_code == 400 and b"too many fields" in crowd.content
    other = client.get("/", headers={"host": "other.example"})
    assert other.status_code == 400 and b"CGORL_HOSTS" in other.content


def test_what_the_form_sends_are_a_jobs_options(client: Client) -> None:
    source = looked(symbols=["batch", "seq"])
    given = {
        "cost": "roofline",
        "device": "v100",
        "search": "",
        "seconds": "7",
        "size:batch": "4",
        "size:seq": "",
        "csrfmiddlewaretoken": "x",
    }
    assert client.post(f"/models/{source.token}/", given).status_code == 302
    made = Job.objects.get(kind=Kind.OPTIMIZE)
    assert made.options["dims"] == {"batch": 4} and made.options["device"] == "v100" and made.options["search"] == "greedy"
    assert client.post(f"/models/{source.token}/", {"cost": "measured", "search": ""}).status_code == 302
    assert Job.objects.order_by("-pk")[0].options["search"] == "backtracking"


def test_what_was_typed_comes_back_with_what_is_wrong(client: Client) -> None:
    source = looked()
    response = client.post(f"/models/{source.token}/", {"seconds": "1e9", "search": "beam", "size:batch": "0"})
    text = response.content.decode()
    assert response.status_code == 400 and "Seconds must be a number" in text
    assert re.search(r'name="seconds"[^>]*value="1e9"', text) and re.search(r'value="beam" selected', text)
    assert re.search(r'name="size:batch"[^>]*value="0"', text)
    response = client.post("/", {"zoo": NASTY})
    assert response.status_code == 400 and b"there is no model" in response.content and b"<img" not in response.content


@pytest.mark.parametrize(
    ("state", "reason", "heading"),
    [
        (State.REFUSED, "it has a cycle", "Refused"),
        (State.FAILED, "it needed too much", "It did not work out"),
        (State.FAILED, f"{TIME}: it took too long", "Stopped by its time limit"),
        (State.CANCELLED, "cancelled before it began", "Cancelled"),
    ],
)
def test_each_end_is_told_in_words(client: Client, state: State, reason: str, heading: str) -> None:
    made = job(client, state, reason=reason)
    text = page(client, f"/jobs/{made.token}/")
    why = reason.removeprefix(f"{TIME}: ")
    assert f"<h2>{heading}</h2>" in text and why[0].upper() + why[1:] + "." in text
    for path in ("/jobs/", f"/compare/?job={made.token}&job={made.token}", f"/jobs/{made.token}/delete"):
        page(client, path)


def test_a_result_is_told_in_words_figures_and_tables(client: Client) -> None:
    made = job(client, State.DONE, result(seconds=5))
    text = page(client, f"/jobs/{made.token}/")
    assert "less estimated time" in text and "Download net_<wbr>optimized.onnx" in text and "conv-batchnorm" in text
    assert "Each of the" in text or "The one rewrite was" in text
    page(client, f"/compare/?job={made.token}&job={made.token}")


def test_an_optimal_model_is_a_result_too(client: Client) -> None:
    kept = dict(result(seconds=5))
    kept["summary"] = {**kept["summary"], "status": "already optimal", "rewrites": 0}
    kept |= {"status": "already optimal", "steps": 0, "rows_of_ledger": []}
    kept["summary"]["proof"] = {**kept["summary"]["proof"], "whole": None, "rewrites": 0}
    text = page(client, f"/jobs/{job(client, State.DONE, kept).token}/")
    assert "Already optimal" in text and "there is nothing to prove" in text and 'data-graph="after"' not in text


def measured(**gate: Any) -> dict[str, Any]:
    """A result that was measured."""
    timing = {"name": "result", "cpu_ms": 10.0, "wall_ms": 11.0, "times_as_fast": 1.25, "interval": [1.2, 1.3], "runs": 9, "sessions": 6}
    first = {**timing, "name": "original", "cpu_ms": 12.5}
    told = {"kept": "result", "faster": True, "why": "", "before": first, "after": timing, "measured": [first, timing], **gate}
    found = dict(result(seconds=5))
    return {**found, "summary": {**found["summary"], "gate": told}}


def test_what_was_measured_is_told_with_its_interval(client: Client) -> None:
    made = job(client, State.DONE, measured(), options={"cost": "measured"})
    text = page(client, f"/jobs/{made.token}/")
    assert "1.25 times as fast" in text and "1.200 to 1.300 times as fast" in text
    short = measured(kept="original", faster=False, why="a run takes 1 s, so 20 s tell nothing: gate_seconds=37 would")
    short["summary"]["status"] = short["status"] = "nothing found within the budget"
    told = verdict(shown(job(client, State.DONE, short)))
    assert told is not None and told.badge == "not measured" and "gate_seconds" not in told.text


def test_two_of_different_models_are_compared_as_such(client: Client) -> None:
    a, b = job(client, State.DONE, result(seconds=5)), job(client, State.QUEUED)
    Source.objects.filter(pk=b.source.pk).update(name="other.onnx")
    text = page(client, f"/compare/?job={a.token}&job={b.token}")
    assert "two different models" in text and "–" in text
    assert "More than two" in page(client, f"/compare/?job={a.token}&job={b.token}&job={b.token}")


def test_a_deletion_is_asked_about_first(client: Client) -> None:
    made = job(client, State.DONE, result(seconds=5))
    assert "cannot be undone" in page(client, f"/jobs/{made.token}/delete")
    assert Job.objects.filter(pk=made.pk).exists()
    client.post(f"/jobs/{made.token}/delete")
    assert not Job.objects.filter(pk=made.pk).exists()


def test_sizes_are_guessed_by_name_and_place() -> None:
    facts = {"inputs": [{"name": "x", "shape": [None, 3, None, None]}, {"name": "ids", "shape": [None, None]}]}
    guessed = {s: form.usual(s, facts) for s in ("x:0", "x:3", "ids:1", "N", "batch_size", "sequence", "height", "unk__214")}
    assert guessed == {"x:0": 1, "x:3": 224, "ids:1": 128, "N": 1, "batch_size": 1, "sequence": 128, "height": 224, "unk__214": 1}
