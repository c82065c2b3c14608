"""The scheduling center: keeps jobs, fires each at its time, collects results and logs."""
