"""An executor in a Django project: put `jobwheel.integrations.django` into INSTALLED_APPS.

Jobs stand in modules called `jobs` of the installed applications, and `manage.py runexecutor` runs them. The setting
JOBWHEEL_EXECUTOR is a dictionary of the executor's settings, by the names of `Executor`'s arguments.
"""

from jobwheel.integrations.django.handlers import get_executor, job

__all__ = ["get_executor", "job"]
