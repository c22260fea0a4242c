"""Cells as they are stored."""

from datetime import UTC, datetime
from typing import Any

from suite.outcome import Outcome
from suite.targets.record import Compiled, key_of
from tests.targets.scripted import facts

AT = datetime(2026, 11, 30, 22, 5, tzinfo=UTC)


def cell(program: str = "gemm.bf16", target: str = "sm_90", **fields: Any) -> Compiled:
    versions = fields.get("versions", {"triton": "3.7.1"})
    given: dict[str, Any] = {
        "key": key_of("digest", f"{program} {target}", versions),
        "kernel": program.partition(".")[0],
        "program": program,
        "target": target,
        "outcome": Outcome.OK,
        "reason": "",
        "configuration": "128x256x64, 8 warps",
        "seconds": 1.25,
        "compiled_at": AT,
        "facts": facts(),
        "versions": versions,
    }
    return Compiled(**{**given, **fields})


def failed(outcome: str, reason: str, program: str = "gemm.bf16", target: str = "sm_90", **fields: Any) -> Compiled:
    return cell(program, target, outcome=Outcome(outcome), reason=reason, configuration="", facts={}, **fields)


def estimated(program: str = "xla_gemm.bf16", target: str = "v5e", **fields: Any) -> Compiled:
    """As XLA 0.10 reckons 8192 x 8192 x 8192 in bf16 for a v5e."""
    reckoned = {"flops": 1099511627776.0, "bytes_accessed": 402653184.0, "optimal_s": 0.005581277422606945}
    known = {**reckoned, "devices_of_chip": 1, "instructions": [], "execution": "native", "instead": ""}
    return cell(program, target, facts={**known, **fields})
