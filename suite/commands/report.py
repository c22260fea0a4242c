"""``roofbench report``: publish runs as one self-contained page, or as Markdown."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from suite.commands.options import add_store
from suite.errors import UsageError, nearest
from suite.interrupts import leave, on_interrupt
from suite.paths import shown

if TYPE_CHECKING:
    from suite.rows import RunInfo
    from suite.store.queries import Reader
    from suite.targets.record import Compiled

SUMMARY = "Write a report of one or more runs: a self-contained HTML page, or Markdown."
DETAIL = """\
The report holds the roofline, every result with its regime, how it was measured, the system, the resolved configuration and
the command that runs it again. Host and user names, addresses and folders are left out. The page needs no network. A page
that roofbench made of the same runs is written anew; any other file that is there is replaced with --force alone."""
EXAMPLES = """\
roofbench report latest                              report.html of the latest run
roofbench report latest --output h200.md             the same as Markdown
roofbench report latest --targets --force            with what every kernel became on every target
roofbench report 20261129T1840 20261130T0900 -o both.html"""

DATA = '<script type="application/json" id="roofbench-data">'  # as a page opens the runs that it is of
FORMATS = (".html", ".md")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run ids, or the beginning of them (default: the latest)")
    parser.add_argument("--output", "-o", type=_file, default=Path("report.html"), metavar="FILE", help="FILE.html or FILE.md")
    parser.add_argument("--targets", action="store_true", help="also what `roofbench targets` compiled into this store")
    parser.add_argument("--force", action="store_true", help="replace the file, whatever is in it")
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Build the report, then write it in one go: a failure leaves no half of it."""
    from suite.store.queries import Reader

    runs = args.runs or ["latest"]
    refuse_output(args.output, args.force or _is_page(args.output))
    from suite.report.document import build

    with Reader.open(args.store) as reader:
        if not args.force:
            _refuse_another(args.output, [reader.resolve(run) for run in runs])
        compiled = _compiled(reader) if args.targets else []
        document = build(reader, runs, with_cases=args.output.suffix == ".html", compiled=compiled)
    if args.output.suffix == ".md":
        from suite.report.markdown import render_markdown as render
    else:
        from suite.report.html import render_html as render
    text = render(document)
    _write(args.output, text)
    sys.stdout.write(f"report: {shown(args.output.resolve())}\n")
    return 0


def _compiled(reader: "Reader") -> "list[Compiled]":
    found = reader.compiled()
    if not found:
        raise UsageError(
            f"--targets: nothing was compiled into store {shown(reader.path)}; run `roofbench targets` first, or leave it out"
        )
    return found


def _file(text: str) -> Path:
    if not text:
        raise UsageError("--output names no file; write for instance report.html")
    return Path(text)


def refuse_output(output: Path, force: bool) -> None:
    """``UsageError`` where the file cannot or should not be written."""
    named = f"--output {shown(output)}"
    try:
        _refuse_place(output, named)
        if output.exists() and not force:
            raise UsageError(f"{named} is there already; name another file, or replace it with --force")
        _beside(output).exists()  # its name is longer
    except OSError as error:
        raise UsageError(f"{named} cannot be written: {error.strerror}; choose another name") from error


def _refuse_place(output: Path, named: str) -> None:
    if output.is_dir():
        raise UsageError(f"{named} is a directory; name a file in it")
    if output.name in FORMATS:
        raise UsageError(f"{named} has no name before its ending; write for instance report{output.name}")
    if output.suffix not in FORMATS:
        raise UsageError(f"{named} is neither .html nor .md{nearest(output.suffix, FORMATS)}")
    if not output.parent.is_dir():
        raise UsageError(f"{named} cannot be written: {shown(output.parent)} is no directory; create it first")


def _is_page(output: Path) -> bool:
    """Whether the file may be a page of ours, of which its runs can be read: asked before a store is opened."""
    return output.suffix == ".html" and _runs_of(output) is not None


def _refuse_another(output: Path, infos: "Sequence[RunInfo]") -> None:
    """``UsageError`` where the page that is there is not of the same runs: a run is known by its id and when it began."""
    there = _runs_of(output)
    if there is not None and there != list(dict.fromkeys((info.run, info.started_at) for info in infos)):
        names = ", ".join(run for run, _ in there)
        raise UsageError(
            f"--output {shown(output)} is there already, of run {names}; name another file, or replace it with --force"
        )


def _runs_of(output: Path) -> list[tuple[str, str]] | None:
    """The runs of a page that ``render_html`` wrote, id and start of each; ``None`` where the file is no such page."""
    try:
        text = output.read_text(encoding="utf-8") if output.is_file() else ""
        _, opening, rest = text.partition(DATA)
        found = json.JSONDecoder().raw_decode(rest)[0]["runs"] if opening else None
        return None if found is None else [(str(run["run"]), str(run["started_at"])) for run in found]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _beside(output: Path) -> Path:
    """The file that becomes the report once it is whole."""
    return output.with_name(f".{output.name}.part")


def _write(output: Path, text: str) -> None:
    beside = _beside(output)
    try:
        with on_interrupt(leave):
            beside.write_text(text, encoding="utf-8")
            beside.replace(output)
    except OSError as error:
        raise UsageError(f"--output {shown(output)} cannot be written: {error.strerror}; choose another place") from error
    finally:
        with suppress(OSError):  # it has been renamed, or could not be made
            beside.unlink()
