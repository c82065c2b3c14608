"""The Django application."""

import functools

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from jobwheel.executor import Executor, SettingError

SETTING = "JOBWHEEL_EXECUTOR"


class JobwheelConfig(AppConfig):
    """Holds the project's executor, and finds its jobs once all applications are loaded."""

    name = "jobwheel.integrations.django"
    label = "jobwheel"
    verbose_name = "Jobwheel"

    def ready(self) -> None:
        autodiscover_modules("jobs")

    @functools.cached_property
    def executor(self) -> Executor:
        """Made when it is first asked for; started by nobody but the project.

        Raises:
            ImproperlyConfigured: JOBWHEEL_EXECUTOR cannot work.
        """
        given = getattr(settings, SETTING, {})
        if not isinstance(given, dict):
            raise ImproperlyConfigured(f"{SETTING} must be a dictionary of the executor's settings, not {given!r}")
        try:
            return Executor(**given)
        except SettingError as error:
            raise ImproperlyConfigured(f"{SETTING} or the environment: {error.message}") from error
