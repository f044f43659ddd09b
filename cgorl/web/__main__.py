"""`python -m cgorl.web serve`: the service's commands, and Django's own."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cgorl.web.settings")
    try:
        execute_from_command_line([f"{sys.executable} -m cgorl.web", *sys.argv[1:]])
    except ImproperlyConfigured as e:
        sys.exit(f"error: {e}")
