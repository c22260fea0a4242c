"""What rounding the data costs a product, beside its other derived numbers."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column, empty for the summaries of before: ``roofbench store rebuild`` derives it from what was stored."""
    op.add_column("summary", sa.Column("quantisation_error", sa.Double(), nullable=True))
