"""The way of an upload under fire: any name, content and field is taken or refused with a sentence; mutants of models do no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given
from hypothesis import settings as bounds
from hypothesis import strategies as st

from cgorl.web.models import Job
from tests.web.mutants import harm

FILES = st.tuples(st.text(min_size=1, max_size=60), st.binary(max_size=200))
WORDS = st.text(max_size=40) | st.sampled_from(
    ["greedy", "measured", "1", "-1", "1e400", "batch=8", "x=y=3", "nan", "a/b", "../a", "/a", "\x00", "0"]
)
FIELDS = st.dictionaries(
    st.sampled_from(["rules", "cost", "search", "seconds", "dims", "unbound", "seed", "zoo", "source", "expansions", "path"]), WORDS
)


@bounds(max_examples=150)
@given(st.none() | FILES, st.lists(FILES, max_size=3), FIELDS)
def test_whatever_is_sent_is_taken_or_refused(model: Any, data: list[Any], fields: dict[str, str]) -> None:
    Job.objects.all().delete()
    body: dict[str, Any] = dict(fields)
    if model is not None:
        body["model"] = SimpleUploadedFile(*model)
    if data:
        body["data"] = [SimpleUploadedFile(*part) for part in data]
    response = Client(raise_request_exception=False).post("/api/v1/jobs", body)
    assert response.status_code in (201, 400, 404, 413), (response.status_code, response.content)
    told = response.json()
    assert str(settings.DATA) not in response.content.decode()
    if response.status_code != 201:
        assert isinstance(told["detail"], str) and told["detail"] and not Job.objects.exists()
    else:
        kept = settings.DATA / "sources" / str(Job.objects.get().source.pk)
        assert {str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file()} == set(told["source"]["files"])


def test_mutants_of_models_do_no_harm(tmp_path: Path) -> None:
    assert list(harm(tmp_path, 40, 0, "look")) == []
