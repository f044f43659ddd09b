"""The pages: each one shows plain data of `shown`, so that what a page knows is what the API says."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth import views as auth
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cgorl.web import download, form, queue, start, zoo
from cgorl.web.account import account
from cgorl.web.answers import of_api, problem
from cgorl.web.compared import compared
from cgorl.web.labels import chosen
from cgorl.web.models import Job, Kind, Source
from cgorl.web.owner import find, mine, owner
from cgorl.web.owner import job as own_job
from cgorl.web.refusals import RefusalError
from cgorl.web.shown import listed, shown
from cgorl.web.shown import source as shown_source
from cgorl.web.steps import steps
from cgorl.web.throttle import closed
from cgorl.web.verdict import verdict

View = Callable[..., HttpResponse]
_LISTED = 200


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
    """Where a model is dropped, or one of the zoo picked; context: `zoo`, `jobs` (the latest), `wrong`.

    POST: `model`, `data`, `path`, `zoo`.
    """
    wrong = None
    if request.method == "POST":
        try:
            given = (request.FILES.get("model"), request.FILES.getlist("data"), request.POST.getlist("path"), request.POST.get("zoo", ""))
            made = start.bring(owner(request, begin=True), *given)
            start.look(made)
            return redirect("source", made.token)
        except RefusalError as e:
            wrong = e
    latest = [_told(j) for j in _own_jobs(request)[:3]]
    return _answer(request, "home", {"zoo": zoo.shelf(), "jobs": latest}, wrong)


@_page
@require_http_methods(["GET", "POST"])
def source(request: HttpRequest, name: str) -> HttpResponse:
    """What a model is, and the form for a job; context: `source` (see shown.source), `form`, `jobs` on it, `wrong`. POST: options."""
    found, wrong = find(Source, request, name), None
    if request.method == "POST":
        try:
            return redirect("job", start.optimize(found, owner(request, begin=True), form.options(request.POST)).token)
        except RefusalError as e:
            wrong = e
    made = [_told(j) for j in found.jobs.filter(kind=Kind.OPTIMIZE).select_related("source").order_by("-pk")]
    if not found.jobs.filter(kind=Kind.LOOK).exists():  # it came with a job of the API
        start.look(found)
    told = shown_source(found)
    asked = form.form(told["facts"], request.POST.dict())
    return _answer(request, "source", {"source": told, "form": asked, "jobs": made}, wrong)


@_page
@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """The user's own jobs; context: `jobs`, the newest first."""
    return render(request, "cgorl/jobs.html", {"jobs": [_told(j) for j in _own_jobs(request)[:_LISTED]]})


@_page
@require_GET
def job(request: HttpRequest, name: str) -> HttpResponse:
    """A job, how it goes and what came of it; context: `job`, `steps`, `verdict` once it has ended, `account` with a result."""
    found = _told(own_job(request, name), shown)
    more = {
        "account": account(found["job"]) if found["job"]["result"] else None,
        "steps": steps(found["job"]),
        "chosen": chosen(found["job"]["options"]),
    }
    return render(request, "cgorl/job.html", {**found, **more})


@_page
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Two jobs beside each other, `?job=...&job=...`; context: `pair` (see compared.compared), `jobs` to choose from."""
    names = [n for n in request.GET.getlist("job") if n]
    two = [listed(own_job(request, n)) for n in names[:2]] if len(names) > 1 else []
    all_ = [_told(j) for j in _own_jobs(request)[:_LISTED]]
    return render(
        request, "cgorl/compare.html", {"pair": compared(*two) if two else None, "jobs": all_, "names": names, "many": len(names) > 2}
    )


@_page
@require_POST
def cancel(request: HttpRequest, name: str) -> HttpResponse:
    """Ends a job with its best so far."""
    queue.cancel(own_job(request, name))
    return redirect("job", name)


@_page
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """GET asks whether it is meant; context: `job`. POST removes the job and its files."""
    found = own_job(request, name)
    if request.method == "GET":
        return render(request, "cgorl/delete.html", _told(found))
    start.delete(found)
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
    """Where there are accounts: name and password; context: `form`, `next`, `closed` (no password is looked at for a while)."""
    if not settings.ACCOUNTS:
        raise Http404
    response: HttpResponse = auth.LoginView.as_view(
        template_name="cgorl/login.html", redirect_authenticated_user=True, extra_context={"closed": closed(request)}
    )(request)
    return response


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """Where there are accounts."""
    response: HttpResponse = auth.LogoutView.as_view()(request)
    return response


def _own_jobs(request: HttpRequest) -> Any:
    return mine(Job.objects.filter(kind=Kind.OPTIMIZE), request).select_related("source").order_by("-pk")


def _told(job: Job, how: Callable[[Job], dict[str, Any]] = listed) -> dict[str, Any]:
    """A job and how it ended, as templates get it."""
    found = how(job)
    return {"job": found, "verdict": verdict(found)}


def _answer(request: HttpRequest, page: str, context: dict[str, Any], wrong: RefusalError | None) -> HttpResponse:
    """A page with a form, which says what was wrong with what it sent."""
    response = render(request, f"cgorl/{page}.html", {**context, "wrong": str(wrong or "")}, status=wrong.status if wrong else 200)
    if wrong is not None and wrong.after:
        response["Retry-After"] = str(wrong.after)
    return response


def health(request: HttpRequest) -> JsonResponse:
    """For a proxy: that this process answers, and the database too."""
    return JsonResponse({"ok": Job.objects.exists() in (True, False)})


def nowhere(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """There is no such page, or it is somebody else's."""
    del exception
    if of_api(request):
        return problem(404, "there is nothing at this address: /api/v1/openapi.json says what there is")
    return render(
        request,
        "cgorl/refused.html",
        {"reason": "There is nothing here: the link is wrong, or what it led to has expired or was deleted."},
        status=404,
    )


def unreadable(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """A request that cannot be read, or by a name that the service does not go by: without a frame, as that asks for the name."""
    if isinstance(exception, DisallowedHost):
        text = "This service is not known by that name: its administrator says in CGORL_HOSTS by which it is."
    else:
        text = "The request cannot be read: there are too many fields or files in it, or it was damaged on the way."
    if of_api(request):
        return problem(400, text)
    return HttpResponse(text + "\n", status=400, content_type="text/plain; charset=utf-8")


def foreign(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that does not show that it comes from a page of ours."""
    why = "The form did not come with this service's cookie: allow its cookies, open the page anew, and send it again."
    if reason.startswith(("Origin", "Referer")):
        why = "The form comes from an address that this service does not know as its own: its administrator says in CGORL_ORIGINS which is."
    return render(request, "cgorl/refused.html", {"reason": why}, status=403)


def broken(request: HttpRequest) -> HttpResponse:
    """An error of ours; the log has it."""
    if of_api(request):
        return problem(500, "something went wrong inside the service; its log has it")
    return render(
        request,
        "cgorl/refused.html",
        {"reason": "Something went wrong inside the service. Its administrator finds it in the log."},
        status=500,
    )
