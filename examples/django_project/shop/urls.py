from django.urls import include, path

# Only to serve the executor on the project's own port; `manage.py runexecutor` has one of its own.
urlpatterns = [path("jobwheel/", include("jobwheel.integrations.django.urls"))]
