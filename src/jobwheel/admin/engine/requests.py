"""The trigger request of a run."""

import msgspec

from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.wire.messages import TriggerRequest


def trigger_request(run: PendingRun, job: DispatchJob, instance_id: str | None) -> TriggerRequest:
    """The request for a run; to an executor of ours with our extensions."""
    request = TriggerRequest(
        job_id=job.id,
        log_id=run.id,
        executor_handler=job.handler,
        executor_params=run.parameter,
        executor_block_strategy=job.block_strategy,
        executor_timeout=job.timeout_s,
        log_date_time=run.triggered_ms,
        glue_type=job.glue_type,
        glue_source="",
        broadcast_total=1,
    )
    if instance_id is None:
        return request
    return msgspec.structs.replace(
        request, scheduled_time=run.planned_ms, trigger_type=run.trigger_type.value, attempt=run.attempt
    )
