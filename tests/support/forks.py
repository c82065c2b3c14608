"""A process that is forked in the middle of what one of its threads does."""

from typing import Final

FORK_DURING: Final = """
import os, signal, threading

def fork_during(module, name, work, in_child):
    within, forked, real = threading.Event(), threading.Event(), getattr(module, name)

    def slow(*args):
        within.set()
        forked.wait()
        return real(*args)

    setattr(module, name, slow)
    other = threading.Thread(target=work)
    other.start()
    within.wait()
    child = os.fork()
    setattr(module, name, real)
    if child == 0:
        signal.alarm(8)
        os._exit(in_child())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    forked.set()
    other.join()
    return code
"""
"""The beginning of a program: `fork_during` forks while a thread that does `work` is within a module's function, and
returns the child's status, which `in_child` gives, or -14 if that does not return.
"""
