"""How far a slice of counted runs is settled, so that it can be done in parts."""

import sqlalchemy as sa
from alembic import op

from jobwheel.admin.store.migrations.steps import add_column

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_column(
        "jobwheel_run_slice", sa.Column("settled_job", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )


def downgrade() -> None:
    op.drop_column("jobwheel_run_slice", "settled_job")
