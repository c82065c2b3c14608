"""REST for programs and people, health, metrics and the status page."""
