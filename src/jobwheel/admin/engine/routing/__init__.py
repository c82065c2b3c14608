"""Routing: which address gets a run, and which is next if that one cannot be reached. One strategy per file."""

from jobwheel.admin.engine.routing.base import Asker, Chosen, ProbingRouter, Router, UnknownStrategyError
from jobwheel.admin.engine.routing.table import Routers

__all__ = ["Asker", "Chosen", "ProbingRouter", "Router", "Routers", "UnknownStrategyError"]
