"""What every part of the engine is given."""

from dataclasses import dataclass, field

from jobwheel.admin.engine.figures import Counters
from jobwheel.admin.engine.node import Node
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The engine's settings; see `admin.settings` for their meaning and bounds."""

    look_ahead_s: float = 5.0
    claim_batch: int = 1000
    misfire_most: int = 100
    fast_lane: int = 200
    slow_lane: int = 100
    slow_send_ms: int = 500
    slow_sends: int = 10
    address_limit: int = 32
    send_timeout_s: float = 3.0
    wheel_capacity: int = 200_000

    @property
    def search_s(self) -> float:
        """So long addresses are asked and tried for a run; one that does not answer costs it a send time-out."""
        return 10 * self.send_timeout_s


@dataclass(frozen=True, slots=True)
class EngineContext:
    """The database, the clocks, who this node is, its counters, and the language in which it writes messages."""

    database: Database
    zone: InstallationZone
    clock: Clock
    node: Node
    counters: Counters
    limits: EngineLimits
    messages: TriggerMessages = field(default_factory=TriggerMessages)
