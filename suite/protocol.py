"""How the launcher and a worker talk: JSON in length-prefixed frames over a socket pair.

A frame is four bytes of length (big-endian, payload only) and that many bytes of UTF-8 JSON: an object whose ``kind``
names one of the messages below.  The launcher asks (``Hello``, ``Prepare``, ``Round``, ``Finish``, ``LookAt``, ``Glance``,
``Drop``, ``Stop``); the worker answers ``Hello`` with ``Ready`` or ``Refused``, and every other request but ``Stop`` with any
number of ``Phase`` and then exactly one of ``Advanced``, ``Ended``, ``Looked``, ``Failed``.
"""

import json
import os
import socket
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from suite.backend import DeviceInfo, Fact
from suite.case import Case
from suite.measure.look import Glimpse
from suite.measurement import Measurement
from suite.outcome import Evidence, Outcome
from suite.settings import DeadlineSettings, MeasureSettings

PROTOCOL_VERSION = 2
# A case with every sample and telemetry reading kept is under 1 MB; a longer frame is a peer gone wrong, and
# reading on would fill the parent's memory.
MAX_FRAME_BYTES = 64 * 2**20

_LENGTH = struct.Struct("!I")
# What json, the messages' constructors and the sample decoder raise for bytes that are no message.
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError, zlib.error)


class ProtocolError(Exception):
    """The bytes received are no message of this protocol, or a message is too long to send."""


class ConnectionClosed(ProtocolError):
    """The peer is gone."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message: which protocol, the backend's options, and how to measure."""

    options: Mapping[str, Any]
    settings: MeasureSettings
    version: int = PROTOCOL_VERSION


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make a case ready under a number of the launcher's choosing, which later messages repeat."""

    ticket: int
    case: Case
    sets: int
    tolerance: float
    seed: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Round:
    """Measure one round of a prepared case."""

    ticket: int
    index: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Check a measured case again, hand over its measurement and free it."""

    ticket: int


@dataclass(frozen=True, slots=True)
class LookAt:
    """Make a candidate ready to be looked at, unchecked: nothing that comes of it is a result."""

    ticket: int
    case: Case
    seed: int


@dataclass(frozen=True, slots=True)
class Glance:
    """Launch a candidate for about so long, after ``idle_s`` without work."""

    ticket: int
    seconds: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Drop:
    """Free a prepared case without a measurement, or a candidate."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Leave, without an answer."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker's backend is loaded and bound to its device.  ``environment`` are the backend's own facts."""

    pid: int
    device: DeviceInfo
    evidence: Evidence
    environment: Mapping[str, Fact]
    version: int = PROTOCOL_VERSION


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker cannot serve and leaves."""

    reason: str


@dataclass(frozen=True, slots=True)
class Phase:
    """The case enters ``compile``, ``verify`` or ``measure``: the launcher starts that phase's deadline."""

    ticket: int
    name: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """The request was carried out and the case goes on."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The case is over, and freed."""

    ticket: int
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class Looked:
    """What a glance took."""

    ticket: int
    glimpse: Glimpse


@dataclass(frozen=True, slots=True)
class Failed:
    """The case raised, and is freed.  ``fatal``: this process can run nothing more on its device, and leaves."""

    ticket: int
    outcome: Outcome
    reason: str
    fatal: bool


CaseRequest = Prepare | Round | Finish | LookAt | Glance | Drop
CaseReply = Advanced | Ended | Looked | Failed
Request = Hello | CaseRequest | Stop
Reply = Ready | Refused | Phase | CaseReply
Message = Request | Reply

_KINDS: dict[str, type[Message]] = {
    kind.__name__: kind
    for kind in (
        Hello, Prepare, Round, Finish, LookAt, Glance, Drop, Stop, Ready, Refused, Phase, Advanced, Ended, Looked, Failed,
    )
}  # fmt: skip


def pack(message: Message) -> bytes:
    """Return the message as one frame.

    Raises ``ProtocolError`` when it is longer than ``MAX_FRAME_BYTES`` or holds what JSON cannot (NaN, infinity, objects).
    """
    content = {field.name: _plain(getattr(message, field.name)) for field in fields(message)}
    try:
        payload = json.dumps({"kind": type(message).__name__, **content}, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"{type(message).__name__} cannot be written as JSON: {error}") from None
    _check_length(len(payload))
    return _LENGTH.pack(len(payload)) + payload


def unpack(payload: bytes) -> Message:
    """Return the message of one frame's payload; anything malformed raises ``ProtocolError``."""
    try:
        content = json.loads(payload)
        kind = _KINDS[content.pop("kind")]
        return kind(**{name: _READERS.get(name, _same)(value) for name, value in content.items()})
    except _MALFORMED as error:
        raise ProtocolError(f"not a message of this protocol ({type(error).__name__}: {error}): {payload[:80]!r}") from None


class FrameReader:
    """Cuts a byte stream into payloads, however the bytes arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take more bytes and yield every payload they complete.  An oversize length raises before its bytes are read."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            _check_length(length)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield payload

    @property
    def incomplete(self) -> bool:
        """Whether the stream would be cut inside a frame if it ended here."""
        return bool(self._buffer)


class Connection:
    """One end of the socket pair, for the process that made this: a forked copy of it finds the connection closed."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = FrameReader()
        self._arrived: list[bytes] = []
        self._owner = os.getpid()

    def send(self, message: Message) -> None:
        """Write one message; ``ConnectionClosed`` when the peer is gone."""
        frame = pack(message)
        self._refuse_copy()
        try:
            self._sock.settimeout(None)
            self._sock.sendall(frame)
        except OSError as error:
            raise ConnectionClosed(f"the peer closed the connection ({error})") from None

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message, or ``None`` when none is complete after ``timeout_s`` seconds.

        Raises ``ConnectionClosed`` when the peer is gone, ``ProtocolError`` for bytes that are no message.
        """
        self._refuse_copy()
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._arrived:
            left_s = None if until is None else until - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            self._sock.settimeout(left_s)
            try:
                self._arrived += self._reader.feed(self._read())
            except TimeoutError:
                return None
        return unpack(self._arrived.pop(0))

    def close(self) -> None:
        self._sock.close()

    def _refuse_copy(self) -> None:
        # Two processes that both answered would have the second answer credited to whatever is asked next.
        if os.getpid() != self._owner:
            raise ConnectionClosed("the connection belongs to the process that this one was forked from")

    def _read(self) -> bytes:
        try:
            data = self._sock.recv(2**16)
        except ConnectionError as error:
            raise ConnectionClosed(f"the peer closed the connection ({error})") from None
        if not data:
            raise ConnectionClosed(f"the peer closed the connection{' inside a frame' * self._reader.incomplete}")
        return data


def _check_length(length: int) -> None:
    if length > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {length} bytes exceeds the {MAX_FRAME_BYTES} that a message may have")


def _plain(value: Any) -> Any:
    """Make a field's value JSON; what has ``to_json`` knows how."""
    if isinstance(value, MeasureSettings):
        return asdict(value)
    return value.to_json() if hasattr(value, "to_json") else value


def _same(value: Any) -> Any:
    return value


def _read_settings(data: Mapping[str, Any]) -> MeasureSettings:
    return MeasureSettings(**{**data, "deadlines": DeadlineSettings(**data["deadlines"])})


def _read_facts(data: Mapping[str, Any]) -> dict[str, Fact]:
    return {name: Fact(*fact) for name, fact in data.items()}


# How a field's JSON becomes its type again, by the field's name; all others are JSON values already.
_READERS: dict[str, Any] = {
    "settings": _read_settings,
    "case": Case.from_json,
    "device": DeviceInfo.from_json,
    "evidence": Evidence,
    "environment": _read_facts,
    "measurement": Measurement.from_json,
    "glimpse": Glimpse.from_json,
    "outcome": Outcome,
}
