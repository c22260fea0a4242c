"""all_reduce as ``roofbench run`` times it beside a plain loop over torch.distributed, in turns on the same devices.

    python -m tests.peers.plain_collectives --out DIR                        # every GPU of this machine
    python -m tests.peers.plain_collectives --out DIR --backend cpu --tiny   # two CPU ranks: tries the chain

A loop is a user's: launch a batch, wait once, divide.  roofbench begins every operation at a barrier and takes the slowest
rank.  Both use the library's choice, its ring and its tree, with reduction in the switch off.  A round is both, in the other
order every second time.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from suite.collectives.bandwidth import busbw_bytes_s
from suite.collectives.names import Op
from suite.collectives.series import series
from suite.errors import RoofbenchError
from suite.jobs.collective.sizes import parse_size
from suite.reason import named
from suite.report.words import duration, message_size
from suite.store.queries import Reader
from tests.peers.child import Deadline, PeerFailed, last_line, run_logged
from tests.peers.judge import relative
from tests.peers.part import status
from tests.peers.ranks import Rank, run_ranks
from tests.peers.record import Record, Row, Verdict
from tests.peers.table import NOTHING, number, percent, render

NAME = "plain_collectives"
SHOWS = "all_reduce by roofbench beside a plain loop over torch.distributed, in turns"
HEADINGS = ("ours", "the loop", "ours by", "busbw GB/s", "the loop's")
FOOT = (
    "limit: within 2 % from 1 GiB on; smaller sizes are information: ours begins at a barrier, the loop's launches overlap.",
    "Two H200 over NVLink, 8 GiB in fp32, without reduction in the switch, by NCCL 2.28.9: 347.0 GB/s, ring 347.5, tree 356.4.",
)
WITHIN = 0.02
LARGE_BYTES = 2**30
FORMATS = ("fp32", "bf16")
SIZES = ("64MiB", "256MiB", "1GiB", "2GiB", "4GiB", "8GiB")
TINY_SIZES = ("1MiB", "4MiB")
LIBRARY = "library"
FORCED: Mapping[str, Mapping[str, str]] = {LIBRARY: {}, "ring": {"NCCL_ALGO": "Ring"}, "tree": {"NCCL_ALGO": "Tree"}}
LOOP_S, OURS_S = 0.5, 1.0  # of one case, in one round


class Message(NamedTuple):
    """What both sides time.  ``algo`` is what the library is made to use, or ``library`` where it chooses."""

    algo: str
    format: str
    bytes: int


class Plan(NamedTuple):
    """What both sides measure, and where their files go."""

    backend: str
    ranks: int
    algos: tuple[str, ...]
    sizes: tuple[str, ...]
    out: Path


Times = Mapping[Message, float]  # seconds an operation


def command(plan: Plan, store: Path) -> list[str]:
    """The run of roofbench."""
    return [
        sys.executable, "-m", "suite.cli", "run", f"backend={plan.backend}", "experiment=collectives", "wait_s=60",
        "jobs.collective.ops=[all_reduce]", "jobs.collective.implementations=[library]", "jobs.collective.protos=[library]",
        f"jobs.collective.algos=[{','.join(plan.algos)}]", f"jobs.collective.formats=[{','.join(FORMATS)}]",
        f"jobs.collective.sizes=[{','.join(plan.sizes)}]", f"jobs.collective.world_sizes=[{plan.ranks}]",
        f"measure.max_time_s={OURS_S}", "measure.target=0.005", f"store.url={store}",
    ]  # fmt: skip


def ours(plan: Plan, turn: int, deadline: Deadline) -> Times:
    """The verified times of a run in a store of its own; ``PeerFailed`` where it left none."""
    store, log = plan.out.absolute() / f"{NAME}-{turn}.db", plan.out / f"{NAME}-{turn}.log"
    store.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    run_logged("roofbench", command(plan, store), deadline.left_s(), log)
    if not store.exists():
        raise PeerFailed(f"roofbench stored nothing: {last_line(log.read_text(errors='replace'))}")
    with Reader.open(str(store)) as reader:
        curves = series(reader.results("latest"))
    return {
        Message(curve.way.algo, curve.setting.format, point.message_bytes): point.time_s
        for curve in curves
        for point in curve.points
    }


def looped(plan: Plan, deadline: Deadline) -> Times:
    """The loop's times, each the median of its batches; ``PeerFailed`` where a rank fails."""
    found: dict[Message, float] = {}
    for algo in plan.algos:
        meeting, printed = plan.out.absolute() / "meeting", plan.out / f"loop-{algo}.log"
        meeting.unlink(missing_ok=True)
        sizes = ",".join(str(parse_size(size)) for size in plan.sizes)
        asked = (str(meeting), plan.backend, ",".join(FORMATS), sizes, str(LOOP_S))
        argv = [sys.executable, "-m", "tests.peers.plain_collectives_rank", *asked]
        told = {"WORLD_SIZE": str(plan.ranks), "NCCL_NVLS_ENABLE": "0", **FORCED[algo]}
        try:
            run_ranks([Rank(argv, {**told, "RANK": str(rank)}) for rank in range(plan.ranks)], printed, deadline)
        finally:
            meeting.unlink(missing_ok=True)
        for line in filter(lambda text: text.startswith("{"), printed.read_text().splitlines()):
            said = json.loads(line)
            found[Message(algo, said["format"], said["bytes"])] = median(said["seconds"])
    return found


def rows(ranks: int, by_ours: Sequence[Times], by_loop: Sequence[Times]) -> Iterator[Row]:
    """A row for each message that either side has a time of, in any round."""
    for message in dict.fromkeys(message for times in (*by_loop, *by_ours) for message in times):
        yield row(message, ranks, *([times[message] for times in side if message in times] for side in (by_ours, by_loop)))


def row(message: Message, ranks: int, ours_s: Sequence[float], loop_s: Sequence[float]) -> Row:
    """Judged from 1 GiB on, by the medians over the rounds."""
    mine, theirs = (median(times) if times else None for times in (ours_s, loop_s))
    judged = relative(mine, theirs, WITHIN)
    verdict = judged.verdict if message.bytes >= LARGE_BYTES or judged.difference is None else Verdict.INFO
    rates = [
        None if time_s is None else busbw_bytes_s(Op.ALL_REDUCE, ranks, message.bytes, time_s) for time_s in (mine, theirs)
    ]
    cells = (duration(mine), duration(theirs), percent(judged.difference), *(number(rate, 1e-9) for rate in rates))
    figures = {"ours_s": list(ours_s), "loop_s": list(loop_s), "difference": judged.difference, "ranks": ranks}
    note = "" if judged.difference is not None else f"{'roofbench' if mine is None else 'the loop'} has no time of it"
    return Row(f"{message.algo} {message.format} {message_size(message.bytes)}", cells, verdict, figures, note)


def carry_out(record: Record, plan: Plan, rounds: int, deadline: Deadline) -> None:
    """Both sides in turns, the other first every second time, and then a row for each message."""
    by_ours: list[Times] = []
    by_loop: list[Times] = []
    for turn in range(rounds):
        for is_ours in (False, True) if turn % 2 == 0 else (True, False):
            if is_ours:
                by_ours.append(ours(plan, turn, deadline))
            else:
                by_loop.append(looped(plan, deadline))
    for each in rows(plan.ranks, by_ours, by_loop):
        record.add(each)


def main(argv: Sequence[str] | None = None) -> int:
    """Status 1 when a row failed or is over its limit."""
    given = options().parse_args(argv)
    deadline = Deadline(given.seconds)
    given.out.mkdir(parents=True, exist_ok=True)
    on_gpu = given.backend == "cuda"
    ranks = given.ranks or (devices() if on_gpu else 2)
    record = Record(NAME, given.out / f"{NAME}.json", {"backend": given.backend, "ranks": ranks, "tiny": given.tiny})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through every ``finally``
    plan = Plan(given.backend, ranks, tuple(FORCED) if on_gpu else (LIBRARY,), TINY_SIZES if given.tiny else SIZES, given.out)
    reason = (
        f"it takes as many GPUs as ranks, at least 2; here are {devices()}" if on_gpu and not 2 <= ranks <= devices() else ""
    )
    if reason:
        record.add(Row(NAME, (NOTHING,) * len(HEADINGS), Verdict.ABSENT, {}, reason))
    else:
        try:
            carry_out(record, plan, given.rounds, deadline)
        except (PeerFailed, RoofbenchError) as error:
            record.add(Row(NAME, (NOTHING,) * len(HEADINGS), Verdict.FAILED, {}, named(error)))
    record.finish()
    print(render(record, SHOWS, HEADINGS, FOOT))
    return status([record])


def devices() -> int:
    """CUDA devices that torch sees."""
    import torch

    return 0 if torch.version.hip is not None else torch.cuda.device_count()


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results and logs; made when missing")
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda", help="GPUs by NCCL, or CPU ranks by gloo")
    parser.add_argument("--ranks", type=int, default=0, help="GPUs or CPU ranks; as they come: every GPU, or two CPU ranks")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=560.0, help="end what is under way after this time")
    parser.add_argument("--tiny", action="store_true", help="small messages: tries the chain, measures nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
