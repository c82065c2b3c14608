import pytest

from jobwheel.executor.disk_threads import DiskThreads
from tests.support.refused_threads import refused_threads


async def test_what_gets_no_thread_is_not_done_later_either() -> None:
    threads = DiskThreads("disk", 1)
    done: list[str] = []
    with refused_threads(), pytest.raises(RuntimeError, match="can't start"):
        await threads.do(done.append, "refused")
    await threads.do(done.append, "next")
    threads.close()
    assert done == ["next"]


async def test_what_is_raised_there_is_raised_here() -> None:
    threads = DiskThreads("disk", 1)
    with pytest.raises(ZeroDivisionError):
        await threads.do(divmod, 1, 0)
    threads.close()
    with pytest.raises(RuntimeError):
        await threads.do(divmod, 1, 1)
