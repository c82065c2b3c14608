"""Job handlers in a Django project."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import close_old_connections

from jobwheel.executor import Executor, HandlerError

Function = TypeVar("Function", bound=Callable[..., Any])


def get_executor() -> Executor:
    """The project's executor, with the handlers of all its applications once Django is set up.

    Raises:
        ImproperlyConfigured: JOBWHEEL_EXECUTOR cannot work.
    """
    executor: Executor = apps.get_app_config("jobwheel").executor
    return executor


def job(name: str, **options: Any) -> Callable[[Function], Function]:
    """Register the decorated function as a handler of the project's executor, as `Executor.job` does.

    Before and after each run, connections to databases that are too old or broken are closed, as Django does around
    each request: the thread of a job lives longer than a database may keep its connection.

    Args:
        name: the handler's name.
        options: those of `Executor.job`, but for `isolation="process"`: Django is not set up in such a process.

    Raises:
        HandlerError: the name is empty or taken, the function has parameters that nobody gives it, or is to run in a
            process of its own.
    """
    if options.get("isolation", "thread") != "thread":
        raise HandlerError(name, "isolation is not for jobs of Django, which is not set up in a process of their own")

    def decorate(function: Function) -> Function:
        get_executor().job(name, **options)(_with_fresh_connections(function))
        return function

    return decorate


def _with_fresh_connections(function: Function) -> Function:
    if inspect.iscoroutinefunction(function):
        return cast("Function", _async_with_fresh_connections(function))

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return cast("Function", run)


def _async_with_fresh_connections(function: Callable[..., Any]) -> Callable[..., Any]:
    # Where async code of Django's has its connections: in the thread that all its sync calls share.
    close = sync_to_async(close_old_connections)

    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        await close()
        try:
            return await function(*args, **kwargs)
        finally:
            await close()

    return run
