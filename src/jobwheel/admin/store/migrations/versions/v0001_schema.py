"""The whole schema: the reference's tables with our columns, and our tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, sqlite

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# A migration says by itself what it makes: it takes nothing from the tables of today.
_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TINY = sa.SmallInteger().with_variant(mysql.TINYINT(), "mysql", "mariadb")
_WALL = sa.DateTime().with_variant(sqlite.DATETIME(truncate_microseconds=True), "sqlite")  # type: ignore[no-untyped-call]
_MEDIUM_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

_TABLES = (
    "xxl_job_group",
    "xxl_job_info",
    "xxl_job_lock",
    "xxl_job_log",
    "xxl_job_log_report",
    "xxl_job_logglue",
    "xxl_job_registry",
    "xxl_job_user",
    "jobwheel_alarm_channel",
    "jobwheel_alarm_outbox",
    "jobwheel_api_token",
    "jobwheel_daily_count",
    "jobwheel_event",
    "jobwheel_node",
    "jobwheel_pause_window",
    "jobwheel_session",
    "jobwheel_setting",
)


# Names and addresses are compared letter by letter, as on the other databases.
_MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def upgrade() -> None:
    _create_xxl_job_group()
    _create_xxl_job_info()
    _create_xxl_job_lock()
    _create_xxl_job_log()
    _create_xxl_job_log_report()
    _create_xxl_job_logglue()
    _create_xxl_job_registry()
    _create_xxl_job_user()
    _create_jobwheel_alarm_channel()
    _create_jobwheel_alarm_outbox()
    _create_jobwheel_api_token()
    _create_jobwheel_daily_count()
    _create_jobwheel_event()
    _create_jobwheel_node()
    _create_jobwheel_pause_window()
    _create_jobwheel_session()
    _create_jobwheel_setting()


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)


def _create_table(name: str, *parts: sa.schema.SchemaItem, **options: Any) -> None:
    op.create_table(name, *parts, **options, **_MYSQL)


def _create_xxl_job_group() -> None:
    _create_table(
        "xxl_job_group",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("app_name", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(length=64), nullable=False),
        sa.Column("address_type", _TINY, server_default=sa.text("0"), nullable=False),
        sa.Column("address_list", sa.Text(), nullable=True),
        sa.Column("update_time", _WALL, nullable=True),
        sa.Column("access_tokens", sa.Text(), nullable=True),
        sa.Column("settings", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )


def _create_xxl_job_info() -> None:
    _create_table(
        "xxl_job_info",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_group", sa.Integer(), nullable=False),
        sa.Column("job_desc", sa.String(length=255), nullable=False),
        sa.Column("add_time", _WALL, nullable=True),
        sa.Column("update_time", _WALL, nullable=True),
        sa.Column("author", sa.String(length=64), nullable=True),
        sa.Column("alarm_email", sa.String(length=255), nullable=True),
        sa.Column("schedule_type", sa.String(length=50), server_default=sa.text("'NONE'"), nullable=False),
        sa.Column("schedule_conf", sa.String(length=128), nullable=True),
        sa.Column("misfire_strategy", sa.String(length=50), server_default=sa.text("'DO_NOTHING'"), nullable=False),
        sa.Column("executor_route_strategy", sa.String(length=50), nullable=True),
        sa.Column("executor_handler", sa.String(length=255), nullable=True),
        sa.Column("executor_param", sa.Text(), nullable=True),
        sa.Column("executor_block_strategy", sa.String(length=50), nullable=True),
        sa.Column("executor_timeout", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("executor_fail_retry_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("glue_type", sa.String(length=50), nullable=False),
        sa.Column("glue_source", _MEDIUM_TEXT, nullable=True),
        sa.Column("glue_remark", sa.String(length=128), nullable=True),
        sa.Column("glue_updatetime", _WALL, nullable=True),
        sa.Column("child_jobid", sa.String(length=255), nullable=True),
        sa.Column("trigger_status", _TINY, server_default=sa.text("0"), nullable=False),
        sa.Column("trigger_last_time", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("trigger_next_time", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=True),
        sa.Column("anchor_ms", sa.BigInteger(), nullable=True),
        sa.Column("valid_from_ms", sa.BigInteger(), nullable=True),
        sa.Column("valid_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("retry_interval_s", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("retry_backoff", sa.String(length=16), nullable=True),
        sa.Column("retry_most_s", sa.Integer(), nullable=True),
        sa.Column("uncertain_send", sa.String(length=16), nullable=True),
        sa.Column("run_limit", sa.Integer(), nullable=True),
        sa.Column("run_limit_overflow", sa.String(length=16), nullable=True),
        sa.Column("tags", sa.String(length=255), nullable=True),
        sa.Column("alarm_settings", sa.Text(), nullable=True),
        sa.Column("job_key", sa.String(length=128), nullable=True),
        sa.Column("retention_days", sa.Integer(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=True),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_group", "job_key", name="jobwheel_info_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobwheel_info_due", "xxl_job_info", ["trigger_status", "trigger_next_time"], unique=False)
    op.create_index(
        "jobwheel_info_limit",
        "xxl_job_info",
        ["run_limit"],
        unique=False,
        sqlite_where=sa.text("run_limit IS NOT NULL"),
        postgresql_where=sa.text("run_limit IS NOT NULL"),
    )


def _create_xxl_job_lock() -> None:
    _create_table(
        "xxl_job_lock",
        sa.Column("lock_name", sa.String(length=50), nullable=False),
        sa.PrimaryKeyConstraint("lock_name"),
    )


def _create_xxl_job_log() -> None:
    _create_table(
        "xxl_job_log",
        sa.Column("id", _BIG_ID, autoincrement=True, nullable=False),
        sa.Column("job_group", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("executor_address", sa.String(length=255), nullable=True),
        sa.Column("executor_handler", sa.String(length=255), nullable=True),
        sa.Column("executor_param", sa.Text(), nullable=True),
        sa.Column("executor_sharding_param", sa.String(length=20), nullable=True),
        sa.Column("executor_fail_retry_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("trigger_time", _WALL, nullable=True),
        sa.Column("trigger_code", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("trigger_msg", sa.Text(), nullable=True),
        sa.Column("handle_time", _WALL, nullable=True),
        sa.Column("handle_code", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("handle_msg", sa.Text(), nullable=True),
        sa.Column("alarm_status", _TINY, server_default=sa.text("0"), nullable=False),
        sa.Column("planned_ms", sa.BigInteger(), nullable=True),
        sa.Column("due_ms", sa.BigInteger(), nullable=True),
        sa.Column("triggered_ms", sa.BigInteger(), nullable=True),
        sa.Column("sent_ms", sa.BigInteger(), nullable=True),
        sa.Column("accepted_ms", sa.BigInteger(), nullable=True),
        sa.Column("started_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("check_ms", sa.BigInteger(), nullable=True),
        sa.Column("kill_ms", sa.BigInteger(), nullable=True),
        sa.Column("unheard_ms", sa.BigInteger(), nullable=True),
        sa.Column("idle_answers", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("trigger_type", sa.String(length=16), nullable=True),
        sa.Column("phase", sa.String(length=16), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("owner", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("first_run_id", sa.BigInteger(), nullable=True),
        sa.Column("broadcast_id", sa.BigInteger(), nullable=True),
        sa.Column("parent_run_id", sa.BigInteger(), nullable=True),
        sa.Column("named_addresses", sa.Text(), nullable=True),
        sa.Column("instance_id", sa.String(length=36), nullable=True),
        sa.Column("route", sa.String(length=50), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("i_handle_code", "xxl_job_log", ["handle_code"], unique=False)
    op.create_index("i_job_group", "xxl_job_log", ["job_group", "id"], unique=False)
    op.create_index("i_job_id", "xxl_job_log", ["job_id", "id"], unique=False)
    op.create_index("i_trigger_time", "xxl_job_log", ["trigger_time"], unique=False)
    op.create_index(
        "jobwheel_log_address",
        "xxl_job_log",
        ["executor_address", "id"],
        unique=False,
        sqlite_where=sa.text("executor_address IS NOT NULL"),
        postgresql_where=sa.text("executor_address IS NOT NULL"),
    )
    op.create_index(
        "jobwheel_log_cause",
        "xxl_job_log",
        ["trigger_type", "id"],
        unique=False,
        sqlite_where=sa.text("trigger_type <> 'CRON'"),
        postgresql_where=sa.text("trigger_type <> 'CRON'"),
    )
    op.create_index(
        "jobwheel_log_check",
        "xxl_job_log",
        ["check_ms"],
        unique=False,
        sqlite_where=sa.text("check_ms IS NOT NULL"),
        postgresql_where=sa.text("check_ms IS NOT NULL"),
    )
    op.create_index(
        "jobwheel_log_open",
        "xxl_job_log",
        ["job_id", "phase"],
        unique=False,
        sqlite_where=sa.text("phase IS NOT NULL"),
        postgresql_where=sa.text("phase IS NOT NULL"),
    )
    op.create_index(
        "jobwheel_log_outcome",
        "xxl_job_log",
        ["outcome", "id"],
        unique=False,
        sqlite_where=sa.text("outcome <> 'succeeded'"),
        postgresql_where=sa.text("outcome <> 'succeeded'"),
    )
    op.create_index(
        "jobwheel_log_owner",
        "xxl_job_log",
        ["phase", "owner", "due_ms"],
        unique=False,
        sqlite_where=sa.text("phase IS NOT NULL"),
        postgresql_where=sa.text("phase IS NOT NULL"),
    )
    op.create_index("jobwheel_log_planned", "xxl_job_log", ["planned_ms", "id"], unique=False)
    op.create_index(
        "jobwheel_log_job_planned", "xxl_job_log", ["job_id", "planned_ms", "id", "trigger_type"], unique=False
    )
    op.create_index("jobwheel_log_group_planned", "xxl_job_log", ["job_group", "planned_ms", "id"], unique=False)
    op.create_index(
        "jobwheel_log_unhandled",
        "xxl_job_log",
        ["alarm_status", "handle_code", "trigger_code"],
        unique=False,
        sqlite_where=sa.text("alarm_status = 0 AND (trigger_code NOT IN (0, 200) OR handle_code NOT IN (0, 200))"),
        postgresql_where=sa.text("alarm_status = 0 AND (trigger_code NOT IN (0, 200) OR handle_code NOT IN (0, 200))"),
    )
    if op.get_context().dialect.name != "mysql":
        _index_runs_without_success()


def _index_runs_without_success() -> None:
    """Only where an index can be of these runs alone: of all runs they would cost more than they are worth."""
    columns_by_name = {
        "jobwheel_log_outcome_planned": ["outcome", "planned_ms", "id"],
        "jobwheel_log_job_outcome": ["job_id", "outcome", "id"],
        "jobwheel_log_job_outcome_planned": ["job_id", "outcome", "planned_ms", "id"],
        "jobwheel_log_group_outcome": ["job_group", "outcome", "id"],
        "jobwheel_log_group_outcome_planned": ["job_group", "outcome", "planned_ms", "id"],
        "jobwheel_log_address_outcome": ["executor_address", "outcome", "id"],
        "jobwheel_log_address_outcome_planned": ["executor_address", "outcome", "planned_ms", "id"],
    }
    for name, columns in columns_by_name.items():
        op.create_index(
            name,
            "xxl_job_log",
            columns,
            unique=False,
            sqlite_where=sa.text("outcome <> 'succeeded'"),
            postgresql_where=sa.text("outcome <> 'succeeded'"),
        )


def _create_xxl_job_log_report() -> None:
    _create_table(
        "xxl_job_log_report",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("trigger_day", _WALL, nullable=True),
        sa.Column("running_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("suc_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("fail_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("update_time", _WALL, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("trigger_day", name="i_trigger_day"),
        sqlite_autoincrement=True,
    )


def _create_xxl_job_logglue() -> None:
    _create_table(
        "xxl_job_logglue",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("glue_type", sa.String(length=50), nullable=True),
        sa.Column("glue_source", _MEDIUM_TEXT, nullable=True),
        sa.Column("glue_remark", sa.String(length=128), nullable=False),
        sa.Column("add_time", _WALL, nullable=True),
        sa.Column("update_time", _WALL, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobwheel_logglue_job", "xxl_job_logglue", ["job_id"], unique=False)


def _create_xxl_job_registry() -> None:
    _create_table(
        "xxl_job_registry",
        sa.Column("id", _BIG_ID, autoincrement=True, nullable=False),
        sa.Column("registry_group", sa.String(length=50), nullable=False),
        sa.Column("registry_key", sa.String(length=255), nullable=False),
        sa.Column("registry_value", sa.String(length=255), nullable=False),
        sa.Column("update_time", _WALL, nullable=True),
        sa.Column("beat_ms", sa.BigInteger(), nullable=True),
        sa.Column("instance_id", sa.String(length=36), nullable=True),
        sa.Column("features", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("registry_group", "registry_key", "registry_value", name="i_g_k_v"),
        sqlite_autoincrement=True,
    )


def _create_xxl_job_user() -> None:
    _create_table(
        "xxl_job_user",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("username", sa.String(length=50), nullable=False),
        sa.Column("password", sa.String(length=100), nullable=False),
        sa.Column("token", sa.String(length=100), nullable=True),
        sa.Column("role", _TINY, nullable=False),
        sa.Column("permission", sa.String(length=255), nullable=True),
        sa.Column("password_hash", sa.String(length=255), nullable=True),
        sa.Column("role_name", sa.String(length=16), nullable=True),
        sa.Column("disabled", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("settings", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("username", name="i_username"),
        sqlite_autoincrement=True,
    )


def _create_jobwheel_alarm_channel() -> None:
    _create_table(
        "jobwheel_alarm_channel",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("disabled", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", name="jobwheel_alarm_channel_name"),
        sqlite_autoincrement=True,
    )


def _create_jobwheel_alarm_outbox() -> None:
    _create_table(
        "jobwheel_alarm_outbox",
        sa.Column("id", _BIG_ID, autoincrement=True, nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("merge_key", sa.String(length=64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("merged", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("owner", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobwheel_alarm_outbox_due", "jobwheel_alarm_outbox", ["due_ms"], unique=False)
    op.create_index("jobwheel_alarm_outbox_merge", "jobwheel_alarm_outbox", ["merge_key"], unique=False)


def _create_jobwheel_api_token() -> None:
    _create_table(
        "jobwheel_api_token",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("job_group", sa.Integer(), nullable=True),
        sa.Column("can_write", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("token_hash", name="jobwheel_api_token_hash"),
        sqlite_autoincrement=True,
    )


def _create_jobwheel_daily_count() -> None:
    _create_table(
        "jobwheel_daily_count",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("job_group", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("running_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("suc_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("fail_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("day", "job_group"),
    )


def _create_jobwheel_event() -> None:
    _create_table(
        "jobwheel_event",
        sa.Column("id", _BIG_ID, autoincrement=True, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("job_group", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("details", _MEDIUM_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobwheel_event_at", "jobwheel_event", ["at_ms"], unique=False)
    op.create_index("jobwheel_event_job", "jobwheel_event", ["job_id", "id"], unique=False)


def _create_jobwheel_node() -> None:
    _create_table(
        "jobwheel_node",
        sa.Column("id", _BIG_ID, autoincrement=True, nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("process_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )


def _create_jobwheel_pause_window() -> None:
    _create_table(
        "jobwheel_pause_window",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.Column("remark", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobwheel_pause_window_job", "jobwheel_pause_window", ["job_id", "until_ms"], unique=False)


def _create_jobwheel_session() -> None:
    _create_table(
        "jobwheel_session",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("client", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_index("jobwheel_session_expires", "jobwheel_session", ["expires_ms"], unique=False)
    op.create_index("jobwheel_session_user", "jobwheel_session", ["user_id"], unique=False)


def _create_jobwheel_setting() -> None:
    _create_table(
        "jobwheel_setting",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
