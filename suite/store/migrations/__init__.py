"""Alembic's home: the environment it runs in and one file a schema revision."""
