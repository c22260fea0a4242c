"""The cost table that NCCL prints of a real communicator beside the one rebuilt from its graphs and the version's constants.

    python -m tests.peers.nccl_model --out DIR

Several ranks on one GPU, each with a host name of its own, talk over sockets: their times mean nothing, the library's table
does.  It takes one CUDA device.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from backends.torch.collective.forced import start_environment
from suite.collectives.log.matrix import Cost, Key
from suite.collectives.log.reader import DebugLog, read_log
from suite.collectives.model.nccl import Communicator, graph_of, rebuilt
from suite.collectives.names import Algo, Proto
from suite.collectives.transport import Transport
from suite.errors import RoofbenchError
from suite.reason import named
from tests.peers.child import Deadline, PeerFailed
from tests.peers.part import status
from tests.peers.ranks import Rank, run_ranks
from tests.peers.record import Record, Row, Verdict
from tests.peers.table import NOTHING, render

NAME = "nccl_model"
SHOWS = "NCCL's own cost table of real communicators, and the same rebuilt: microseconds/GB/s as its log prints them"
HEADINGS = ("LL logged", "rebuilt", "LL128 logged", "rebuilt", "Simple logged", "rebuilt")
FOOT = (
    "limit: LL and Simple of ring and tree equal to the printed digit; LL128 and other algorithms are information.",
    "The graphs are those of the same log; the network's latency is 0, as its sockets say.",
)
WORLDS = "2,4,8"
JUDGED = (Algo.RING, Algo.TREE), (Proto.LL, Proto.SIMPLE)
_VENDORS: dict[str, Literal["intel", "amd"]] = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}


def communicator_of(log: DebugLog, compute_capability: int, cpuinfo: str) -> Communicator:
    """What a log tells of its communicator.

    Raises ``PeerFailed`` where it does not tell enough, ``UsageError`` where the model does not know the version.
    """
    if log.version is None or log.ranks is None or log.nodes is None or log.channels is None or not log.matrix:
        raise PeerFailed("the log has no version, communicator, channels or table of costs: was its file written?")
    graphs = {algo: graph_of(found) for algo in JUDGED[0] if (found := log.graph(algo)) is not None}
    if len(graphs) < len(JUDGED[0]):
        raise PeerFailed("the log has no graph of both ring and tree; GRAPH must be among NCCL_DEBUG_SUBSYS")
    ll128 = any(cost.bandwidth_bytes_s for (_, _, proto), cost in log.matrix.items() if proto is Proto.LL128)
    vendors = {_VENDORS.get(line.split()[-1], "other") for line in cpuinfo.splitlines() if line.startswith("vendor_id")}
    cpu = vendors.pop() if len(vendors) == 1 else "other"
    return Communicator(log.version, log.ranks, log.nodes, compute_capability, cpu, log.channels, graphs, ll128)


def rows(log: DebugLog, communicator: Communicator) -> Iterator[Row]:
    """A row for each operation and algorithm that both tables have."""
    table = rebuilt(communicator)
    for op, algo in dict.fromkeys((op, algo) for op, algo, _ in table):
        keys = [(op, algo, proto) for proto in Proto]
        if all(key in log.matrix for key in keys):
            yield row(communicator.ranks, keys, [log.matrix[key] for key in keys], [table[key] for key in keys])


def row(ranks: int, keys: Sequence[Key], logged: Sequence[Cost], made: Sequence[Cost]) -> Row:
    """Judged by what is printed."""
    op, algo, _ = keys[0]
    printed = [(one.printed, other.printed) for one, other in zip(logged, made, strict=True)]
    held = [one == other for (_, _, proto), (one, other) in zip(keys, printed, strict=True) if proto in JUDGED[1]]
    verdict = Verdict.INFO if algo not in JUDGED[0] else Verdict.PASS if all(held) else Verdict.FAIL
    figures = {proto: {"logged": one, "rebuilt": other} for (_, _, proto), (one, other) in zip(keys, printed, strict=True)}
    return Row(f"{ranks} ranks, {op} {algo}", tuple(cell for pair in printed for cell in pair), verdict, figures)


def logged(ranks: int, folder: Path, deadline: Deadline) -> str:
    """The log of rank 0 of so many ranks; ``PeerFailed`` where they do not all come to the right sum in time."""
    meeting = folder.absolute() / f"meeting-{ranks}"
    meeting.unlink(missing_ok=True)
    paths = [folder.absolute() / f"nccl-{ranks}-rank-{rank}.log" for rank in range(ranks)]
    started = [
        Rank(
            [sys.executable, "-m", "tests.peers.nccl_model_rank", str(rank), str(ranks), str(meeting)],
            {**start_environment(Transport.SHARED_GPU, rank), "NCCL_DEBUG_FILE": str(path)},
        )
        for rank, path in enumerate(paths)
    ]
    try:
        run_ranks(started, folder / f"ranks-{ranks}.log", deadline)
    finally:
        meeting.unlink(missing_ok=True)
    return paths[0].read_text(errors="replace")


def main(argv: Sequence[str] | None = None) -> int:
    """Status 1 when a row failed or differs."""
    given = options().parse_args(argv)
    deadline = Deadline(given.seconds)
    given.out.mkdir(parents=True, exist_ok=True)
    record = Record(NAME, given.out / f"{NAME}.json", {"worlds": given.worlds})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through every ``finally``
    reason = why_absent()
    for ranks in [] if reason else given.worlds:
        try:
            for each in of_world(ranks, given.out, deadline):
                record.add(each)
        except (PeerFailed, RoofbenchError) as error:
            record.add(Row(f"{ranks} ranks", (NOTHING,) * len(HEADINGS), Verdict.FAILED, {}, named(error)))
    if reason:
        record.add(Row(NAME, (NOTHING,) * len(HEADINGS), Verdict.ABSENT, {}, reason))
    record.finish()
    print(render(record, SHOWS, HEADINGS, FOOT))
    return status([record])


def of_world(ranks: int, folder: Path, deadline: Deadline) -> list[Row]:
    """The rows of so many ranks."""
    import torch

    log = read_log(logged(ranks, folder, deadline))
    major, minor = torch.cuda.get_device_capability(0)
    return list(rows(log, communicator_of(log, 10 * major + minor, Path("/proc/cpuinfo").read_text())))


def why_absent() -> str:
    """Why there is no NCCL to ask; empty where there is."""
    import torch
    import torch.distributed

    if torch.version.hip is not None or not torch.cuda.is_available():
        return "NCCL takes a CUDA device"
    return "" if torch.distributed.is_nccl_available() else "this torch was built without NCCL"


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results and logs; made when missing")
    parser.add_argument(
        "--worlds", type=lambda text: [int(each) for each in text.split(",")], default=WORLDS, help="numbers of ranks"
    )
    parser.add_argument("--seconds", type=float, default=180.0, help="end what is under way after this time")
    return parser


if __name__ == "__main__":
    sys.exit(main())
