"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table."""
    _run()
    _workload()
    _artifact()
    _case()
    _device()
    _environment()
    _log()
    _result()
    _sample_blob()
    _summary()
    _telemetry_blob()


def _run() -> None:
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("experiment", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=True),
        sa.Column("dirty", sa.Boolean(), nullable=True),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("argv", sa.JSON(), nullable=False),
        sa.Column("overrides", sa.JSON(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("name", name=op.f("uq_run_name")),
        sa.UniqueConstraint("uid", name=op.f("uq_run_uid")),
    )
    op.create_index(op.f("ix_run_started_at"), "run", ["started_at"], unique=False)


def _workload() -> None:
    op.create_table(
        "workload",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("distribution", sa.Text(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("semantics", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workload")),
        sa.UniqueConstraint("key", name=op.f("uq_workload_key")),
    )
    op.create_index(op.f("ix_workload_job_format"), "workload", ["job", "format"], unique=False)


def _artifact() -> None:
    op.create_table(
        "artifact",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_artifact_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact")),
        sa.UniqueConstraint("run_id", "name", name=op.f("uq_artifact_run_id_name")),
    )


def _case() -> None:
    op.create_table(
        "case",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("workload_id", sa.Integer(), nullable=False),
        sa.Column("implementation", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("cache", sa.Text(), nullable=False),
        sa.Column("load", sa.Text(), nullable=False),
        sa.Column("dispatch", sa.Text(), nullable=False),
        sa.Column("method_version", sa.Integer(), nullable=False),
        sa.Column("switches", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["workload_id"], ["workload.id"], name=op.f("fk_case_workload_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_case")),
        sa.UniqueConstraint("key", name=op.f("uq_case_key")),
    )
    op.create_index(op.f("ix_case_workload_id"), "case", ["workload_id"], unique=False)


def _device() -> None:
    op.create_table(
        "device",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("hardware", sa.Text(), nullable=True),
        sa.Column("match_reason", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("info", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_device_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device")),
        sa.UniqueConstraint("run_id", "slot", "digest", name=op.f("uq_device_run_id_slot_digest")),
    )
    op.create_index(op.f("ix_device_uid"), "device", ["uid"], unique=False)


def _environment() -> None:
    op.create_table(
        "environment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_environment_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment")),
        sa.UniqueConstraint("run_id", "digest", name=op.f("uq_environment_run_id_digest")),
    )


def _log() -> None:
    op.create_table(
        "log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_log_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log")),
    )
    op.create_index(op.f("ix_log_run_id"), "log", ["run_id"], unique=False)


def _result() -> None:
    op.create_table(
        "result",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=False),
        sa.Column("device_id", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("device_slot", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("execution", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seed", sa.String(64), nullable=True),
        sa.Column("flops", sa.String(64), nullable=False),
        sa.Column("compulsory_bytes", sa.String(64), nullable=False),
        sa.Column("traffic_bytes", sa.String(64), nullable=True),
        sa.Column("pipe", sa.Text(), nullable=True),
        sa.Column("tolerance", sa.Double(), nullable=False),
        sa.Column("sets", sa.Integer(), nullable=False),
        sa.Column("predicted_bytes", sa.String(64), nullable=False),
        sa.Column("predicted_s", sa.Double(), nullable=False),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("converged", sa.Boolean(), nullable=True),
        sa.Column("steady", sa.Boolean(), nullable=True),
        sa.Column("contended", sa.Boolean(), nullable=True),
        sa.Column("interval_low_s", sa.Double(), nullable=True),
        sa.Column("interval_high_s", sa.Double(), nullable=True),
        sa.Column("error_rel", sa.Double(), nullable=True),
        sa.Column("method", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("check_before", sa.JSON(), nullable=True),
        sa.Column("check_after", sa.JSON(), nullable=True),
        sa.Column("phases_s", sa.JSON(), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_result_case_id")),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_result_device_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environment.id"], name=op.f("fk_result_environment_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_result_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_result")),
        sa.UniqueConstraint(
            "run_id", "device_slot", "case_id", "attempt", name=op.f("uq_result_run_id_device_slot_case_id_attempt")
        ),
    )
    op.create_index(op.f("ix_result_case_id"), "result", ["case_id"], unique=False)
    op.create_index(op.f("ix_result_device_id"), "result", ["device_id"], unique=False)
    op.create_index(op.f("ix_result_environment_id"), "result", ["environment_id"], unique=False)
    op.create_index(op.f("ix_result_run_id"), "result", ["run_id"], unique=False)


def _sample_blob() -> None:
    op.create_table(
        "sample_blob",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("launches", sa.BigInteger(), nullable=False),
        sa.Column("resolution_s", sa.Double(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("sum_ns", sa.BigInteger(), nullable=False),
        sa.Column("min_ns", sa.BigInteger(), nullable=False),
        sa.Column("stride", sa.BigInteger(), nullable=False),
        sa.Column("boundaries", sa.JSON(), nullable=False),
        sa.Column("durations", sa.LargeBinary(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["result.id"], name=op.f("fk_sample_blob_result_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result_id", name=op.f("pk_sample_blob")),
    )


def _summary() -> None:
    op.create_table(
        "summary",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("device_id", sa.Integer(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("pipe", sa.Text(), nullable=True),
        sa.Column("load", sa.Text(), nullable=False),
        sa.Column("formulas_version", sa.Integer(), nullable=False),
        sa.Column("bound", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("p50_s", sa.Double(), nullable=False),
        sa.Column("p05_s", sa.Double(), nullable=False),
        sa.Column("p95_s", sa.Double(), nullable=False),
        sa.Column("min_s", sa.Double(), nullable=False),
        sa.Column("interval_low_s", sa.Double(), nullable=True),
        sa.Column("interval_high_s", sa.Double(), nullable=True),
        sa.Column("flop_s", sa.Double(), nullable=False),
        sa.Column("bytes_s", sa.Double(), nullable=False),
        sa.Column("fraction_spec", sa.Double(), nullable=True),
        sa.Column("fraction_boost", sa.Double(), nullable=True),
        sa.Column("fraction_at_clock", sa.Double(), nullable=True),
        sa.Column("clock_hz", sa.Double(), nullable=True),
        sa.Column("energy_j", sa.Double(), nullable=True),
        sa.Column("power_w", sa.Double(), nullable=True),
        sa.Column("throttle", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_summary_device_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["result_id"], ["result.id"], name=op.f("fk_summary_result_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result_id", name=op.f("pk_summary")),
    )
    op.create_index(op.f("ix_summary_device_id"), "summary", ["device_id"], unique=False)
    op.create_index("ix_summary_roof", "summary", ["evidence", "verified", "device_id", "pipe", "load", "flop_s"], unique=False)


def _telemetry_blob() -> None:
    op.create_table(
        "telemetry_blob",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("channels", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["result.id"], name=op.f("fk_telemetry_blob_result_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("result_id", name=op.f("pk_telemetry_blob")),
    )
