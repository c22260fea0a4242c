"""The device's clock over each sample, and the median cycles of a launch with their interval."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

INTERVAL = ("interval_low_cycles", "interval_high_cycles")


def upgrade() -> None:
    """Add the columns, empty for what was stored before: its samples have no clocks."""
    for name in ("p50_cycles", *INTERVAL):
        op.add_column("summary", sa.Column(name, sa.Double(), nullable=True))
    for name in INTERVAL:
        op.add_column("result", sa.Column(name, sa.Double(), nullable=True))
    op.add_column("sample_blob", sa.Column("clocks", sa.LargeBinary(), nullable=True))
    op.add_column("sample_blob", sa.Column("median_cycles", sa.Double(), nullable=True))
