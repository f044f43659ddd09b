"""Where everything is."""

from django.urls import path

from cgorl.web import views
from cgorl.web.api import api

urlpatterns = [
    path("", views.home, name="home"),
    path("models/<str:name>/", views.source, name="source"),
    path("jobs/", views.jobs, name="jobs"),
    path("jobs/<str:name>/", views.job, name="job"),
    path("jobs/<str:name>/cancel", views.cancel, name="cancel"),
    path("jobs/<str:name>/delete", views.delete, name="delete"),
    path("jobs/<str:name>/files/<str:file>", views.file, name="file"),
    path("jobs/<str:name>/drawn/<str:picture>", views.picture, name="picture"),
    path("compare/", views.compare, name="compare"),
    path("login", views.login, name="login"),
    path("logout", views.logout, name="logout"),
    path("health", views.health, name="health"),
    path("api/v1/", api.urls),
]

handler400 = "cgorl.web.views.unreadable"
handler404 = "cgorl.web.views.nowhere"
handler500 = "cgorl.web.views.broken"
