"""What the API stands on."""

from dataclasses import dataclass

from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.previews import Previews
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
    groups: Groups
    jobs: Jobs
    scripts: Scripts
    triggers: Triggers
    previews: Previews
    runs: Runs
    run_logs: RunLogs
    status: EngineStatus
    metrics_token: Secret | None
