"""The targets, in the order of the matrix, and the programs that are compiled for each."""

from collections.abc import Sequence
from typing import NamedTuple

from suite.errors import UsageError, nearest

TRITON, XLA, TPU = "triton", "xla", "tpu"


class Target(NamedTuple):
    """``short`` heads its column beneath its ``family``; ``kind`` is which framework compiles for it.

    ``sheet`` is that of the chip whose ceilings an estimate is held against.
    """

    name: str
    family: str
    short: str
    kind: str = TRITON
    sheet: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """What has to be installed to compile for it."""
        return (self.kind, TPU) if self.sheet else (self.kind,)


TARGETS = (
    *(Target(f"sm_{number}", "sm_", number) for number in ("80", "86", "89", "90", "100", "120")),
    *(Target(f"gfx{number}", "gfx", number) for number in ("90a", "942", "950", "1100", "1201")),
    Target("v5e", "TPU", "v5e", XLA, "google-tpu-v5e"),
    Target("v5p", "TPU", "v5p", XLA, "google-tpu-v5p"),
    Target("v6e", "TPU", "v6e", XLA, "google-tpu-v6e"),
    Target("tpu7x", "TPU", "7x", XLA, "google-tpu-v7x"),
    Target("cpu", "CPU", "cpu", XLA),
)
BY_NAME = {target.name: target for target in TARGETS}


class Program(NamedTuple):
    """A program as the compiling child tells of it; ``digest`` is the hash of its sources and of what it is given."""

    name: str
    kernel: str
    kind: str
    digest: str


def chosen_targets(wanted: Sequence[str]) -> list[Target]:
    """Those that are named, in the order of the matrix; all where none is.  ``UsageError`` for an unknown name."""
    for name in wanted:
        if name not in BY_NAME:
            raise UsageError(f"unknown target '{name}'{nearest(name, BY_NAME)}")
    return [target for target in TARGETS if not wanted or target.name in wanted]


def chosen_programs(programs: Sequence[Program], wanted: Sequence[str]) -> list[Program]:
    """Those of the kernels or under the names that are given; all where none is.  ``UsageError`` for an unknown name."""
    for name in wanted:
        if not any(_is_of(program, name) for program in programs):
            known = {program.kernel for program in programs}
            raise UsageError(
                f"unknown kernel '{name}'{nearest(name, known if '.' not in name else {each.name for each in programs})}"
            )
    return [program for program in programs if not wanted or any(_is_of(program, name) for name in wanted)]


def refuse_without_partner(programs: Sequence[Program], targets: Sequence[Target], kernels: Sequence[str]) -> None:
    """``UsageError`` for a named target that none of the chosen programs is for, and for a kernel that is for none of them.

    ``kernels`` are the names that chose the programs: a name that nothing comes of was meant otherwise.
    """
    kinds = {program.kind for program in programs}
    unserved = [target.name for target in targets if target.kind not in kinds]
    if unserved:
        raise _not_compiled(kernels, unserved, unserved)
    kinds = {target.kind for target in targets}
    unplaced = [name for name in kernels if not any(_is_of(each, name) and each.kind in kinds for each in programs)]
    if unplaced:
        raise _not_compiled(unplaced, [target.name for target in targets], unplaced)


def _not_compiled(kernels: Sequence[str], targets: Sequence[str], too_many: Sequence[str]) -> UsageError:
    return UsageError(
        f"--kernel {' '.join(kernels)} is not compiled for {', '.join(targets)}: kernels named xla_ are for v5e, v5p, v6e, "
        f"tpu7x and cpu, the others for sm_ and gfx; leave {' '.join(too_many)} out, or name one of the other kind beside it"
    )


def _is_of(program: Program, name: str) -> bool:
    """``attention`` and ``attention.forward`` are both of ``attention.forward.bf16``."""
    return f"{program.name}.".startswith(f"{name}.")
