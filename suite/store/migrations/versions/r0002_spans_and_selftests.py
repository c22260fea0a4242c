"""When samples were taken, their exact median, and what selftests found."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the spans and the exact median of samples, none for those of before, and the table of selftests."""
    op.add_column("sample_blob", sa.Column("median_ns", sa.Double(), nullable=True))
    op.add_column("sample_blob", sa.Column("spans", sa.JSON(), nullable=False, server_default="[]"))
    op.create_table(
        "selftest",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("device_uid", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cycles_rel", sa.Double(), nullable=True),
        sa.Column("bytes_rel", sa.Double(), nullable=True),
        sa.Column("in_cycles", sa.Boolean(), nullable=True),
        sa.Column("cases", sa.Integer(), nullable=True),
        sa.Column("findings", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("runs", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_selftest")),
        sa.UniqueConstraint("digest", name=op.f("uq_selftest_digest")),
    )
    op.create_index(op.f("ix_selftest_device_uid"), "selftest", ["device_uid"], unique=False)
