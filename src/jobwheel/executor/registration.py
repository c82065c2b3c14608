"""Tells the admins that this executor is alive."""

import asyncio
import functools
from collections.abc import Callable
from typing import Final, Protocol

from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import WRONG_TOKEN_MESSAGE, Envelope, Features

log = get_logger(__name__)

_MOST_REASONS: Final = 5
_RETRY: Final = Backoff(first_s=1.0, most_s=30.0, jitter=0.2)
_SOON_S: Final = 1.0
"""The next beat to an admin whose answer may change at any moment: it drains this executor, which then refuses runs."""

OnContact = Callable[[str, Envelope | None], bool]
"""Told of an admin and of what it answered to a beat, None if it did not; says whether to ask it again soon."""


class Registry(Protocol):
    """Where executors are registered: the admins, behind their client. Raises as `AdminClient` does."""

    async def register(self, admin: str, address: str, features: Features) -> Envelope:
        """Tell one admin that the executor is alive."""
        ...

    async def remove(self, admin: str, address: str) -> Envelope:
        """Tell one admin that the executor takes no more runs."""
        ...


class Registration(Service):
    """Beats to every admin, each at its own pace: one that is slow or gone delays none of the others.

    The log tells of changes only: registered, lost, regained; not of each beat.
    """

    def __init__(
        self,
        admin: Registry,
        settings: ExecutorSettings,
        address: str,
        features: Callable[[], Features],
        clock: Clock,
        on_contact: OnContact,
    ) -> None:
        super().__init__("executor.registration", clock)
        self._admin = admin
        self._address = address
        self._features = features
        self._heartbeat_s = settings.heartbeat_s
        self._timeout_s = settings.timeout_s
        self._on_contact = on_contact
        self._states = {root: _AdminState(root) for root in settings.admins}

    @property
    def registered(self) -> list[str]:
        """The admins that answered the last beat with success."""
        return [state.root for state in self._states.values() if state.registered]

    async def on_start(self) -> None:
        for state in self._states.values():
            self.supervise(state.root, functools.partial(self._beat_for_ever, state))

    async def on_stop(self) -> None:
        await asyncio.gather(*(self._leave(state) for state in self._states.values()))

    async def _leave(self, state: "_AdminState") -> None:
        # A beat that is under way must not arrive after the removal and undo it.
        await self.clock.wait(self._timeout_s, state.silent)
        await self.cancel(state.root)
        if state.may_be_registered:
            await self._remove(state)

    async def _beat_for_ever(self, state: "_AdminState") -> None:
        while True:
            await self._beat(state)
            delay_s = min(self._heartbeat_s, _SOON_S) if state.asked_soon else self._heartbeat_s
            if state.failures:
                delay_s = min(delay_s, _RETRY.delay_s(state.failures))
            await self.clock.wait(delay_s)

    async def _beat(self, state: "_AdminState") -> None:
        before, state.may_be_registered = state.may_be_registered, True
        state.silent.clear()
        envelope: Envelope | None = None
        try:
            envelope = await self._admin.register(state.root, self._address, self._features())
        except UncertainError as error:
            state.failed(str(error))
        except UnreachableError as error:
            state.may_be_registered = before
            state.failed(str(error))
        except AdminRefusedError as error:
            state.may_be_registered = before
            state.failed(f"{error}{_advice(error)}")
        else:
            state.succeeded(self._address)
        finally:
            state.silent.set()
        state.asked_soon = self._on_contact(state.root, envelope)

    async def _remove(self, state: "_AdminState") -> None:
        try:
            await self._admin.remove(state.root, self._address)
        except (UnreachableError, UncertainError, AdminRefusedError) as error:
            log.warning("executor.not_removed", admin=state.root, error=str(error))
        else:
            log.info("executor.removed", admin=state.root, address=self._address)


class _AdminState:
    """What is known of one admin."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.registered = False
        self.may_be_registered = False
        self.asked_soon = False
        self.silent = asyncio.Event()
        self.silent.set()
        self._reached = False
        self.failures = 0
        self._told: set[str] = set()

    def succeeded(self, address: str) -> None:
        if not self.registered:
            log.info("executor.regained" if self._reached else "executor.registered", admin=self.root, address=address)
        self.registered = self._reached = True
        self.failures = 0
        self._told.clear()

    def failed(self, reason: str) -> None:
        # Reasons may take turns, or hold a number that is another each time: each is told once, and a few of them.
        if reason not in self._told and len(self._told) < _MOST_REASONS:
            if self.registered:
                log.warning("executor.registration_lost", admin=self.root, reason=reason)
            else:
                log.error("executor.not_registered", admin=self.root, reason=reason)
            self._told.add(reason)
        self.registered = False
        self.failures += 1


def _advice(error: AdminRefusedError) -> str:
    if error.readable and (WRONG_TOKEN_MESSAGE.rstrip(".") in error.reason or "accessToken" in error.reason):
        return "; compare access_token with the admin's (of XXL-JOB 3.5 and later: with the group's)"
    if error.readable:
        return "; does the admin have a group of this app name?"
    return ""
