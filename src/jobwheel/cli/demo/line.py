"""The demo's way to its admin: calls in a thread, with a session that is renewed when it is over."""

import asyncio
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from jobwheel.cli.demo.places import Places
from jobwheel.cli.demo.preparation import new_session
from jobwheel.cli.errors import NotSignedInError
from jobwheel.cli.rest import Rest
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.secret import Secret

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# An admin that does not answer must not hold the demo's stop up.
_TIMEOUT_S: Final = 2.0


class Line:
    """Asks the admin one thing after the other. `close` it at the end."""

    def __init__(self, places: Places, session: Secret, clock: Clock) -> None:
        self._places = places
        self._clock = clock
        self._rest = self._open(session)

    async def ask(
        self,
        question: Callable[Concatenate[Rest, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Call `question` with the REST client, away from the event loop.

        Raises:
            JobwheelError: as the question does.
        """
        try:
            return await asyncio.to_thread(question, self._rest, *args, **kwargs)
        except NotSignedInError:
            session = await new_session(self._places, self._clock)
            self._rest.close()
            self._rest = self._open(session)
            return await asyncio.to_thread(question, self._rest, *args, **kwargs)

    async def sign_out(self) -> None:
        """End the session.

        Raises:
            JobwheelError: the admin does not answer.
        """
        await asyncio.to_thread(self._rest.delete, "/api/v1/session")

    def close(self) -> None:
        """Close the connections."""
        self._rest.close()

    def _open(self, session: Secret) -> Rest:
        return Rest(self._places.url, session, timeout_s=_TIMEOUT_S)
