"""Jobs and backends of packages that are installed beside roofbench, found by their entry points."""
