"""Answers as HTTP wants them, whichever part of Django gives them: HEAD wherever there is GET, and the API's errors as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_and_async_middleware

API = "/api/"
Answer = Callable[[HttpRequest], HttpResponseBase]


@sync_and_async_middleware
def answers(get_response: Answer | Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> Any:
    """Has views see GET where HEAD was asked, and says of a method that is not there in JSON what is."""
    if iscoroutinefunction(get_response):

        async def later(request: HttpRequest) -> HttpResponseBase:
            head = _as_get(request)
            response = await get_response(request)
            return await sync_to_async(_headers_of)(request, response) if head else _told(request, response)

        return later

    def now(request: HttpRequest) -> HttpResponseBase:
        head = _as_get(request)
        response: HttpResponseBase = get_response(request)
        return _headers_of(request, response) if head else _told(request, response)

    return now


def problem(status: int, why: str) -> HttpResponse:
    """An error of the API: one sentence for people, as `detail`."""
    return JsonResponse({"detail": why}, status=status)


def of_api(request: HttpRequest) -> bool:
    """Whether a request is one of the API's, so that its answer must be JSON."""
    return bool(request.path.startswith(API))


def _as_get(request: HttpRequest) -> bool:
    if request.method != "HEAD":
        return False
    request.method = "GET"
    return True


def _headers_of(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The same without a body, where sending one would take reading a file, or waiting for the end of a job."""
    request.method = "HEAD"
    if not response.streaming:
        return response  # the server leaves the body out
    bare = HttpResponse(status=response.status_code, headers=dict(response.items()))
    bare.cookies = response.cookies
    response.close()
    return bare


def _told(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code != 405 or not of_api(request):
        return response
    there = response.get("Allow", "")
    told = problem(405, f"{request.method} is not for this address: {there or 'nothing'} is")
    told["Allow"] = there
    return told
