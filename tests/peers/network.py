"""Collectives over a network whose rate is known: 8 ranks predicted from 2 and 4, and what of the rate a ring reaches.

Ranks of gloo in a namespace each, started as a launcher would start them: every one is a ``roofbench run`` with ``RANK``,
``WORLD_SIZE`` and ``MASTER_ADDR``, of which rank 0's stores.  It takes root, and no device.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from suite.collectives.bandwidth import busbw_factor
from suite.collectives.model.holdout import HeldOut
from suite.collectives.names import Op
from suite.collectives.series import Point
from suite.collectives.study import Modelled, studies
from suite.report.collective_words import interval, signed
from suite.report.words import duration, message_size
from suite.store.queries import Reader
from tests.peers.child import Deadline, end, last_line
from tests.peers.network_spaces import Network, why_absent
from tests.peers.part import status
from tests.peers.record import Record, Row, Verdict
from tests.peers.table import NOTHING, render

NAME = "network"
SHOWS = (
    "all_reduce over links of a known rate, a namespace a rank: predicted from 2 and 4 ranks, and what of the rate is reached"
)
HEADINGS = ("measured", "95 % interval", "predicted", "off by", "of the rate")
FOOT = (
    "limits: predicted within 20 % and own ring at 85 % of the rate from 16 MiB; smaller sizes are information.",
    "of the rate: bus bandwidth over the rate that the token buckets let through, headers of TCP and Ethernet included.",
)
WORLDS = (2, 4, 8)
LARGE_BYTES = 16 * 2**20
PREDICTED_WITHIN, OF_THE_RATE = 0.20, 0.85
# None between 16 KiB and 2 MiB: what fits into the buckets passes at the machine's pace, and there the rate is no rate.
SIZES = ("8", "16KiB", "2MiB", "4MiB", "8MiB", "16MiB")
TINY_SIZES = ("8", "1KiB", "16KiB", "4MiB")
PORT = 29_500


def command(store: Path, worlds: Sequence[int], sizes: Sequence[str]) -> list[str]:
    """The run, the same for every rank."""
    return [
        sys.executable, "-m", "suite.cli", "run", "backend=cpu", "experiment=collectives", "wait_s=120",
        "jobs.collective.ops=[all_reduce]", "jobs.collective.implementations=[own]",
        f"jobs.collective.sizes=[{','.join(sizes)}]",
        f"jobs.collective.world_sizes=[{','.join(map(str, worlds))}]", "measure.max_time_s=6", "measure.min_time_s=0.1",
        "measure.deadlines.start_s=120", "measure.deadlines.compile_s=120", f"store.url={store}",
    ]  # fmt: skip


def launch(rank: int, world: int, address: str) -> dict[str, str]:
    """What a launcher tells a rank."""
    told = {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": address, "MASTER_PORT": str(PORT)}
    return {**os.environ, **told, "OMP_NUM_THREADS": "1"}


def measure(network: Network, argv: Sequence[str], deadline: Deadline, log: IO[str]) -> str:
    """Start every rank, wait for rank 0, and leave none behind; why there is no result, or empty."""
    ranks: list[subprocess.Popen[str]] = []
    try:
        for rank in range(network.ranks):
            surroundings = launch(rank, network.ranks, network.address(0))
            ranks.append(
                subprocess.Popen(
                    network.inside(rank, argv), env=surroundings, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
                )
            )
        ranks[0].wait(deadline.left_s())
        for each in ranks[1:]:
            each.wait(min(30.0, deadline.left_s()))
    except subprocess.TimeoutExpired:
        return "the ranks were still running when the time was up"
    finally:
        for each in ranks:
            end(each)
    return "" if ranks[0].returncode == 0 else f"rank 0 ended with status {ranks[0].returncode}"


def rows(models: Sequence[Modelled], rate_bit_s: int) -> Iterator[Row]:
    """A row for each algorithm, world and size."""
    for model in models:
        held = model.held_out
        if not isinstance(held, HeldOut):
            yield Row(model.curve.way.label, (NOTHING,) * len(HEADINGS), Verdict.FAILED, {}, held.reason)
            continue
        predicted = {error.message_bytes: error.predicted_s for error in held.errors}
        for point in model.curve.points:
            known = predicted.get(point.message_bytes) if point.ranks == held.ranks else None
            yield row(model.curve.way.label, point, known, rate_bit_s)


def row(name: str, point: Point, predicted_s: float | None, rate_bit_s: int) -> Row:
    """Judged from 16 MiB on: of the held-out world by its prediction, of the own ring by the rate."""
    share = point.message_bytes * busbw_factor(Op.ALL_REDUCE, point.ranks) / point.time_s / (rate_bit_s / 8)
    off = None if predicted_s is None else predicted_s / point.time_s - 1
    held = [] if off is None else [abs(off) <= PREDICTED_WITHIN]
    held += [share >= OF_THE_RATE] if name == "own ring" else []
    judged = point.message_bytes >= LARGE_BYTES and held
    cells = (
        duration(point.time_s),
        interval(point),
        NOTHING if predicted_s is None else duration(predicted_s),
        NOTHING if off is None else signed(off),
        f"{share:.1%}",
    )
    figures = {**point._asdict(), "predicted_s": predicted_s, "off": off, "of_the_rate": share}
    figures["high_s"] = None if point.high_s == float("inf") else point.high_s
    verdict = Verdict.INFO if not judged else Verdict.PASS if all(held) else Verdict.FAIL
    return Row(f"{name}, {point.ranks} ranks, {message_size(point.message_bytes)}", cells, verdict, figures)


def found(store: Path) -> tuple[Modelled, ...]:
    """The models of the run in a store."""
    with Reader.open(str(store)) as reader:
        (study,) = studies(reader.results("latest"))
    return study.models


def main(argv: Sequence[str] | None = None) -> int:
    """Status 1 when a row failed or is over its limit."""
    given = options().parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    about = {"rate_bit_s": given.rate_mbit * 10**6, "tiny": given.tiny}
    record = Record(NAME, given.out / f"{NAME}.json", about)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through the end of every ``with``
    failure = why_absent()
    if failure:
        record.add(Row(NAME, (NOTHING,) * len(HEADINGS), Verdict.ABSENT, {}, failure))
    else:
        carry_out(record, given, about)
    record.finish()
    print(render(record, SHOWS, HEADINGS, FOOT))
    return status([record])


def carry_out(record: Record, given: argparse.Namespace, about: Mapping[str, int]) -> None:
    """Make the network, measure, and add the rows."""
    store, log = given.out / f"{NAME}.db", given.out / f"{NAME}.log"
    store.unlink(missing_ok=True)
    worlds, sizes = ((2, 4), TINY_SIZES) if given.tiny else (WORLDS, SIZES)
    with log.open("w") as output, Network(max(worlds), about["rate_bit_s"]) as network:
        reason = measure(network, command(store.absolute(), worlds, sizes), Deadline(given.seconds), output)
    if reason:
        record.add(Row(NAME, (NOTHING,) * len(HEADINGS), Verdict.FAILED, {}, f"{reason}: {last_line(log.read_text())}"))
        return
    for each in rows(found(store), about["rate_bit_s"]):
        record.add(each)


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results; made when missing")
    parser.add_argument("--rate-mbit", type=int, default=200, help="the rate of each link, both ways, in Mbit/s")
    parser.add_argument("--seconds", type=float, default=560.0, help="end what is under way after this time")
    parser.add_argument("--tiny", action="store_true", help="few ranks and small sizes: tries the chain, measures nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
