"""Frames survive any way that bytes arrive; anything else than a message is an error that says so."""

import json
import math
import socket
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite import protocol
from suite.backend import Channel, DeviceInfo, Fact
from suite.case import Case, Regime, Workload, items
from suite.measurement import Check, Measurement, SampleSet
from suite.outcome import Evidence, Outcome
from suite.protocol import (
    MAX_FRAME_BYTES,
    Advanced,
    Connection,
    ConnectionClosed,
    Drop,
    Ended,
    Failed,
    Finish,
    FrameReader,
    Hello,
    Message,
    Phase,
    Prepare,
    ProtocolError,
    Ready,
    Refused,
    Round,
    Stop,
    pack,
    unpack,
)
from suite.settings import DeadlineSettings, MeasureSettings
from tests.patience import PATIENCE_S

CASE = Case(
    Workload("gemm", "bf16", items({"m": 8, "n": 8, "k": 8, "layout": "nt"}), semantics=items({"accumulate": "fp32"})),
    "library",
    "fake",
    Regime("cold", "sustained", "device"),
    items({"reduced_precision_reduction": True}),
)
CHECK = Check(True, 1e-3, 1e-2, 2e-3, 0, 0)
MEASUREMENT = Measurement(
    Outcome.OK,
    samples=SampleSet((5, 3, 9), 2, "scripted", 1e-9, 3, 17, 3, details={"sets": 4}),
    interval_s=(1e-6, 2e-6),
    converged=True,
    steady=None,
    check_before=CHECK,
    telemetry={"power": Channel("W", (0.0, 0.5), (400.0, 401.5)), "energy": Channel("J", (), (), "none")},
    description={"kernel": "k", "tiles": [1, 2]},
    phases_s={"compile": 0.25},
)
DEVICE = DeviceInfo("fake", 0, "Fake", "u0", 2**30, isa=("avx2",), details={"a": "b"})

MESSAGES: list[Message] = [
    Hello({"faults": {"8x8x8": "abort"}}, MeasureSettings(target=0.25, deadlines=DeadlineSettings(measure_s=3.5))),
    Prepare(3, CASE, 7, 1e-3, 2**40, 4),
    Round(3, 1),
    Finish(3),
    Drop(3),
    Stop(),
    Ready(77, DEVICE, Evidence.SIMULATED, {"torch": Fact.measured("2.13"), "ecc": Fact.unavailable("not offered")}),
    Refused("no such class"),
    Phase(3, "verify"),
    Advanced(3),
    Ended(3, MEASUREMENT),
    Failed(3, Outcome.OUT_OF_MEMORY, "no room", False),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    (payload,) = FrameReader().feed(pack(message))
    assert unpack(payload) == message


@given(st.lists(st.sampled_from(MESSAGES), max_size=6), st.data())
def test_frames_survive_any_split_of_the_bytes(messages: list[Message], data: st.DataObject) -> None:
    stream = b"".join(pack(message) for message in messages)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    reader, arrived = FrameReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        arrived += [unpack(payload) for payload in reader.feed(stream[start:end])]
    assert arrived == messages
    assert not reader.incomplete


@given(st.sampled_from(MESSAGES), st.data())
def test_a_truncated_frame_yields_nothing_and_is_noticed(message: Message, data: st.DataObject) -> None:
    frame = pack(message)
    reader = FrameReader()
    assert list(reader.feed(frame[: data.draw(st.integers(1, len(frame) - 1))])) == []
    assert reader.incomplete


@given(st.integers(MAX_FRAME_BYTES + 1, 2**32 - 1))
def test_an_oversize_length_is_refused_before_its_bytes_are_read(length: int) -> None:
    with pytest.raises(ProtocolError, match=str(length)):
        list(FrameReader().feed(struct.pack("!I", length)))


def test_an_oversize_message_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_FRAME_BYTES", 1000)
    with pytest.raises(ProtocolError, match="exceeds the 1000"):
        pack(Refused("x" * 2000))


@given(st.binary(max_size=200))
def test_random_bytes_are_a_protocol_error(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack(payload)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.sampled_from(MESSAGES), st.data())
def test_a_message_with_a_field_missing_or_replaced_never_raises_anything_else(message: Message, data: st.DataObject) -> None:
    content = json.loads(pack(message)[4:])
    name = data.draw(st.sampled_from(sorted(content)))
    if data.draw(st.booleans()):
        del content[name]
    else:
        content[name] = data.draw(_json)
    try:
        unpack(json.dumps(content).encode())
    except ProtocolError:
        return


def test_unknown_kinds_and_fields_are_refused() -> None:
    for content in ({"kind": "Explode"}, {"kind": "Stop", "now": True}, {"ticket": 1}, [1, 2], "Stop", None):
        with pytest.raises(ProtocolError):
            unpack(json.dumps(content).encode())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_json_does_not_have_is_refused_by_the_sender(bad: float) -> None:
    with pytest.raises(ProtocolError, match="JSON"):
        pack(Ended(1, Measurement(Outcome.ERROR, phases_s={"compile": bad})))


def test_receive_waits_no_longer_than_told_and_keeps_what_came_so_far() -> None:
    left, right = socket.socketpair()
    with left, right:
        frame, connection = pack(Advanced(1)), Connection(left)
        right.sendall(frame[:5])
        began = time.monotonic()
        assert connection.receive(0.05) is None
        assert time.monotonic() - began < PATIENCE_S
        right.sendall(frame[5:] + pack(Advanced(2)))
        assert [connection.receive(PATIENCE_S), connection.receive(PATIENCE_S)] == [Advanced(1), Advanced(2)]


def test_a_peer_that_leaves_inside_a_frame_is_closed_and_said_so() -> None:
    left, right = socket.socketpair()
    with left:
        right.sendall(pack(Advanced(1))[:6])
        right.close()
        with pytest.raises(ConnectionClosed, match="inside a frame"):
            Connection(left).receive(PATIENCE_S)
        with pytest.raises(ConnectionClosed):
            Connection(left).send(Stop())


def test_megabytes_pass_although_the_reader_is_slow() -> None:
    left, right = socket.socketpair()
    with left, right:
        message = Refused("x" * 5_000_000)
        sender = threading.Thread(target=Connection(right).send, args=(message,))
        sender.start()
        time.sleep(0.05)
        assert Connection(left).receive(PATIENCE_S) == message
        sender.join()
