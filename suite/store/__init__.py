"""The store: tables, migrations, the one writer, and read-only queries."""
