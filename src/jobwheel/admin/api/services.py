"""What the API stands on."""

from dataclasses import dataclass

from jobwheel.admin.services.alarm_channels import AlarmChannels
from jobwheel.admin.services.api_tokens import ApiTokens
from jobwheel.admin.services.backfills import Backfills
from jobwheel.admin.services.belonging import Belonging
from jobwheel.admin.services.bulk_jobs import BulkJobs
from jobwheel.admin.services.clean_ups import CleanUps
from jobwheel.admin.services.group_tokens import GroupTokens
from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.job_documents import JobDocuments
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.kills import Kills
from jobwheel.admin.services.previews import Previews
from jobwheel.admin.services.probes import Probes
from jobwheel.admin.services.reports import Reports
from jobwheel.admin.services.reruns import Reruns
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.services.scripts import Scripts
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.services.status import EngineStatus
from jobwheel.admin.services.triggers import Triggers
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.secret import Secret


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases that the routes call. `metrics_token` None: metrics for sessions alone."""

    clock: Clock
    zone_name: str
    sign_in: SignIn
    api_tokens: ApiTokens
    belonging: Belonging
    groups: Groups
    probes: Probes
    group_tokens: GroupTokens
    jobs: Jobs
    job_documents: JobDocuments
    bulk_jobs: BulkJobs
    backfills: Backfills
    reruns: Reruns
    scripts: Scripts
    triggers: Triggers
    previews: Previews
    runs: Runs
    kills: Kills
    run_logs: RunLogs
    clean_ups: CleanUps
    reports: Reports
    alarm_channels: AlarmChannels
    status: EngineStatus
    metrics_token: Secret | None
