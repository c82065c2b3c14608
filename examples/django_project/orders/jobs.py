from django.db import connection

from jobwheel import JobContext
from jobwheel.integrations.django import job


@job("count-orders")
def count_orders(ctx: JobContext) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 2 + 3")
        (count,) = cursor.fetchone()
    ctx.log.info("counted for %s", ctx.planned_time.date())
    return f"{count} orders"
