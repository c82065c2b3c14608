"""The trigger request of a run."""

import msgspec

from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun, Shard
from jobwheel.wire.messages import Parent, TriggerRequest

_WHOLE = Shard(0, 1)


def trigger_request(
    run: PendingRun, job: DispatchJob, instance_id: str | None, parent: Parent | None = None
) -> TriggerRequest:
    """The request for a run; to an executor of ours with our extensions."""
    ours = instance_id is not None
    shard, script = run.shard or _WHOLE, job.script
    return TriggerRequest(
        job_id=job.id,
        log_id=run.id,
        executor_handler=job.handler,
        executor_params=run.parameter,
        executor_block_strategy=job.block_strategy,
        executor_timeout=job.timeout_s,
        log_date_time=run.triggered_ms,
        glue_type=job.glue_type,
        glue_source="" if script is None else script.source,
        glue_updatetime=0 if script is None else script.saved_ms,
        broadcast_index=shard.index,
        broadcast_total=shard.total,
        scheduled_time=run.planned_ms if ours else msgspec.UNSET,
        trigger_type=run.trigger_type.value if ours else msgspec.UNSET,
        attempt=run.attempt if ours else msgspec.UNSET,
        parent=parent if ours and parent is not None else msgspec.UNSET,
    )
