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

# How many large pieces lie beside the others, each in a mapping of its own, once one of them was free in between.
LARGE = """
import ctypes, os, sys, tempfile
from jobwheel.kernel.memory import return_large_pieces
if sys.argv[1] == "returned":
    return_large_pieces()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
def mapped():
    with tempfile.TemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        file.seek(0)
        return int(file.read().rpartition(b'<total type="mmap" count="')[2].partition(b'"')[0])
before = mapped()
piece = bytearray(2_000_000)
del piece
kept = [bytearray(1_000_000) for _ in range(5)]
print(mapped() - before)
"""


def arenas(how: str) -> int:
    return _printed(PROGRAM, how)


def _printed(program: str, how: str) -> int:
    return int(subprocess.run([sys.executable, "-c", program, how], check=True, capture_output=True, text=True).stdout)


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is Linux's")


@on_linux
def test_threads_share_two_arenas() -> None:
    assert arenas("shared") <= 2 < arenas("as usual")


@on_linux
def test_large_pieces_lie_beside_the_others_also_when_one_was_free() -> None:
    assert _printed(LARGE, "returned") == 5
    assert _printed(LARGE, "as usual") < 5
