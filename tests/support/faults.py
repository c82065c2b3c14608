"""The faults of a cluster, each as what happens in one round of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from tests.support.cluster import Cluster
from tests.support.scene import CLOCK

SCHEDULE_LOCK: Final = "schedule_lock"


@dataclass(frozen=True, slots=True)
class Form:
    """How often and how long: the short form is for every run of the tests, the long one for a proof.

    Attributes:
        rounds: of each fault; those that last a minute have a quarter of them.
        frozen_s: a node sleeps so long. It is dead to the others after 15 s.
        away_s: the database is away so long. What is missed by more than 5 s misfires.
        locked_s: somebody holds the lock row so long.
    """

    rounds: int
    frozen_s: float
    away_s: float
    locked_s: float

    @property
    def is_long(self) -> bool:
        """Whether outages last long enough for a node to miss its passes for 15 s."""
        return self.away_s > 20


SHORT: Final = Form(1, 20, 12, 12)


def long_form(rounds: int) -> Form:
    return Form(rounds, 30, 60, 60)


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind: what a round of it does; returns when it is over (the nodes may still have to recover).

    Attributes:
        latest_ms: no run may begin so long after its planned time, if that is bounded.
    """

    name: str
    inject: Callable[[Cluster, Form], Awaitable[None]]
    share: int = 1
    latest_ms: int | None = None

    def rounds(self, form: Form) -> int:
        return max(1, form.rounds // self.share)


async def kill(cluster: Cluster, form: Form) -> None:
    """A node dies at a random moment, and is started again some seconds later."""
    node = await cluster.victim()
    await node.kill()
    await cluster.wait_between(0, 5)
    await node.start()


async def stop_node(cluster: Cluster, form: Form) -> None:
    """A node is stopped gracefully in mid-load, and is started again some seconds later."""
    node = await cluster.victim()
    assert await node.stop() == 0
    await cluster.wait_between(0, 5)
    await node.start()


async def freeze(cluster: Cluster, form: Form) -> None:
    """A node sleeps until the others have taken its runs over, and wakes in the belief that they are its own."""
    node = await cluster.victim()
    node.freeze()
    try:
        await CLOCK.wait(form.frozen_s)
    finally:
        node.wake()


async def restart_database(cluster: Cluster, form: Form) -> None:
    await cluster.victim()
    await cluster.stop_database()
    await cluster.start_database()


async def stop_database(cluster: Cluster, form: Form) -> None:
    """The database is away; every node says that it is not well, and why."""
    await cluster.victim()
    await cluster.stop_database()
    begun_s = CLOCK.monotonic()
    try:
        await cluster.red(form.away_s, "no_scheduling_pass" if form.is_long else None)
        await CLOCK.wait(begun_s + form.away_s - CLOCK.monotonic())
    finally:
        await cluster.start_database()


async def hold_lock(cluster: Cluster, form: Form) -> None:
    """Somebody locks the schedule's row and goes to lunch."""
    await cluster.wait_between(0, 2)
    async with cluster.connected() as connection:
        await connection.exec_driver_sql("BEGIN")
        held = f"SELECT 1 FROM xxl_job_lock WHERE lock_name = '{SCHEDULE_LOCK}' FOR UPDATE"
        assert (await connection.exec_driver_sql(held)).all()
        begun_s = CLOCK.monotonic()
        await cluster.red(form.locked_s, "no_scheduling_pass" if form.is_long else None)
        await CLOCK.wait(begun_s + form.locked_s - CLOCK.monotonic())
        await connection.exec_driver_sql("ROLLBACK")


async def delete_lock(cluster: Cluster, form: Form) -> None:
    """The lock's row is deleted again and again while every node claims."""
    async with cluster.connected() as connection:
        for _ in range(10):
            await cluster.wait_between(0, 0.6)
            await connection.exec_driver_sql(f"DELETE FROM xxl_job_lock WHERE lock_name = '{SCHEDULE_LOCK}'")


async def fail_update(cluster: Cluster, table: str) -> None:
    """One update of a row of the table fails: the first, or one soon after."""
    await cluster.wait_between(0, 1)
    nth = cluster.source.randint(1, 25)
    make, count, remove = _TRIGGERS[cluster.server.kind]
    async with cluster.connected() as connection:
        try:
            for statement in make:
                await connection.exec_driver_sql(statement.format(table=table, nth=nth))
            async with asyncio.timeout(20):
                while (await connection.exec_driver_sql(count)).scalar_one() < nth:
                    await CLOCK.wait(0.1)
        finally:
            for statement in remove:
                await connection.exec_driver_sql(statement.format(table=table))


async def fail_job_update(cluster: Cluster, form: Form) -> None:
    await fail_update(cluster, "xxl_job_info")


async def fail_run_update(cluster: Cluster, form: Form) -> None:
    await fail_update(cluster, "xxl_job_log")


# A trigger that counts rows and raises once; sequences count on though the statement is rolled back.
_POSTGRESQL_FUNCTION: Final = """
CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('fault_count') = {nth} THEN RAISE EXCEPTION 'made to fail once'; END IF;
    RETURN NEW;
END $$
"""
_MARIADB_TRIGGER: Final = """
CREATE TRIGGER fault BEFORE UPDATE ON {table} FOR EACH ROW
BEGIN
    IF NEXTVAL(fault_count) = {nth} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'made to fail once'; END IF;
END
"""
_TRIGGERS: Final = {
    "postgresql": (
        (
            "CREATE SEQUENCE fault_count",
            _POSTGRESQL_FUNCTION,
            "CREATE TRIGGER fault BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION fault()",
        ),
        "SELECT last_value FROM fault_count",
        ("DROP FUNCTION IF EXISTS fault CASCADE", "DROP SEQUENCE IF EXISTS fault_count"),
    ),
    "mariadb": (
        ("CREATE SEQUENCE fault_count NOCACHE", _MARIADB_TRIGGER),
        "SELECT next_not_cached_value - 1 FROM fault_count",
        ("DROP TRIGGER IF EXISTS fault", "DROP SEQUENCE IF EXISTS fault_count"),
    ),
}

FAULTS: Final = {
    fault.name: fault
    for fault in (
        # It hands over what is pending, and another takes it within a second: nobody waits for it to be declared dead.
        # The first of all, since what a killed node had claimed may be late in the time of the next fault as well.
        Fault("node stopped", stop_node, latest_ms=5000),
        Fault("node killed", kill),
        Fault("node frozen", freeze),
        Fault("database restarted", restart_database),
        Fault("database stopped", stop_database, share=4),
        Fault("lock held", hold_lock, share=4),
        Fault("lock row deleted", delete_lock),
        Fault("update of a job failed", fail_job_update),
        Fault("update of a run failed", fail_run_update),
    )
}
"""By name, in the order in which they are injected."""
