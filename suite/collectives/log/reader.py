"""A whole debug log of NCCL or RCCL: ``NCCL_DEBUG=INFO``, ``NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING``, of rank 0 at least."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from suite.collectives.log.choices import LoggedChoice, parse_choice
from suite.collectives.log.graphs import LoggedGraph, parse_graph
from suite.collectives.log.lines import messages
from suite.collectives.log.matrix import Matrix, parse_matrix
from suite.collectives.names import Algo
from suite.collectives.version import NcclVersion

_VERSION = re.compile(r"\b(?P<library>[NR]CCL) version\s*:?\s*(?P<version>\d+\.\d+\.\d+)(?P<build>\S*)")
_COMMUNICATOR = re.compile(r"^comm \S+ rank \d+ nRanks (?P<ranks>\d+) nNodes (?P<nodes>\d+) localRanks (?P<local>\d+)")
_CHANNELS = re.compile(r"^(?P<channels>\d+) coll channels")
_SETTING = re.compile(r"^(?P<name>[NR]CCL_\w+) set by environment to (?P<value>.*?)\.?$")
_TUNER = re.compile(r"^TUNER/Plugin: (?:Using|Plugin name is|Successfully loaded|Loaded)\b.*$")


@dataclass(frozen=True, slots=True)
class DebugLog:
    """What a log says; what it does not say is ``None`` or empty.

    ``tuner_plugin`` is the line that says that one was loaded: it may replace what was asked for.  ``channels`` is the number
    of channels of the communicator, from which algorithms take some.
    """

    library: str | None = None
    version: NcclVersion | None = None
    build: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    channels: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    choices: tuple[LoggedChoice, ...] = ()
    matrix: Matrix = field(default_factory=dict)
    graphs: tuple[LoggedGraph, ...] = ()
    tuner_plugin: str | None = None
    warnings: tuple[str, ...] = ()

    def graph(self, algo: Algo) -> LoggedGraph | None:
        """The graph of an algorithm, the last that was printed."""
        return next((graph for graph in reversed(self.graphs) if graph.algo is algo), None)


def read_log(text: str) -> DebugLog:
    """Read a log of any version; lines of other programs between are passed over, cut lines are dropped."""
    found = list(messages(text))
    texts = [message.text for message in found]
    library = _first(_VERSION, texts)
    communicator, channels = _last(_COMMUNICATOR, texts), _last(_CHANNELS, texts)
    settings = (match for match in map(_SETTING.match, texts) if match)
    plugin = _first(_TUNER, texts)
    return DebugLog(
        library=library["library"] if library else None,
        version=NcclVersion.parse(library["version"]) if library else None,
        build=library["build"] or None if library else None,
        ranks=int(communicator["ranks"]) if communicator else None,
        nodes=int(communicator["nodes"]) if communicator else None,
        channels=int(channels["channels"]) if channels else None,
        settings={match["name"]: match["value"] for match in settings},
        choices=tuple(choice for choice in map(parse_choice, texts) if choice),
        matrix=parse_matrix(texts),
        graphs=tuple(graph for graph in map(parse_graph, texts) if graph),
        tuner_plugin=plugin[0] if plugin else None,
        warnings=tuple(dict.fromkeys(message.text for message in found if message.level == "WARN")),
    )


def _first(pattern: re.Pattern[str], texts: Sequence[str]) -> re.Match[str] | None:
    return next((match for match in map(pattern.search, texts) if match), None)


def _last(pattern: re.Pattern[str], texts: Sequence[str]) -> re.Match[str] | None:
    return _first(pattern, texts[::-1])
