"""What a slice of counted runs needs so that its runs are not read again: how many are lost, how often it changed."""

import sqlalchemy as sa
from alembic import op

from jobwheel.admin.store.migrations.steps import add_column

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_NONE = sa.text("0")


def upgrade() -> None:
    add_column("jobwheel_run_slice", sa.Column("lost_count", sa.Integer(), server_default=_NONE, nullable=False))
    add_column("jobwheel_run_slice", sa.Column("recounts", sa.Integer(), server_default=_NONE, nullable=False))


def downgrade() -> None:
    op.drop_column("jobwheel_run_slice", "recounts")
    op.drop_column("jobwheel_run_slice", "lost_count")
