"""How much a workload asks of a machine, counted from its definition and never from a device."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """The work model of one case; jobs compute it, backends never do.

    ``flops`` are useful floating-point (or integer) operations, one fused multiply-add being two.
    ``compulsory_bytes`` count each operand once: the roofline's bytes.  Of a collective they are those that busbw counts.
    ``traffic_bytes`` is what the implementation is known to move when that is more (unfused chains).
    ``pipe`` names the peak that applies, as ``suite.hardware.spec.parse_pipe`` reads it (``bf16``, ``fp8``, ``int8``,
    ``fp64`` ...; ``fp16_acc_fp16`` for sums in fp16, ``bf16x9`` where nine products of bf16 make one; the link that ranks talk
    over); ``None`` where no arithmetic is meant (a copy, an empty kernel).
    """

    flops: int
    compulsory_bytes: int
    pipe: str | None
    traffic_bytes: int | None = None

    @property
    def arithmetic_intensity(self) -> float:
        """FLOP per compulsory byte; 0 where nothing is moved."""
        return self.flops / self.compulsory_bytes if self.compulsory_bytes else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "flops": self.flops,
            "compulsory_bytes": self.compulsory_bytes,
            "pipe": self.pipe,
            "traffic_bytes": self.traffic_bytes,
        }


@dataclass(frozen=True, slots=True)
class Footprint:
    """Device memory that a case needs, for plan's prediction and for choosing how many input sets rotate.

    ``input_bytes`` and ``output_bytes`` are per input set; ``scratch_bytes`` is needed once, for data and reference;
    ``emulation_bytes`` once more on a device that has no unit for the format.  ``rearranged_bytes`` are per input set what a
    library wants in another order than the check reads: launches touch one of the two.  ``returned_bytes`` are pairs of an
    implementation and what it returns per input set in place of writing the output, which is there for the check all the same,
    or the room that it takes for sums.  ``scratch_of_backend`` are pairs of a backend and what it needs once in place of
    ``scratch_bytes``.
    """

    input_bytes: int
    output_bytes: int
    scratch_bytes: int
    emulation_bytes: int = 0
    rearranged_bytes: int = 0
    returned_bytes: tuple[tuple[str, int], ...] = ()
    scratch_of_backend: tuple[tuple[str, int], ...] = ()

    @property
    def set_bytes(self) -> int:
        """Bytes of one rotating input set, outputs included."""
        return self.input_bytes + self.output_bytes

    def total_bytes(self, sets: int, emulated: bool = False, implementation: str = "", backend: str = "") -> int:
        """Bytes that an implementation of a backend needs with ``sets`` rotating input sets."""
        per_set = self.set_bytes + self.rearranged_bytes + dict(self.returned_bytes).get(implementation, 0)
        scratch_bytes = dict(self.scratch_of_backend).get(backend, self.scratch_bytes)
        return per_set * sets + scratch_bytes + (self.emulation_bytes if emulated else 0)
