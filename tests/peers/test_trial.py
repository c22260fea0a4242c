"""A kernel that never ends, or takes its process with it, is told apart from one that fails, and the next one is tried."""

import os
import time
from functools import partial

from tests.peers.trial import Trial


def ends_with(reason: str) -> str:
    return reason


def sleeps() -> str:
    time.sleep(600)
    return ""


def dies() -> str:
    os._exit(3)


def test_what_ends_says_why_it_failed_or_nothing() -> None:
    with Trial() as trial:
        assert [trial.reason(partial(ends_with, said)) for said in ("", "too few registers")] == ["", "too few registers"]


def test_what_does_not_end_is_killed_and_the_next_is_tried() -> None:
    with Trial(ends_s=5.0) as trial:
        assert trial.reason(sleeps) == "it had not ended after 5 s, and was killed"
        assert trial.reason(partial(ends_with, "")) == ""


def test_what_kills_its_process_is_no_end_of_the_rest() -> None:
    with Trial() as trial:
        assert trial.reason(dies) == "the process that tried it died"
        assert trial.reason(partial(ends_with, "")) == ""
