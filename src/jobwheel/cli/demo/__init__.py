"""`jobwheel demo`: an admin, an executor and sample jobs, to look at and to prove."""
