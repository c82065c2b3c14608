"""Use cases and background work: what people and executors ask for, each in one transaction."""
