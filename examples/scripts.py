"""An executor that runs scripts: `python examples/scripts.py`. Their source stands in the admin, with their jobs.

Whoever may edit scripts in the admin can run any program on this machine, as the user of this process: so scripts are
off unless they are enabled. The admin is at JOBWHEEL_EXECUTOR_ADMIN.
"""

from jobwheel import Executor

executor = Executor(app_name="scripts", scripts_enabled=True)

if __name__ == "__main__":
    executor.run()
