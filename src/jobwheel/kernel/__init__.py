"""The smallest shared things: clock, services, loops, buffers, back-off, errors, logging, secrets."""
