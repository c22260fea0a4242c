"""Alembic loads this file to run migrations; the connection and its transaction are the caller's (``suite.store.schema``)."""

from alembic import context

from suite.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite alters a table by building it anew
)
with context.begin_transaction():
    context.run_migrations()
