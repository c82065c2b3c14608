"""The built-in sample handlers, for a first look and for databases whose sample jobs name them."""

from jobwheel.executor.context import JobContext
from jobwheel.executor.handlers import HandlerFunction
from jobwheel.kernel.clock import Clock

_USUAL_BEATS = 5
_MOST_BEATS = 3600


def demo_job(clock: Clock) -> HandlerFunction:
    """`demoJobHandler`: writes a line each second, as many as the parameter says (5)."""

    async def demo(context: JobContext) -> str:
        text = context.parameter.strip()
        beats = min(int(text), _MOST_BEATS) if text.isdecimal() and text.isascii() else _USUAL_BEATS
        for beat in range(1, beats + 1):
            context.log.info("beat %d of %d", beat, beats)
            await clock.wait(1)
        return f"{beats} beats"

    return demo


def sharding_job(context: JobContext) -> str:
    """`shardingJobHandler`: says which part of a broadcast it is."""
    message = f"shard {context.shard_index} of {context.shard_total}"
    context.log.info("%s: an item belongs to it if its number modulo the total is the index", message)
    return message
