"""What is counted of the run log, clean-ups of it, and jobs that keep their runs for a time of their own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

from jobwheel.admin.store.migrations.steps import create_index, create_table

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_WALL = sa.DateTime().with_variant(sqlite.DATETIME(truncate_microseconds=True), "sqlite")  # type: ignore[no-untyped-call]


def upgrade() -> None:
    create_table(
        "jobwheel_run_slice",
        sa.Column("slice_start", sa.String(length=16), nullable=False),
        sa.Column("counted_ms", sa.BigInteger(), nullable=False),
        sa.Column("is_settled", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("slice_start"),
    )
    create_table(
        "jobwheel_job_day",
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("job_group", sa.Integer(), nullable=False),
        sa.Column("outcomes", sa.Text(), nullable=False),
        sa.Column("lateness", sa.Text(), nullable=False),
        sa.Column("durations", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "day"),
    )
    create_index("jobwheel_job_day_day", "jobwheel_job_day", ["day"])
    _create_clean_up()
    create_index("jobwheel_info_retention", "xxl_job_info", ["retention_days"], "retention_days IS NOT NULL")


def downgrade() -> None:
    op.drop_index("jobwheel_info_retention", table_name="xxl_job_info")
    op.drop_table("jobwheel_clean_up")
    op.drop_table("jobwheel_job_day")
    op.drop_table("jobwheel_run_slice")


def _create_clean_up() -> None:
    create_table(
        "jobwheel_clean_up",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("which", sa.String(length=32), nullable=False),
        sa.Column("job_group", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("before_time", _WALL, nullable=True),
        sa.Column("after_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("below_id", sa.BigInteger(), nullable=False),
        sa.Column("about", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("deleted", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    create_index("jobwheel_clean_up_state", "jobwheel_clean_up", ["state", "id"])
