"""The application that a web server runs: Django, behind the guard."""

from __future__ import annotations

import os
import tempfile

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cgorl.web.settings")
_django = get_asgi_application()

from django.conf import settings  # noqa: E402

from cgorl.web.guard import Guard  # noqa: E402

tempfile.tempdir = settings.FILE_UPLOAD_TEMP_DIR  # where bodies lie that are not read yet; never in memory, as /tmp may be

application = Guard(_django)
