"""The smallest executor: `python examples/minimal.py`, with an admin at JOBWHEEL_EXECUTOR_ADMIN."""

from jobwheel import Executor, JobContext

executor = Executor(app_name="minimal")


@executor.job("greet")
def greet(ctx: JobContext) -> str:
    ctx.log.info("greeting %s", ctx.parameter or "the world")
    return f"hello, {ctx.parameter or 'world'}"


if __name__ == "__main__":
    executor.run()
