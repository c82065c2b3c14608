import subprocess
import sys

import pytest

# Eight threads that have memory from the C library at the same moment, and how many arenas it says there are.
PROGRAM = """
import ctypes, os, sys, tempfile, threading
from jobwheel.kernel.memory import share_arenas
if sys.argv[1] == "shared":
    share_arenas()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
together = threading.Barrier(8)
def take():
    together.wait()
    kept = [bytearray(2000) for _ in range(1000)]
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    file.seek(0)
    print(file.read().count(b"<heap nr="))
"""


def arenas(how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is Linux's")
def test_threads_share_two_arenas() -> None:
    assert arenas("shared") <= 2 < arenas("as usual")
