"""Managing jobs over the executors' API, by the same use cases as REST."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from jobwheel.admin.api.errors import status_of
from jobwheel.admin.api.services import Services
from jobwheel.admin.domain.caller import Caller, WireCaller
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.services.belonging import check_job_fields
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.scripts import SCRIPT_FIELDS
from jobwheel.admin.services.triggers import Trigger
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.job_messages import FIELDS, decode_job_fields, decode_job_id, decode_trigger_job
from jobwheel.wire.messages import FAILURE, SUCCESS
from jobwheel.wire.server import WireRequest

log = get_logger(__name__)

WireHandler = Callable[[WireRequest, WireCaller], Awaitable[bytes]]

_FIELDS: Final[Mapping[str, str]] = {**FIELDS, "addresses": "addressList"}
# Our names in the words of a message; those of one word are words of the language as well.
_OURS: Final = re.compile(rf"\b({'|'.join(name for name in FIELDS if '_' in name)})\b")


class WireJobs:
    """`addJob`, `updateJob`, `removeJob`, `startJob`, `stopJob` and `triggerJob`.

    A group's credentials find the jobs of that group alone; others are not there.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def handlers(self) -> dict[str, WireHandler]:
        """What answers each path."""
        return {
            "addJob": _in_words_of_the_wire(self._add),
            "updateJob": _in_words_of_the_wire(self._update),
            "removeJob": _in_words_of_the_wire(self._remove),
            "startJob": _in_words_of_the_wire(self._start),
            "stopJob": _in_words_of_the_wire(self._stop),
            "triggerJob": _in_words_of_the_wire(self._trigger),
        }

    async def _add(self, request: WireRequest, wire_caller: WireCaller) -> str:
        given = decode_job_fields(request.body).given()
        if wire_caller.group_id is not None:
            # An executor knows its app name, and perhaps not its group's number.
            given.setdefault("group_id", wire_caller.group_id)
        given = _without_idle_script(given, given.get("glue_type", GlueType.BEAN))
        caller = wire_caller.caller
        check_job_fields(caller, given)
        job = await self._jobs(caller).create(given, running=False, actor=caller.name)
        return str(job.id)

    async def _update(self, request: WireRequest, wire_caller: WireCaller) -> None:
        job_id, caller = JobId(decode_job_id(request.body)), wire_caller.caller
        # Before the fields: of a job that is not there, nothing else is to be said.
        await self._services.belonging.check(caller, "job", job_id)
        given = decode_job_fields(request.body).given()
        if given.keys() & SCRIPT_FIELDS:
            stored = await self._jobs(caller).get(job_id)
            given = _without_idle_script(given, stored.settings.glue_type)
        check_job_fields(caller, given)
        await self._jobs(caller).update(job_id, given, version=None, actor=caller.name)

    async def _remove(self, request: WireRequest, wire_caller: WireCaller) -> None:
        job_id, caller = JobId(decode_job_id(request.body)), wire_caller.caller
        await self._jobs(caller).delete(job_id, actor=caller.name)

    async def _start(self, request: WireRequest, wire_caller: WireCaller) -> None:
        job_id, caller = JobId(decode_job_id(request.body)), wire_caller.caller
        await self._jobs(caller).start(job_id, actor=caller.name)

    async def _stop(self, request: WireRequest, wire_caller: WireCaller) -> None:
        job_id, caller = JobId(decode_job_id(request.body)), wire_caller.caller
        await self._jobs(caller).stop(job_id, actor=caller.name)

    async def _trigger(self, request: WireRequest, wire_caller: WireCaller) -> None:
        message, caller = decode_trigger_job(request.body), wire_caller.caller
        wanted = Trigger(TriggerType.API, message.parameter, message.addresses)
        triggers = self._services.triggers.within(caller.group_ids)
        await triggers.trigger(JobId(message.job_id), wanted, actor=caller.name)

    def _jobs(self, caller: Caller) -> Jobs:
        return self._services.jobs.within(caller.group_ids)


def _without_idle_script(given: dict[str, Any], glue_type: str) -> dict[str, Any]:
    """Without the script of a job that runs a handler, if it is empty.

    Clients of the reference send every field that it has, of such a job an empty source and some remark.
    """
    if glue_type != GlueType.BEAN or given.get("glue_source", "").strip():
        return given
    return {name: value for name, value in given.items() if name not in SCRIPT_FIELDS}


def _in_words_of_the_wire(handle: Callable[[WireRequest, WireCaller], Awaitable[Any]]) -> WireHandler:
    """Answer with what `handle` gives, or with why it was refused."""

    async def answer(request: WireRequest, wire_caller: WireCaller) -> bytes:
        try:
            value = await handle(request, wire_caller)
        except JobwheelError as error:
            if status_of(error) == 500:
                raise
            message = _worded(error)
            log.warning("wire.refused", path=request.path, client=request.client, error=message)
            return encode_envelope(FAILURE, message)
        return encode_envelope(SUCCESS, value=value)

    return answer


def _worded(error: JobwheelError) -> str:
    """The error's message, with the wire's name of the field in front."""
    field, message = error.field, error.message
    if isinstance(error, NotFoundError):
        field = {"group": "group_id"}.get(error.what, "id")
    if field is not None:
        message = f"{_FIELDS.get(field, field)}: {message.removeprefix(f'{field}: ')}"
    return _OURS.sub(lambda match: _FIELDS[match[1]], message)
