"""Jobwheel: a distributed job-scheduling platform."""

__version__ = "0.1.0.dev0"
