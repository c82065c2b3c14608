"""What must hold for any order of events and any content."""

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobwheel.executor.execution import MOST_MESSAGE_BYTES, storable
from jobwheel.executor.log_reader import RunLogReader
from jobwheel.executor.spool import Spool
from jobwheel.executor.spool_segment import SegmentFile
from jobwheel.wire.messages import Result

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.text(max_size=40)),
        st.tuples(st.just("send"), st.integers(1, 6)),
        st.tuples(st.just("fail"), st.integers(1, 6)),
        st.tuples(st.just("move"), st.just(1)),
        st.tuples(st.just("kill"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


class Spooling:
    """A spool, processes that come and go, and what it should hold."""

    def __init__(self, root: Path, segment_bytes: int) -> None:
        self.root = root
        self.segment_bytes = segment_bytes
        self.processes = 0
        self.put_in = 0
        self.waiting: dict[int, str] = {}
        self.start()

    def start(self) -> None:
        self.processes += 1
        self.spool = Spool(self.root, f"process-{self.processes}", self.segment_bytes)
        self.spool.open()

    def put(self, text: str) -> None:
        self.put_in += 1
        self.waiting[self.put_in] = text
        self.spool.put(Result(self.put_in, 0, 200, text))

    def send(self, most: int, *, success: bool) -> None:
        batch = self.spool.read(most, 1000)
        if batch is None:
            assert not self.waiting
            return
        for result in batch.results:
            assert self.waiting[result.log_id] == result.message
            if success:
                del self.waiting[result.log_id]
        if success:
            self.spool.done(batch)

    def move(self) -> None:
        batch = self.spool.read(1, 1000)
        if batch is not None:
            self.spool.move_to_end(batch)

    def kill(self) -> None:
        for descriptor in self.spool._locks.values():
            os.close(descriptor)
        for segment in self.spool._segments:
            if isinstance(segment, SegmentFile):
                segment.park()
        self.start()

    def restart(self) -> None:
        self.spool.close()
        self.start()


@QUICK
@given(steps=STEPS, segment_bytes=st.sampled_from([60, 400, 10**6]))
def test_the_spool_holds_exactly_what_no_admin_has(steps: list[tuple[str, str | int]], segment_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spooling = Spooling(Path(folder), segment_bytes)
        for step, value in steps:
            match step:
                case "put":
                    spooling.put(str(value))
                case "send" | "fail":
                    spooling.send(int(value), success=step == "send")
                case "move":
                    spooling.move()
                case "kill":
                    spooling.kill()
                case _:
                    spooling.restart()
            assert spooling.spool.pending == len(spooling.waiting)
        while spooling.waiting:
            spooling.send(5, success=True)
        spooling.spool.close()
        assert list(Path(folder).iterdir()) == []


@QUICK
@given(
    content=st.lists(st.binary(max_size=30), max_size=50).map(b"\n".join),
    stops=st.lists(st.integers(1, 60), max_size=5),
)
def test_pages_put_together_are_the_log(content: bytes, stops: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "1.log"
        path.write_bytes(content)
        lines = [line.decode(errors="replace") for line in content.split(b"\n")]
        if lines[-1] == "":
            lines.pop()
        reader = RunLogReader()
        for from_line in [*stops, 1]:
            page = reader.read(str(path), from_line, over=True)
            wanted = lines[from_line - 1 :]
            assert page.content == "".join(line + "\n" for line in wanted)
            assert page.to_line == from_line - 1 + len(wanted)
            assert page.is_end


@QUICK
@given(st.text(alphabet=st.characters(), max_size=200), st.integers(1, 2000))
def test_any_message_can_be_stored(text: str, times: int) -> None:
    message = storable(text * times)
    assert len(message.encode()) <= MOST_MESSAGE_BYTES
