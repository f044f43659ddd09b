"""Django's settings, safe by default; everything that an administrator decides comes from environment variables (see README)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from cgorl.web.environment import database, flag, number, secret, words

# ---------------------------------------------------------------- what an administrator decides
DATA = Path(os.environ.get("CGORL_DATA", "runs/service")).resolve()
SHIPPED = Path(__file__).resolve().parents[2] / "data"
DEBUG = flag("CGORL_DEBUG", False)
HTTPS = flag("CGORL_HTTPS", True)  # browsers send the cookies over HTTPS alone; `serve` on the loopback turns it off
ACCOUNTS = flag("CGORL_ACCOUNTS", False)  # whether one must log in
HOSTS = words("CGORL_HOSTS", "localhost,127.0.0.1,[::1]")
SECRET_KEY = secret(DATA)

MOST_UPLOAD_BYTES = number("CGORL_UPLOAD_MB", 2048, 1) << 20  # of one request, all files together
MOST_FILES = 256  # of one request
MOST_UPLOADS_AT_ONCE = number("CGORL_UPLOADS_AT_ONCE", 16, 1)  # in one web process
SPARE_DISK_BYTES = number("CGORL_SPARE_DISK_MB", 2048) << 20  # no upload where less would be left
MOST_WAITING = number("CGORL_MOST_WAITING", 500, 1)  # jobs in the queue
MOST_WAITING_EACH = number("CGORL_MOST_WAITING_EACH", 20, 1)  # of one user, waiting and running
MOST_WAITING_OF_AN_ADDRESS = number("CGORL_MOST_WAITING_OF_AN_ADDRESS", 100, 1)  # of all users behind one address
MOST_AN_HOUR = number("CGORL_MOST_AN_HOUR", 120, 1)  # of one user
MOST_AN_HOUR_OF_AN_ADDRESS = number("CGORL_MOST_AN_HOUR_OF_AN_ADDRESS", 600, 1)  # of all users behind one address
MOST_KEPT_BYTES_OF_AN_ADDRESS = number("CGORL_KEPT_GB_OF_AN_ADDRESS", 32, 1) << 30
KEEP_SECONDS = number("CGORL_KEEP_HOURS", 168, 1) * 3600  # uploads and results

MOST_SEARCH_SECONDS = number("CGORL_SEARCH_SECONDS", 600, 1)  # that a user may ask for
MOST_JOB_SECONDS = number("CGORL_JOB_SECONDS", 1800, 10)  # of a whole job
MOST_LOOK_SECONDS = number("CGORL_LOOK_SECONDS", 60, 5)  # to read an upload and say what it is
MOST_SILENT_SECONDS = number("CGORL_SILENT_SECONDS", 300, 10)  # in which a job says nothing: a loop without end, most likely
JOB_MEMORY_BYTES = number("CGORL_JOB_MEMORY_MB", 6144, 512) << 20
JOB_DISK_BYTES = number("CGORL_JOB_DISK_MB", 8192, 64) << 20
JOB_THREADS = number("CGORL_JOB_THREADS", 1, 1)
LEASE_SECONDS = number("CGORL_LEASE_SECONDS", 30, 2)  # a job whose worker has not been heard of for so long is taken from it
ATTEMPTS = 2  # a job whose worker died is tried once more

# ---------------------------------------------------------------- Django
ALLOWED_HOSTS = HOSTS
CSRF_TRUSTED_ORIGINS = words("CGORL_ORIGINS")
ROOT_URLCONF = "cgorl.web.urls"
ASGI_APPLICATION = "cgorl.web.asgi.application"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "csp",
    "ninja",
    "django_tasks",
    "django_tasks_db",
    "cgorl.web.apps.Web",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "cgorl.web.static.Static",
    "cgorl.web.answers.answers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "cgorl.web.headers.headers",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request", "cgorl.web.headers.everywhere"]},
    }
]

# SQLite writes ahead, so that readers never wait, and a writer waits for another rather than fail.
_SQLITE = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=67108864;",
}
DATABASES: dict[str, Any] = {"default": database(os.environ.get("DATABASE_URL", ""), f"sqlite:///{DATA / 'service.sqlite3'}")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {**_SQLITE, **DATABASES["default"].get("OPTIONS", {})}
else:
    # A request waits for a connection rather than ask the server for one too many.
    _pool = {"min_size": 0, "max_size": number("CGORL_CONNECTIONS", 20, 2), "timeout": 30}
    DATABASES["default"]["OPTIONS"] = {"pool": _pool, **DATABASES["default"].get("OPTIONS", {})}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["look", "optimize"]}}

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

# Uploads go to disk whatever their size, on the disk that they stay on.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]
FILE_UPLOAD_TEMP_DIR = str(DATA / "incoming")
DATA_UPLOAD_MAX_NUMBER_FILES = MOST_FILES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200 + MOST_FILES
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20

STATIC_URL = "/static/"
STATICFILES_DIRS = [("assets", str(Path(__file__).parents[1] / "assets"))]
WHITENOISE_USE_FINDERS = True  # straight from the packages: there is nothing to collect
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 60
WHITENOISE_ALLOW_ALL_ORIGINS = False

# ---------------------------------------------------------------- safety
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"  # links to jobs are secrets
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 3600 * 24 * 30 if HTTPS else 0
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "cgorl.web.views.foreign"
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = KEEP_SECONDS
AUTHENTICATION_BACKENDS = ["cgorl.web.throttle.Throttle", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator"} for name in ("MinimumLength", "CommonPassword", "NumericPassword")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"redacted": {"()": "cgorl.web.logs.Redacted"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["redacted"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "cgorl.web": {"level": "INFO"},
        "django": {"handlers": [], "level": "WARNING"},  # not Django's own handlers, which mail and print
        "django.request": {"level": "ERROR"},
        "django.security": {"level": "CRITICAL"},  # what strangers send is theirs, and would fill the log
        "django.security.csrf": {"level": "WARNING"},  # but this may be a proxy that passes on the wrong headers
        "django_tasks": {"level": "WARNING"},
        "django_tasks_db": {"level": "WARNING"},
    },
}
