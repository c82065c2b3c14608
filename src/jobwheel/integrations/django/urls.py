"""The executor's HTTP API as URLs of a project: `path("jobwheel/", include("jobwheel.integrations.django.urls"))`."""

from django.urls import re_path

from jobwheel.integrations.django.views import executor_api

urlpatterns = [re_path(r"^(?P<path>.*)$", executor_api)]
