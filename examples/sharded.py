"""A batch job in shards: each executor of the group does its part of the work. `python examples/sharded.py`.

Start it on several machines (or several times on one, with JOBWHEEL_EXECUTOR_PORT=0 and a JOBWHEEL_EXECUTOR_LOG_PATH
each), and give the job the route strategy SHARDING_BROADCAST: each run makes one for every executor.
"""

from jobwheel import Executor, JobContext

executor = Executor(app_name="sharded")


def invoices() -> list[int]:
    """In a real program a query, such as `… WHERE id % :total = :index`."""
    return list(range(1, 101))


@executor.job("send-invoices")
def send_invoices(ctx: JobContext) -> str:
    mine = [number for number in invoices() if number % ctx.shard_total == ctx.shard_index]
    ctx.log.info("shard %d of %d: %d invoices", ctx.shard_index, ctx.shard_total, len(mine))
    for number in mine:
        ctx.log.info("sent invoice %d", number)
    return f"{len(mine)} invoices sent"


if __name__ == "__main__":
    executor.run()
