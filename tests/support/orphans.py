"""A process that is killed while a child that it forked lives on."""

from typing import Final

LEAVE_A_CHILD: Final = """
import os, signal, sys

def leave_a_child():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, b"x")
        sys.stdin.read()
        os._exit(0)
    os.read(reader, 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""The beginning of a program: `leave_a_child` ends its process by SIGKILL; the child lives until its input ends."""
