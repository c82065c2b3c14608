"""A job that needs a processor for itself, in a process of its own: `python examples/cpu_bound.py`.

It shares no interpreter with the other jobs, and ends for sure when it is killed or out of time. The admin is at
JOBWHEEL_EXECUTOR_ADMIN.
"""

from jobwheel import Executor, JobContext

executor = Executor(app_name="cpu-bound")


@executor.job("count-primes", isolation="process")
def count_primes(ctx: JobContext) -> str:
    limit = int(ctx.parameter or 100_000)
    ctx.log.info("counting the primes below %d", limit)
    is_prime = bytearray([1]) * limit
    is_prime[:2] = bytes(min(2, limit))
    for number in range(2, int(limit**0.5) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return f"{sum(is_prime)} primes below {limit}"


if __name__ == "__main__":
    executor.run()
