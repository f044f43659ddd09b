"""What pages load beside themselves, straight from the packages: small files, handed over whole."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class Static(WhiteNoiseMiddleware):
    """WhiteNoise, whose own answer is an iterator that a server of ASGI would read to its end in a thread, with a warning."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """The file, or that it has not changed; of HEAD the headers alone."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
