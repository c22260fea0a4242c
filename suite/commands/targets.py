"""``roofbench targets``: what every kernel becomes on hardware that need not be there."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from suite.commands.opening import Opening
from suite.commands.options import add_json, add_store
from suite.commands.output import json_array
from suite.errors import UsageError
from suite.interrupts import EXIT_INTERRUPTED, leave, on_interrupt

if TYPE_CHECKING:
    from suite.show.screen import Screen
    from suite.targets.carry import Cell, Ended
    from suite.targets.record import Compiled

SUMMARY = "Compile every kernel for every target, without any of the hardware: what it takes there, and whether it is native."
DETAIL = """\
Our Triton kernels are compiled for NVIDIA's sm_80 to sm_120 and AMD's gfx90a to gfx1201, what XLA compiles of our jobs for
TPU v5e, v5p, v6e and 7x and for this machine's CPU; each in a child process with a time limit. Of every kernel the first
configuration is taken that the product would take there. A mark in the matrix says whether it multiplies in the format itself
(that it compiles does not), and below it stands why a cell is empty. Few cells are told with registers, spills, shared memory,
the warps that a unit holds at once and what that is of the most; --json has all of that for every cell.

What was compiled is kept in the store as evidence `compiled`, apart from what was measured, under a hash of the sources, the
target, the tools' versions and the environment variables that change what they make, such as XLA_FLAGS: a second run compiles
only what has changed or failed. A target that none of the named kernels is for is refused, and so is such a kernel. The exit
status is 3 when a cell failed that should have compiled; a kernel that is not made for a target says so, and is no failure. All
of it needs `roofbench[targets]`; what is not installed leaves its cells unsupported, with the remedy."""
EXAMPLES = """\
roofbench targets                                     the whole matrix: minutes at first, seconds from then on
roofbench targets --target gfx942 gfx950              two targets
roofbench targets --kernel attention decode.bf16      all of one kernel, and one program of another
roofbench targets --kernel gemm.bf16 --json           registers, spills, occupancy for programs
roofbench targets --kernel decode --again             compile again what the store has"""

EXIT_FAILED = 3
TIMEOUT_S = 300.0
FEW = 40  # cells whose facts are told beside the matrix


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--target", nargs="+", action="extend", default=[], metavar="TARGET", help="such as sm_90, gfx942, v5e, cpu"
    )
    parser.add_argument(
        "--kernel",
        nargs="+",
        action="extend",
        default=[],
        metavar="KERNEL",
        help="such as gemm, attention.forward or decode.bf16",
    )
    parser.add_argument(
        "--jobs", type=_jobs, default=None, metavar="N", help="children that compile at once (default: the cores)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=TIMEOUT_S, metavar="S", help=f"seconds for one cell (default: {TIMEOUT_S:g})"
    )
    parser.add_argument("--again", action="store_true", help="compile what the store has too")
    add_json(parser)
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Compile what is not known yet, and print the matrix."""
    from suite.targets.carry import cells
    from suite.targets.listing import listing
    from suite.targets.names import chosen_programs, chosen_targets, refuse_without_partner

    targets = chosen_targets(args.target)
    told = listing()
    programs = chosen_programs(told.programs, args.kernel)
    if args.target and args.kernel:
        refuse_without_partner(programs, targets, args.kernel)
    wanted = cells(told, programs, targets)
    ended: list[Ended] = []
    is_whole = _carried_out(args, wanted, ended)
    order = {cell.place.key: place for place, cell in enumerate(wanted)}
    _print(sorted(ended, key=lambda each: order[each.compiled.key]), args)
    if not is_whole:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if any(each.compiled.failed for each in ended) else 0


def _carried_out(args: argparse.Namespace, wanted: "Sequence[Cell]", ended: "list[Ended]") -> bool:
    """Whether every cell is in ``ended``; what was compiled before an interruption is stored."""
    from suite.targets.carry import carry_out, is_open
    from suite.targets.checking import refuse_wrong_variables
    from suite.targets.told import Teller

    with ExitStack() as stack:
        opening = Opening(args.store, stack)
        known = {} if args.again else _known(args.store, wanted)
        refuse_wrong_variables(cell.place for cell in wanted if is_open(cell, known, args.timeout))
        tell = Teller(sys.stderr, len(wanted))
        stack.callback(tell.close)
        jobs = args.jobs or _cores()
        try:
            with on_interrupt(leave):
                carried = carry_out(
                    wanted, known, lambda each: opening().record_compiled(each), jobs=jobs, limit_s=args.timeout
                )
                stack.callback(carried.close)
                for each in carried:
                    ended.append(each)
                    tell(each)
        except KeyboardInterrupt:
            tell.interrupted(args.store)
            return False
    return True


def _known(url: str, wanted: "Sequence[Cell]") -> "dict[str, Compiled]":
    from suite.commands.known import store_file
    from suite.store.queries import Reader

    if store_file(url) is None:
        return {}
    with Reader.open(url) as reader:
        return reader.compiled_by_keys([cell.place.key for cell in wanted])


def _print(ended: "Sequence[Ended]", args: argparse.Namespace) -> None:
    from suite.show.screen import screen_of

    if args.json:
        sys.stdout.writelines(line + "\n" for line in json_array(_json(each) for each in ended))
        return
    if ended:
        sys.stdout.writelines(f"{line}\n" for line in _lines(ended, screen_of(sys.stdout)))


def _lines(ended: "Sequence[Ended]", screen: "Screen") -> Iterator[str]:
    from suite.targets.facts_table import facts_lines
    from suite.targets.matrix import counts, matrix_lines
    from suite.targets.told import cached_words

    found = [each.compiled for each in ended]
    yield from matrix_lines(found, screen)
    if len(found) <= FEW and any(each.facts for each in found):
        yield ""
        yield from facts_lines(found, screen)
    yield ""
    yield f"{len(found)} cells: {counts(found)}{cached_words(ended)}"


def _json(each: "Ended") -> dict[str, object]:
    from suite.targets.derived import estimate_of, occupancy_of

    held, estimate = occupancy_of(each.compiled), estimate_of(each.compiled)
    derived = {"occupancy": held._asdict() if held else None, "estimate": estimate._asdict() if estimate else None}
    return {**each.compiled.to_json(), **derived, "cached": each.is_cached}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise UsageError(f"--jobs {text} is no number of children; give 1 to 1024")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--timeout {text} is no time; give seconds above 0")
    return seconds
