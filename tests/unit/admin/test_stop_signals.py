"""The signals that stop an admin: the first asks for the stop, and from then on they are the system's."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from jobwheel.admin.server import _stopping_on_signals
from jobwheel.kernel.event_loop import loop_factory

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOPS = pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, loop_factory()])


@pytest.fixture(autouse=True)
def _former_handlers() -> Iterator[None]:
    former = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


def _are_the_systems() -> bool:
    return all(signal.getsignal(number) is signal.SIG_DFL for number in SIGNALS)


@LOOPS
@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_is_the_systems_also_while_the_loop_hangs(make_loop: type, number: signal.Signals) -> None:
    async def main() -> None:
        asked = asyncio.Event()
        with _stopping_on_signals(asked.set):
            assert not _are_the_systems()
            os.kill(os.getpid(), number)
            # The loop has had no turn since.
            assert _are_the_systems()
            assert not asked.is_set()
            await asyncio.wait_for(asked.wait(), 5)
        assert _are_the_systems()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())


@LOOPS
def test_without_a_signal_everything_is_as_before(make_loop: type) -> None:
    async def main() -> None:
        with _stopping_on_signals(lambda: None):
            pass

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
