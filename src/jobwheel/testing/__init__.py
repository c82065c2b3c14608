"""For tests of your handlers: run one without a server, and see its result and its log."""

from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.testing.handlers import HandlerResult, run_handler, run_handler_async

__all__ = ["FakeClock", "HandlerResult", "run_handler", "run_handler_async"]
