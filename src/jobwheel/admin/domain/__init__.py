"""Job, group, run, user, policies, events: frozen data and rules, no I/O."""
