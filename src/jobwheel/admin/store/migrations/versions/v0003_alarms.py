"""Alarms: flags of channels, what is watched, what was told, and for how long equal failures are merged."""

import sqlalchemy as sa
from alembic import op

from jobwheel.admin.store.migrations.steps import add_column, create_index, create_table

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for name in ("is_default", "for_admins", "version"):
        add_column("jobwheel_alarm_channel", _int(name))
    create_index("jobwheel_alarm_outbox_channel", "jobwheel_alarm_outbox", ["channel_id", "due_ms"])
    create_table(
        "jobwheel_alarm_watch",
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("late_start_s", sa.BigInteger(), nullable=True),
        sa.Column("long_run_s", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job_id"),
    )
    create_table(
        "jobwheel_alarm_noted",
        sa.Column("run_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("noted_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "kind"),
    )
    create_table(
        "jobwheel_alarm_window",
        sa.Column("merge_key", sa.String(length=64), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("merge_key"),
    )
    create_index("jobwheel_alarm_window_until", "jobwheel_alarm_window", ["until_ms"])
    create_table(
        "jobwheel_alarm_state",
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("subject"),
    )


def downgrade() -> None:
    for name in ("state", "window", "noted", "watch"):
        op.drop_table(f"jobwheel_alarm_{name}")
    op.drop_index("jobwheel_alarm_outbox_channel", "jobwheel_alarm_outbox")
    for name in ("version", "for_admins", "is_default"):
        op.drop_column("jobwheel_alarm_channel", name)


def _int(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False)
