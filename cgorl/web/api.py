"""The API, version 1: what a page can do, by HTTP; described at /api/v1/openapi.json."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from ninja import File, Form, NinjaAPI, Status
from ninja.errors import AuthenticationError, ValidationError
from ninja.files import UploadedFile

from cgorl.web import choices, download, events, start
from cgorl.web import queue as queues
from cgorl.web.access import STRANGER, access
from cgorl.web.models import Job, Kind, Source
from cgorl.web.owner import find, mine, owner
from cgorl.web.owner import job as own_job
from cgorl.web.refusals import RefusalError
from cgorl.web.schemas import Brought, Choices, Given, JobOut, SourceOut, Why
from cgorl.web.shown import listed, shown
from cgorl.web.shown import source as shown_source

log = logging.getLogger(__name__)

api = NinjaAPI(title="cgorl", version="1", description=__doc__, auth=access, docs_url="/docs", urls_namespace="api-1")
_NONE: list[UploadedFile] = []
_NO_OPTIONS = ("zoo", "source", "model", "data", "path", "csrfmiddlewaretoken")
_REFUSED = {400: Why, 413: Why, 415: Why, 429: Why}


@api.exception_handler(RefusalError)
def _refused(request: HttpRequest, why: RefusalError) -> HttpResponse:
    response = api.create_response(request, {"detail": str(why)}, status=why.status)
    if why.after:
        response["Retry-After"] = str(why.after)
    return response


@api.exception_handler(AuthenticationError)
def _stranger(request: HttpRequest, why: AuthenticationError) -> HttpResponse:
    return api.create_response(request, {"detail": STRANGER}, status=401)


@api.exception_handler(Http404)
def _nowhere(request: HttpRequest, why: Http404) -> HttpResponse:
    return api.create_response(request, {"detail": "there is nothing by that name"}, status=404)


@api.exception_handler(ValidationError)
def _unreadable(request: HttpRequest, why: ValidationError) -> HttpResponse:
    told = "; ".join(f"{'.'.join(str(p) for p in e.get('loc', ())[1:])}: {e.get('msg', '')}" for e in why.errors[:5])
    return api.create_response(request, {"detail": told or "the request cannot be read"}, status=400)


@api.exception_handler(BadRequest)
@api.exception_handler(MultiPartParserError)
@api.exception_handler(SuspiciousOperation)
def _malformed(request: HttpRequest, why: Exception) -> HttpResponse:
    """The body's form, or more fields or longer ones than are read: its sender's fault, not the service's."""
    status = 413 if isinstance(why, RequestDataTooBig) else 400
    return api.create_response(request, {"detail": f"the request cannot be read: {why}"}, status=status)


@api.exception_handler(Exception)
def _broken(request: HttpRequest, why: Exception) -> HttpResponse:
    log.error("%s %s failed", request.method, request.path, exc_info=why)
    return api.create_response(request, {"detail": "something went wrong inside the service; its log has it"}, status=500)


@api.get("/choices", response=Choices, auth=None, summary="What there is to choose, the limits, and the models of the zoo")
def get_choices(request: HttpRequest) -> dict[str, Any]:
    """The choices of each group, the defaults, and the limits."""
    return choices.told()


@api.post("/models", response={201: SourceOut, **_REFUSED}, summary="Upload a model, to see what it is before a job is started")
def post_model(
    request: HttpRequest,
    given: Form[Brought],
    model: File[UploadedFile | None] = None,
    data: File[list[UploadedFile]] = _NONE,
) -> Status:
    """`model` is an ONNX file, `data` the files of its external data; or `zoo` names a model of the zoo."""
    made = start.bring(owner(request, begin=bool(request.COOKIES)), model, data, given.path, given.zoo)
    start.look(made)
    return Status(201, shown_source(made))


@api.get("/models/{name}", response={200: SourceOut, 404: Why}, summary="What a model is")
def get_model(request: HttpRequest, name: str) -> dict[str, Any]:
    """A model with its `facts`, once it was looked at."""
    return shown_source(find(Source, request, name))


@api.post("/jobs", response={201: JobOut, **_REFUSED}, summary="Start a job: with a file, a model of the zoo, or one uploaded before")
def post_job(
    request: HttpRequest,
    given: Form[Given],
    model: File[UploadedFile | None] = None,
    data: File[list[UploadedFile]] = _NONE,
) -> Status:
    """`curl -F model=@m.onnx .../api/v1/jobs`; options as further fields."""
    if request.content_type == "application/json":
        raise RefusalError(415, "send a form (multipart/form-data, as curl -F does), not JSON")
    sent = dict.fromkeys(request.POST)  # unknown ones among them, which a form's schema passes over
    sent |= {k: v for k, v in given.dict().items() if v is not None}
    options = {k: v for k, v in sent.items() if k not in _NO_OPTIONS}
    choices.read(options)  # before anything is kept
    who = owner(request, begin=bool(request.COOKIES))  # a program that keeps no cookies needs no session
    if given.source:
        return Status(201, shown(start.optimize(find(Source, request, given.source), who, options)))
    made = start.bring(who, model, data, given.path, given.zoo)
    try:
        return Status(201, shown(start.optimize(made, who, options)))
    except BaseException:
        start.discard(made)
        raise


@api.get("/jobs", response=list[JobOut], summary="Your own jobs, the newest first")
def get_jobs(request: HttpRequest) -> list[dict[str, Any]]:
    """Those of the session or the account; others are found by their links alone."""
    found = mine(Job.objects.filter(kind=Kind.OPTIMIZE), request).select_related("source").order_by("-pk")
    return [listed(job) for job in found[:200]]


@api.get("/jobs/{name}", response={200: JobOut, 404: Why}, summary="A job")
def get_job(request: HttpRequest, name: str) -> dict[str, Any]:
    """How it stands, and once it is done its result and files."""
    return shown(own_job(request, name))


@api.get("/jobs/{name}/events", summary="What changes of a job, as it does (text/event-stream)")
def get_events(request: HttpRequest, name: str) -> HttpResponse:
    """Events `job` with JSON data, the last when the job has ended."""
    return events.stream(own_job(request, name))


@api.post("/jobs/{name}/cancel", response={200: JobOut, 404: Why}, summary="End a job; of one that runs the best so far is kept")
def cancel_job(request: HttpRequest, name: str) -> dict[str, Any]:
    """Returns the job as it stands; a running one takes a moment to end."""
    job = own_job(request, name)
    queues.cancel(job)
    return shown(Job.objects.select_related("source").get(pk=job.pk))


@api.delete("/jobs/{name}", response={204: None, 404: Why}, summary="Remove a job and its files")
def delete_job(request: HttpRequest, name: str) -> Status:
    """Ends it at once where it runs."""
    start.delete(own_job(request, name))
    return Status(204, None)


@api.get("/jobs/{name}/files/{file}", summary="A file of a job's result")
def get_file(request: HttpRequest, name: str, file: str) -> HttpResponse:
    """The file."""
    return download.result(own_job(request, name), file)
