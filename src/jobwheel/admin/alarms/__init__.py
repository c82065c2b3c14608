"""The ways in which alarms reach people: one module for each kind of channel."""
