"""Processor time as it would be on a machine of a stated pace.

A shared host runs the same instructions up to twice as slowly from one minute to the next.  A limit in seconds is
therefore held against what a fixed piece of work takes at the same moment: imports of the standard library, JSON, sorting.
"""

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence

# Processor time of the work on the 2-core machine on which the project's limits are promised, median of 9.
REFERENCE_S = 0.2

WORK = """
import argparse, ast, asyncio, collections, concurrent.futures, csv, dataclasses, decimal, difflib, email.message, fractions
import html.parser, http.client, inspect, json, logging.config, pathlib, pickletools, pydoc, sqlite3, statistics, tarfile
import tokenize, typing, unittest.mock, urllib.request, uuid, xml.dom.minidom, xmlrpc.client, zipfile
pieces = [{"name": f"case {index}", "sizes": [index, 2 * index], "share": index / 7} for index in range(12_000)]
text = json.dumps(pieces, sort_keys=True)
assert sorted(json.loads(text), key=lambda piece: piece["share"])[-1]["name"] == "case 11999"
assert len({tuple(piece["sizes"]) for piece in pieces}) == 12_000
"""


def child_s(arguments: Sequence[str], **options: object) -> float:
    """Processor seconds, of user and system, of a child that has to succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def at_reference_pace_s(spent_s: Callable[[], float], runs: int = 5) -> float:
    """Median of ``runs`` calls of ``spent_s``, each scaled by how long the fixed work takes just before it."""
    return statistics.median(REFERENCE_S / child_s([sys.executable, "-c", WORK]) * spent_s() for _ in range(runs))
