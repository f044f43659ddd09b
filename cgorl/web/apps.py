"""The application as Django knows it."""

from django.apps import AppConfig


class Web(AppConfig):
    """The service's only application."""

    name = "cgorl.web"
    label = "cgorl"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Makes the folders."""
        from cgorl.web import folders  # which needs the models

        folders.make()
