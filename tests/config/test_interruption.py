"""Ctrl-C while a configuration is composed ends the command, whatever the libraries make of it."""

import signal
from collections.abc import Iterator
from contextlib import suppress

import hydra
import pytest

from suite import cli
from suite.config.interruption import interrupted_afterwards


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """pytest's own handler is the default one, which a test must find again."""
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("command", [["plan"], ["run"], ["run", "--cfg", "job"], ["run", "-m", "seed=1,2"]])
def test_an_interruption_that_a_library_lost_is_none_of_its_errors(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half_a_node(*_: object, **__: object) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise AttributeError("'NoneType' object has no attribute '_invalidate_flags_cache'")

    monkeypatch.setattr(hydra, "compose", half_a_node)
    assert cli.main(command) == 130
    assert capsys.readouterr() == ("", "roofbench: interrupted\n")


def test_a_first_signal_waits_for_the_end_of_the_block_and_a_second_does_not() -> None:
    reached = []

    @interrupted_afterwards()
    def compose(signals: int) -> None:
        for _ in range(signals):
            signal.raise_signal(signal.SIGINT)
        reached.append(signals)

    for signals in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            compose(signals)
    assert reached == [1]


def test_a_block_within_a_block_holds_no_second_signal_back() -> None:
    reached = []

    @interrupted_afterwards()
    def within() -> None:
        for number in (1, 2):
            signal.raise_signal(signal.SIGINT)
            reached.append(number)

    with pytest.raises(KeyboardInterrupt), interrupted_afterwards():
        within()
    assert reached == [1]


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupted_afterwards():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
