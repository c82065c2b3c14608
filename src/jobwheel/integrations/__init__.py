"""Executors inside frameworks: a module for each, which alone imports it."""
