"""The status page: rendered on the server, read-only, without a script."""
