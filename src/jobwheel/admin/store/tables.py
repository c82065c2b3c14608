"""The schema: the reference's tables (3.4.0) and our additions (`storage.md`).

Types are those of the reference in MySQL. `DATETIME` columns hold wall time of the installation's zone; what we compute
with are the BIGINT columns of epoch milliseconds.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.event import listens_for

from jobwheel.admin.store.any_whole import AnyWhole
from jobwheel.admin.store.sqlite_wall import SqliteWall

metadata = MetaData()


# An id that is asked for may be any number. With the 32 bits of its column, PostgreSQL's driver would refuse a larger
# one as a fault of the statement; with 64 there is just no such row.
_ID = Integer().with_variant(AnyWhole(), "postgresql")
# SQLite gives an AUTOINCREMENT id to an INTEGER PRIMARY KEY alone.
_BIG_ID = BigInteger().with_variant(Integer(), "sqlite")
_TINY = SmallInteger().with_variant(mysql.TINYINT(), "mysql", "mariadb")
# The reference's DATETIME has no fraction of a second; SQLite's texts must not have one either to compare well.
_WALL = DateTime().with_variant(SqliteWall(truncate_microseconds=True), "sqlite")  # type: ignore[no-untyped-call]
_MEDIUM_TEXT = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


# Names and addresses are compared letter by letter, as on the other databases.
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _int(name: str, default: int = 0) -> Column[Any]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def _ms(name: str) -> Column[Any]:
    """An instant of ours, epoch milliseconds."""
    return Column(name, BigInteger)


def _few(name: str, *columns: str) -> Index:
    """An index of the runs that did not succeed, on databases where it can be of these alone and so costs nothing.

    MySQL's planner counts what a value has before it chooses, and does well enough with the other indexes.
    """
    index = Index(name, *columns, **_partial("outcome <> 'succeeded'"))
    return index.ddl_if(dialect=("sqlite", "postgresql"))  # type: ignore[arg-type]  # several may be named


def _sqlite_alone(name: str, *columns: str, **options: Any) -> Index:
    """An index for SQLite, whose planner knows nothing of the values; others choose well without it."""
    index = Index(name, *columns, **options)
    return index.ddl_if(dialect="sqlite")


def _partial(condition: str) -> dict[str, Any]:
    """Leave the rows out of an index that nobody looks up in it, where the database can."""
    return {"sqlite_where": text(condition)}


@listens_for(metadata, "before_create")
def _repeat_conditions(*_: object, **__: object) -> None:
    """Say the conditions in PostgreSQL's words as well.

    Only where tables are made from here: the words alone load all that SQLAlchemy knows of PostgreSQL, 2 MiB.
    """
    for table in metadata.tables.values():
        for index in table.indexes:
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]


job_group = Table(
    "xxl_job_group",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("app_name", String(64), nullable=False),
    Column("title", String(64), nullable=False),
    Column("address_type", _TINY, nullable=False, server_default=text("0")),
    Column("address_list", Text),
    Column("update_time", _WALL),
    # Ours.
    Column("access_tokens", Text),
    Column("settings", Text),
    _int("version"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

job_registry = Table(
    "xxl_job_registry",
    metadata,
    Column("id", _BIG_ID, primary_key=True, autoincrement=True),
    Column("registry_group", String(50), nullable=False),
    Column("registry_key", String(255), nullable=False),
    Column("registry_value", String(255), nullable=False),
    Column("update_time", _WALL),
    # Ours.
    _ms("beat_ms"),
    Column("instance_id", String(36)),
    Column("features", Text),
    UniqueConstraint("registry_group", "registry_key", "registry_value", name="i_g_k_v"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

job_info = Table(
    "xxl_job_info",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("job_group", _ID, nullable=False),
    Column("job_desc", String(255), nullable=False),
    Column("add_time", _WALL),
    Column("update_time", _WALL),
    Column("author", String(64)),
    Column("alarm_email", String(255)),
    Column("schedule_type", String(50), nullable=False, server_default=text("'NONE'")),
    Column("schedule_conf", String(128)),
    Column("misfire_strategy", String(50), nullable=False, server_default=text("'DO_NOTHING'")),
    Column("executor_route_strategy", String(50)),
    Column("executor_handler", String(255)),
    Column("executor_param", Text),
    Column("executor_block_strategy", String(50)),
    _int("executor_timeout"),
    _int("executor_fail_retry_count"),
    Column("glue_type", String(50), nullable=False),
    Column("glue_source", _MEDIUM_TEXT),
    Column("glue_remark", String(128)),
    Column("glue_updatetime", _WALL),
    Column("child_jobid", String(255)),
    Column("trigger_status", _TINY, nullable=False, server_default=text("0")),
    Column("trigger_last_time", BigInteger, nullable=False, server_default=text("0")),
    Column("trigger_next_time", BigInteger, nullable=False, server_default=text("0")),
    # Ours.
    Column("time_zone", String(64)),
    _ms("anchor_ms"),
    _ms("valid_from_ms"),
    _ms("valid_until_ms"),
    _int("retry_interval_s"),
    Column("retry_backoff", String(16)),
    Column("retry_most_s", Integer),
    Column("uncertain_send", String(16)),
    Column("run_limit", Integer),
    Column("run_limit_overflow", String(16)),
    Column("tags", String(255)),
    Column("alarm_settings", Text),
    Column("job_key", String(128)),
    Column("retention_days", Integer),
    _ms("created_ms"),
    _ms("updated_ms"),
    _int("version"),
    UniqueConstraint("job_group", "job_key", name="jobwheel_info_key"),
    Index("jobwheel_info_due", "trigger_status", "trigger_next_time"),
    Index("jobwheel_info_limit", "run_limit", **_partial("run_limit IS NOT NULL")),
    Index("jobwheel_info_children", "child_jobid", **_partial("child_jobid > ''")),
    Index("jobwheel_info_retention", "retention_days", **_partial("retention_days IS NOT NULL")),
    sqlite_autoincrement=True,
    **_MYSQL,
)

job_logglue = Table(
    "xxl_job_logglue",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("job_id", _ID, nullable=False),
    Column("glue_type", String(50)),
    Column("glue_source", _MEDIUM_TEXT),
    Column("glue_remark", String(128), nullable=False),
    Column("add_time", _WALL),
    Column("update_time", _WALL),
    Index("jobwheel_logglue_job", "job_id"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

job_log = Table(
    "xxl_job_log",
    metadata,
    Column("id", _BIG_ID, primary_key=True, autoincrement=True),
    Column("job_group", _ID, nullable=False),
    Column("job_id", _ID, nullable=False),
    Column("executor_address", String(255)),
    Column("executor_handler", String(255)),
    Column("executor_param", Text),
    Column("executor_sharding_param", String(20)),
    _int("executor_fail_retry_count"),
    Column("trigger_time", _WALL),
    _int("trigger_code"),
    Column("trigger_msg", Text),
    Column("handle_time", _WALL),
    _int("handle_code"),
    Column("handle_msg", Text),
    Column("alarm_status", _TINY, nullable=False, server_default=text("0")),
    # Ours.
    _ms("planned_ms"),
    _ms("due_ms"),
    _ms("triggered_ms"),
    _ms("sent_ms"),
    _ms("accepted_ms"),
    _ms("started_ms"),
    _ms("ended_ms"),
    _ms("check_ms"),
    _ms("kill_ms"),
    # Since when nothing readable was heard of an unconfirmed run, and how often running its job was called idle.
    _ms("unheard_ms"),
    _int("idle_answers"),
    Column("trigger_type", String(16)),
    Column("phase", String(16)),
    Column("outcome", String(16)),
    Column("owner", BigInteger),
    _int("attempt", 1),
    Column("first_run_id", BigInteger),
    Column("broadcast_id", BigInteger),
    Column("parent_run_id", BigInteger),
    Column("named_addresses", Text),
    Column("instance_id", String(36)),
    Column("route", String(50)),
    Index("i_trigger_time", "trigger_time"),
    Index("i_handle_code", "handle_code"),
    # InnoDB and SQLite hold the id in every index; PostgreSQL must be told, or the newest runs of a job are sorted out.
    Index("i_job_group", "job_group", "id"),
    Index("i_job_id", "job_id", "id"),
    Index("jobwheel_log_owner", "phase", "owner", "due_ms", **_partial("phase IS NOT NULL")),
    Index("jobwheel_log_check", "check_ms", **_partial("check_ms IS NOT NULL")),
    Index("jobwheel_log_open", "job_id", "phase", **_partial("phase IS NOT NULL")),
    Index(
        "jobwheel_log_unhandled",
        "alarm_status",
        "handle_code",
        "trigger_code",
        **_partial("alarm_status = 0 AND (trigger_code NOT IN (0, 200) OR handle_code NOT IN (0, 200))"),
    ),
    # What follows a run: its chain, its children, the other shards.
    Index("jobwheel_log_first", "first_run_id", **_partial("first_run_id IS NOT NULL")),
    Index("jobwheel_log_parent", "parent_run_id", **_partial("parent_run_id IS NOT NULL")),
    Index("jobwheel_log_broadcast", "broadcast_id", **_partial("broadcast_id IS NOT NULL")),
    # What people look for: the run list's first page never reads its way through the log.
    Index("jobwheel_log_outcome", "outcome", "id", **_partial("outcome <> 'succeeded'")),
    Index("jobwheel_log_cause", "trigger_type", "id", **_partial("trigger_type <> 'CRON'")),
    Index("jobwheel_log_address", "executor_address", "id", **_partial("executor_address IS NOT NULL")),
    _sqlite_alone(
        "jobwheel_log_address_planned",
        *("executor_address", "planned_ms", "id"),
        **_partial("executor_address IS NOT NULL"),
    ),
    Index("jobwheel_log_planned", "planned_ms", "id"),
    # With the cause, so that a job's last planned time comes from the index alone.
    Index("jobwheel_log_job_planned", "job_id", "planned_ms", "id", "trigger_type"),
    Index("jobwheel_log_group_planned", "job_group", "planned_ms", "id"),
    _few("jobwheel_log_outcome_planned", "outcome", "planned_ms", "id"),
    _few("jobwheel_log_job_outcome", "job_id", "outcome", "id"),
    _few("jobwheel_log_job_outcome_planned", "job_id", "outcome", "planned_ms", "id"),
    _few("jobwheel_log_group_outcome", "job_group", "outcome", "id"),
    _few("jobwheel_log_group_outcome_planned", "job_group", "outcome", "planned_ms", "id"),
    _few("jobwheel_log_address_outcome", "executor_address", "outcome", "id"),
    _few("jobwheel_log_address_outcome_planned", "executor_address", "outcome", "planned_ms", "id"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

job_log_report = Table(
    "xxl_job_log_report",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("trigger_day", _WALL),
    _int("running_count"),
    _int("suc_count"),
    _int("fail_count"),
    Column("update_time", _WALL),
    UniqueConstraint("trigger_day", name="i_trigger_day"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

job_lock = Table("xxl_job_lock", metadata, Column("lock_name", String(50), primary_key=True), **_MYSQL)

job_user = Table(
    "xxl_job_user",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("username", String(50), nullable=False),
    Column("password", String(100), nullable=False),
    Column("token", String(100)),
    Column("role", _TINY, nullable=False),
    Column("permission", String(255)),
    # Ours.
    Column("password_hash", String(255)),
    Column("role_name", String(16)),
    _int("disabled"),
    Column("settings", Text),
    UniqueConstraint("username", name="i_username"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

node = Table(
    "jobwheel_node",
    metadata,
    Column("id", _BIG_ID, primary_key=True, autoincrement=True),
    Column("host", String(255), nullable=False),
    Column("process_id", Integer, nullable=False),
    Column("version", String(32), nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("heartbeat_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
    **_MYSQL,
)

setting = Table(
    "jobwheel_setting",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    **_MYSQL,
)

session = Table(
    "jobwheel_session",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("user_id", _ID, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("client", String(255)),
    Index("jobwheel_session_user", "user_id"),
    Index("jobwheel_session_expires", "expires_ms"),
    **_MYSQL,
)

event = Table(
    "jobwheel_event",
    metadata,
    Column("id", _BIG_ID, primary_key=True, autoincrement=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("actor", String(64), nullable=False),
    Column("job_group", _ID),
    Column("job_id", _ID),
    Column("run_id", BigInteger),
    Column("details", _MEDIUM_TEXT, nullable=False),
    Index("jobwheel_event_at", "at_ms"),
    Index("jobwheel_event_job", "job_id", "id"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

api_token = Table(
    "jobwheel_api_token",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("name", String(64), nullable=False),
    Column("token_hash", String(64), nullable=False),
    Column("job_group", _ID),
    _int("can_write"),
    Column("created_by", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    _ms("expires_ms"),
    UniqueConstraint("token_hash", name="jobwheel_api_token_hash"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

pause_window = Table(
    "jobwheel_pause_window",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("job_id", _ID, nullable=False),
    Column("from_ms", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    Column("remark", String(128)),
    Index("jobwheel_pause_window_job", "job_id", "until_ms"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

alarm_channel = Table(
    "jobwheel_alarm_channel",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("name", String(64), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("settings", Text, nullable=False),
    _int("disabled"),
    _int("is_default"),
    _int("for_admins"),
    _int("version"),
    UniqueConstraint("name", name="jobwheel_alarm_channel_name"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

alarm_outbox = Table(
    "jobwheel_alarm_outbox",
    metadata,
    Column("id", _BIG_ID, primary_key=True, autoincrement=True),
    Column("channel_id", _ID, nullable=False),
    Column("job_id", _ID),
    Column("run_id", BigInteger),
    Column("kind", String(32), nullable=False),
    Column("merge_key", String(64), nullable=False),
    Column("message", Text, nullable=False),
    _int("merged", 1),
    _int("attempts"),
    Column("owner", BigInteger),
    Column("created_ms", BigInteger, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Index("jobwheel_alarm_outbox_due", "due_ms"),
    Index("jobwheel_alarm_outbox_merge", "merge_key"),
    Index("jobwheel_alarm_outbox_channel", "channel_id", "due_ms"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

# The jobs whose open runs are looked at: an alarm if they start late, or run long.
alarm_watch = Table(
    "jobwheel_alarm_watch",
    metadata,
    Column("job_id", _ID, primary_key=True, autoincrement=False),
    Column("late_start_s", BigInteger),
    Column("long_run_s", BigInteger),
    **_MYSQL,
)

# Of which open runs it was told.
alarm_noted = Table(
    "jobwheel_alarm_noted",
    metadata,
    Column("run_id", _BIG_ID, primary_key=True, autoincrement=False),
    Column("kind", String(32), primary_key=True),
    Column("noted_ms", BigInteger, nullable=False),
    **_MYSQL,
)

# Until when equal alarms of a channel wait for each other.
alarm_window = Table(
    "jobwheel_alarm_window",
    metadata,
    Column("merge_key", String(64), primary_key=True),
    Column("until_ms", BigInteger, nullable=False),
    Index("jobwheel_alarm_window_until", "until_ms"),
    **_MYSQL,
)

# What was told last of a group, or of a job that fails.
alarm_state = Table(
    "jobwheel_alarm_state",
    metadata,
    Column("subject", String(64), primary_key=True),
    Column("state", Text, nullable=False),
    **_MYSQL,
)

daily_count = Table(
    "jobwheel_daily_count",
    metadata,
    Column("day", String(10), primary_key=True),
    Column("job_group", _ID, primary_key=True, autoincrement=False),
    _int("running_count"),
    _int("suc_count"),
    _int("fail_count"),
    **_MYSQL,
)

# What was counted of the run log, in slices of wall time; `counts` is JSON. `recounts` grows when runs were removed. Of
# one that is being settled the runs of the jobs up to `settled_job` are in the statistics.
run_slice = Table(
    "jobwheel_run_slice",
    metadata,
    Column("slice_start", String(16), primary_key=True),
    Column("counted_ms", BigInteger, nullable=False),
    _int("is_settled"),
    Column("counts", Text, nullable=False),
    _int("lost_count"),
    _int("recounts"),
    _int("settled_job"),
    **_MYSQL,
)

# How late and how long the runs of a job were on a day: histograms, as JSON.
job_day = Table(
    "jobwheel_job_day",
    metadata,
    Column("job_id", _ID, primary_key=True, autoincrement=False),
    Column("day", String(10), primary_key=True),
    Column("job_group", _ID, nullable=False),
    Column("outcomes", Text, nullable=False),
    Column("lateness", Text, nullable=False),
    Column("durations", Text, nullable=False),
    Index("jobwheel_job_day_day", "day"),
    **_MYSQL,
)

# A clean-up of the run log that somebody asked for, and how far it is.
clean_up = Table(
    "jobwheel_clean_up",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("state", String(16), nullable=False),
    Column("which", String(32), nullable=False),
    Column("job_group", _ID),
    Column("job_id", _ID),
    # Runs of ids after the one and below the other are still to be looked at; with a time only older ones go.
    Column("before_time", _WALL),
    Column("after_id", BigInteger, nullable=False, server_default=text("0")),
    Column("below_id", BigInteger, nullable=False),
    Column("about", BigInteger, nullable=False, server_default=text("0")),
    Column("deleted", BigInteger, nullable=False, server_default=text("0")),
    Column("actor", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    _ms("ended_ms"),
    Index("jobwheel_clean_up_state", "state", "id"),
    sqlite_autoincrement=True,
    **_MYSQL,
)

SCHEDULE_LOCK = "schedule_lock"
"""The row of `xxl_job_lock` under which claims run, on our admins and on Java ones."""

VERSION_TABLE = "jobwheel_schema_version"
"""Where Alembic notes the schema's version."""
