# ruff: noqa: N999  # it is named as its command is, which is a word of Python
"""``roofbench import``: what other tools measured, stored beside what roofbench did."""

import argparse
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from suite.commands.options import add_store, store_option
from suite.commands.output import say
from suite.errors import UsageError
from suite.paths import shown, without_waiting

if TYPE_CHECKING:
    from suite.importers.rows import CollectiveLog
    from suite.store.importing import Source
    from suite.store.writer import Store

SUMMARY = "Store what nccl-tests or rccl-tests measured, as results marked imported."
DETAIL = """\
Takes what they print, whole or cut, the JSON of nccl-tests (-J) and the JSON and CSV of rccl-tests (-x). Each run in a FILE
becomes a run of the store, evidence imported: shown beside what was measured here and never joined with it. A result that the
tool did not check is unchecked, never ok. What is missing or contradicts itself is said; host names and addresses are not kept.
A file that was imported before is passed over."""
EXAMPLES = """\
roofbench import all_reduce.log                     what all_reduce_perf printed
roofbench import node*.json --store fleet.db        several, into another store
roofbench show                                      the latest run, which is then the imported one"""
TAKEN = "what nccl-tests or rccl-tests print, their JSON (-J), or what rccl-tests write with -x"
STORE_BEGINS = b"SQLite format 3\0"
LARGEST_BYTES = 64 * 2**20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="text, JSON or CSV of nccl-tests or rccl-tests")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Read every file before anything is stored: one that holds nothing ends the command."""
    from suite.store.writer import Store

    found = [_read(path) for path in args.files]
    with Store.open(args.store) as store:
        for source, logs in found:
            sys.stdout.writelines(f"{line}\n" for line in _stored(store, source, logs))
    return 0


def _content(path: Path) -> bytes:
    """What the file holds, a pipe's up to its end; ``UsageError`` for nothing, too much, or a store."""
    try:
        with open(path, "rb", opener=without_waiting) as file:  # Path.open takes no opener
            content = file.read(LARGEST_BYTES + 1)  # a pipe or a device has no size that would tell
            is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{shown(path)} has more than {LARGEST_BYTES} bytes, and no such log does; give the log alone")
    if not content.strip():
        nothing = "is a pipe that nobody has written into" if is_pipe else "is empty"
        raise UsageError(f"{shown(path)} {nothing}; give {TAKEN}")
    if content.startswith(STORE_BEGINS):
        raise UsageError(
            f"{shown(path)} is an SQLite database and no log: `roofbench store merge` brings stores together; "
            f"import takes {TAKEN}"
        )
    return content


def _read(path: Path) -> "tuple[Source, list[CollectiveLog]]":
    from suite.importers.read import read_collectives
    from suite.store.importing import Source

    content = _content(path)
    logs = list(read_collectives(content.decode("utf-8", errors="replace"), shown(path)))
    return Source.of(path.name, content), _with_rows(path, logs)


def _with_rows(path: Path, logs: "list[CollectiveLog]") -> "list[CollectiveLog]":
    """The logs that have a result; those without one are told of, and a file of nothing else is refused."""
    from suite.importers.results import results
    from suite.store.importing import warnings_of

    kept = [log for log in logs if next(results(log), None) is not None]
    for log in logs:
        told = "; ".join(warnings_of(log)) or "nothing was measured in it"
        if log in kept:
            continue
        if not kept and not log.op and log.ranks is None:  # lines that merely look like rows
            raise UsageError(f"{shown(path)} holds no run of nccl-tests or rccl-tests ({told}); give {TAKEN}")
        if not kept:
            raise UsageError(f"{shown(path)} holds no result of {log.tool} ({log.status}): {told}")
        say(f"{shown(Path(path.name))}: a run without a result ({log.status}): {told}")
    return kept


def _stored(store: "Store", source: "Source", logs: "list[CollectiveLog]") -> Iterator[str]:
    from suite.importers.results import results
    from suite.report.words import counted
    from suite.store.importing import imported_before, store_log, warnings_of
    from suite.store.queries import Reader

    named = shown(Path(source.name))
    with Reader.open(str(store.path)) as reader:
        before = imported_before(reader.runs(), source)
    if before:
        yield f"{named}: imported before, as run {', '.join(before)}"
        return
    for index, log in enumerate(logs):
        name = store_log(store, log, source, ["roofbench", *sys.argv[1:]], index)
        for warning in warnings_of(log):
            say(f"{named}: {warning}")
        rows = counted(sum(1 for _ in results(log)), "row")
        of = f" of {log.op}" if log.op else ""
        ranks = f" over {counted(log.ranks, 'rank')}" if log.ranks else ""
        yield f"{named}: {rows}{of}{ranks}, {log.status}, as run {name}"
    yield f"  roofbench show {name}{store_option(store.path)}"
