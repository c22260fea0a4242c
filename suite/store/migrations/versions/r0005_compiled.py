"""What programs became on targets that need not be there."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the table, empty: nothing of what was stored before says what it would hold."""
    op.create_table(
        "compiled",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("compiled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("configuration", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compiled")),
        sa.UniqueConstraint("key", name=op.f("uq_compiled_key")),
    )
    op.create_index(op.f("ix_compiled_target_program"), "compiled", ["target", "program"], unique=False)


def downgrade() -> None:
    """Drop it: it can be compiled again."""
    op.drop_index(op.f("ix_compiled_target_program"), table_name="compiled")
    op.drop_table("compiled")
