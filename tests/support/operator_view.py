"""What an operator does and sees, over REST: jobs of one group, their runs, results and logs."""

from dataclasses import dataclass
from typing import Any, Final

from tests.support.admin_jobs import Json
from tests.support.live_admin import seen
from tests.support.live_rest import LiveRest

_RUN_S: Final = 30


@dataclass
class OperatorView:
    """Works with the group of `orders`."""

    rest: LiveRest
    group_id: int = 0

    async def registered(self, *addresses: str) -> None:
        """Return once the group has these live addresses and no others."""

        async def look() -> int | None:
            groups = (await self.rest.get("groups"))["items"]
            live = {group["id"]: sorted(each["address"] for each in group["live_addresses"]) for group in groups}
            return next((group_id for group_id, found in live.items() if found == sorted(addresses)), None)

        self.group_id = await seen(look, _RUN_S)

    async def job(self, handler: str, parameter: str = "", **fields: Any) -> int:
        """A job without a schedule; its id."""
        body = {
            "group_id": self.group_id,
            "name": f"{handler} of the reference",
            "handler": handler,
            "parameter": parameter,
            "schedule_type": "NONE",
            **fields,
        }
        return int((await self.rest.post("jobs", body, 201))["id"])

    async def trigger(self, job_id: int, parameter: str | None = None, *addresses: str) -> int:
        """Run a job by hand; the run's id."""
        body = {"parameter": parameter, "addresses": list(addresses)}
        return int((await self.rest.post(f"jobs/{job_id}/run", body, 201))["id"])

    async def run(self, handler: str, parameter: str = "", **fields: Any) -> int:
        """A run of a job of its own."""
        return await self.trigger(await self.job(handler, parameter, **fields))

    async def look(self, run_id: int) -> Json:
        return await self.rest.get(f"runs/{run_id}")

    async def in_phase(self, run_id: int, phase: str | None, within_s: float = _RUN_S) -> Json:
        """The run, once it is in the phase.

        Raises:
            TimeoutError: it is not within the time.
        """

        async def look() -> Json | None:
            run = await self.look(run_id)
            return run if run["phase"] == phase else None

        return await seen(look, within_s)

    async def taken(self, run_id: int) -> Json:
        """The run, once its executor has accepted it; it may have ended already."""

        async def look() -> Json | None:
            run = await self.look(run_id)
            return run if run["phase"] in ("accepted", None) else None

        return await seen(look, _RUN_S)

    async def done(self, run_id: int, within_s: float = _RUN_S) -> Json:
        """The run, once it has ended."""
        return await self.in_phase(run_id, None, within_s)

    async def ended(self, run_id: int) -> tuple[str, int, str]:
        """How the run ended: outcome, code and message."""
        run = await self.done(run_id)
        return run["outcome"], run["handle_code"], run["handle_message"]

    async def log_from(self, run_id: int, line: int) -> Json:
        return await self.rest.get(f"runs/{run_id}/log?from_line={line}")

    async def log_shows(self, run_id: int, words: str) -> None:
        """Return once the run's log has these words."""

        async def look() -> bool:
            return words in (await self.log_from(run_id, 1))["content"]

        await seen(look, _RUN_S)

    async def whole_log(self, run_id: int) -> str:
        """The run's log, page after page, to its end."""
        line, pages = 1, []

        async def turn() -> bool:
            nonlocal line
            page = await self.log_from(run_id, line)
            if page["to_line"] >= line:
                pages.append(page["content"])
                line = page["to_line"] + 1
            return bool(page["is_end"])

        await seen(turn, _RUN_S)
        return "\n".join(pages)
