"""The handlers that an executor brings with it, as far as its settings allow them."""

import ssl

from jobwheel.executor.command_job import CommandWork
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.http_job import HTTP_JOB, http_job
from jobwheel.executor.sample_jobs import demo_job, sharding_job
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.tls import client_context
from jobwheel.kernel.clock import Clock


def register_built_in(handlers: HandlerTable, settings: ExecutorSettings, clock: Clock) -> None:
    """Register the handlers that the settings allow."""
    if settings.http_job_hosts:
        handlers.register(HTTP_JOB, http_job(settings.http_job_hosts, lambda: _tls(settings)))
    if settings.command_job_programs:
        handlers.add(CommandWork(settings.command_job_programs, clock))
    if settings.sample_handlers:
        handlers.register("demoJobHandler", demo_job(clock))
        handlers.register("shardingJobHandler", sharding_job)


def _tls(settings: ExecutorSettings) -> ssl.SSLContext:
    return client_context(settings) or ssl.create_default_context()
