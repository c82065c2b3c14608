"""What follows a run is found by indexes: its chain, its children, its broadcast; and the jobs that have children."""

from alembic import op

from jobwheel.admin.store.migrations.steps import create_index

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_OF_RUNS = ("first_run_id", "parent_run_id", "broadcast_id")


def upgrade() -> None:
    create_index("jobwheel_info_children", "xxl_job_info", ["child_jobid"], "child_jobid > ''")
    for column in _OF_RUNS:
        create_index(_name(column), "xxl_job_log", [column], f"{column} IS NOT NULL")


def downgrade() -> None:
    for column in reversed(_OF_RUNS):
        op.drop_index(_name(column), table_name="xxl_job_log")
    op.drop_index("jobwheel_info_children", table_name="xxl_job_info")


def _name(column: str) -> str:
    return f"jobwheel_log_{column.removesuffix('_id').removesuffix('_run')}"
