"""The runs at an address within a time come from an index of their own on SQLite."""

from alembic import op

from jobwheel.admin.store.migrations.steps import create_index

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_NAME = "jobwheel_log_address_planned"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        create_index(
            _NAME, "xxl_job_log", ["executor_address", "planned_ms", "id"], where="executor_address IS NOT NULL"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_index(_NAME, table_name="xxl_job_log")
