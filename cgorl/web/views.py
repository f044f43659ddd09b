"""The pages: each one shows plain data of `shown`, so that what a page knows is what the API says."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth import views as auth
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cgorl.web import choices, download, queue, start
from cgorl.web.models import Job, Kind, Source
from cgorl.web.owner import find, mine, owner
from cgorl.web.owner import job as own_job
from cgorl.web.refusals import RefusalError
from cgorl.web.shown import listed, shown
from cgorl.web.shown import source as shown_source

View = Callable[..., HttpResponse]


def _page(view: View) -> View:
    """A page that says on itself what was refused, and wants a login where there are accounts."""

    @wraps(view)
    def guarded(request: HttpRequest, **names: Any) -> HttpResponse:
        if settings.ACCOUNTS and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        try:
            return view(request, **names)
        except RefusalError as e:
            response = render(request, "cgorl/refused.html", {"reason": str(e)}, status=e.status)
            if e.after:
                response["Retry-After"] = str(e.after)
            return response

    return guarded


@_page
@require_http_methods(["GET", "POST"])
def home(request: HttpRequest) -> HttpResponse:
    """Where a model is dropped, or one of the zoo picked; context: `choices` (see choices.told). POST: `model`, `data`, `zoo`."""
    if request.method == "GET":
        return render(request, "cgorl/home.html", {"choices": choices.told()})
    made = start.bring(owner(request, begin=True), request.FILES.get("model"), request.FILES.getlist("data"), request.POST.get("zoo", ""))
    start.look(made)
    return redirect("source", made.token)


@_page
@require_http_methods(["GET", "POST"])
def source(request: HttpRequest, name: str) -> HttpResponse:
    """What a model is, and the form for a job; context: `source` (see shown.source), `choices`, `jobs` on it. POST: options."""
    found = find(Source, request, name)
    if request.method == "POST":
        given = {k: v for k, v in request.POST.items() if k in choices.KNOWN}
        return redirect("job", start.optimize(found, owner(request, begin=True), given).token)
    made = [listed(j) for j in found.jobs.filter(kind=Kind.OPTIMIZE).select_related("source").order_by("-pk")]
    return render(request, "cgorl/source.html", {"source": shown_source(found), "choices": choices.told(), "jobs": made})


@_page
@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """The user's own jobs; context: `jobs`, the newest first."""
    found = mine(Job.objects.filter(kind=Kind.OPTIMIZE), request).select_related("source").order_by("-pk")
    return render(request, "cgorl/jobs.html", {"jobs": [listed(j) for j in found[:200]]})


@_page
@require_GET
def job(request: HttpRequest, name: str) -> HttpResponse:
    """A job, how it goes and what came of it; context: `job` (see shown.shown)."""
    return render(request, "cgorl/job.html", {"job": shown(own_job(request, name))})


@_page
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Two jobs beside each other, `?a=...&b=...`; context: `a`, `b`, and `jobs` to choose from."""
    pair = {k: shown(own_job(request, request.GET[k])) if request.GET.get(k) else None for k in ("a", "b")}
    found = mine(Job.objects.filter(kind=Kind.OPTIMIZE), request).select_related("source").order_by("-pk")
    return render(request, "cgorl/compare.html", {**pair, "jobs": [listed(j) for j in found[:200]]})


@_page
@require_POST
def cancel(request: HttpRequest, name: str) -> HttpResponse:
    """Ends a job with its best so far."""
    queue.cancel(own_job(request, name))
    return redirect("job", name)


@_page
@require_POST
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Removes a job and its files."""
    start.delete(own_job(request, name))
    return redirect("jobs")


@_page
@require_GET
def file(request: HttpRequest, name: str, file: str) -> HttpResponse:
    """A file of a job's result."""
    return download.result(own_job(request, name), file)


@_page
@require_GET
def picture(request: HttpRequest, name: str, picture: str) -> HttpResponse:
    """A picture of a job's result, as bytes for assets/packed.js."""
    return download.picture(own_job(request, name), picture)


def login(request: HttpRequest) -> HttpResponse:
    """Where there are accounts: name and password; context: `form`, `next`."""
    if not settings.ACCOUNTS:
        raise Http404
    response: HttpResponse = auth.LoginView.as_view(template_name="cgorl/login.html")(request)
    return response


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """Where there are accounts."""
    response: HttpResponse = auth.LogoutView.as_view()(request)
    return response


def health(request: HttpRequest) -> JsonResponse:
    """For a proxy: that this process answers, and the database too."""
    return JsonResponse({"ok": Job.objects.exists() in (True, False)})


def nowhere(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """There is no such page, or it is somebody else's."""
    del exception
    return render(
        request,
        "cgorl/refused.html",
        {"reason": "There is nothing here: the link is wrong, or what it led to has expired or was deleted."},
        status=404,
    )


def broken(request: HttpRequest) -> HttpResponse:
    """An error of ours; the log has it."""
    return render(
        request,
        "cgorl/refused.html",
        {"reason": "Something went wrong inside the service. Its administrator finds it in the log."},
        status=500,
    )
