"""Which configuration of a table is taken, and what is said of those before it."""

from typing import NamedTuple

import pytest
import torch

from backends.triton.gemm.fitting import first_fitting, refuse_spills, told_by
from backends.triton.gemm.made import Made
from backends.triton.gemm.tuning import Refused


class Config(NamedTuple):
    label: str
    error: Exception | None = None

    def make(self) -> Made:
        if self.error is not None:
            raise self.error
        return Made((), {"made": self.label})


SPILLING, SILENT = Config("tall", Refused("spills")), Config("wide", RuntimeError(""))


def test_the_first_that_fits_is_taken_and_why_others_do_not_is_kept() -> None:
    config, made = first_fitting([SPILLING, SILENT, Config("small"), Config("last")], Config.make)
    assert config.label == "small"
    assert made.facts == {
        "made": "small",
        "chosen_by": "the first of a table that fits",
        "passed_over": {"tall": "spills", "wide": "RuntimeError"},
    }
    assert "passed_over" not in first_fitting([Config("small")], Config.make)[1].facts


def test_where_none_fits_each_reason_is_said_with_what_to_do() -> None:
    told = r"^none of 2 configurations .* device with Triton \d.* \(tall: spills; wide: RuntimeError\); take another implem"
    with pytest.raises(NotImplementedError, match=told):
        first_fitting([SPILLING, SILENT], Config.make)


def test_memory_that_gives_out_is_no_matter_of_tiles() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        first_fitting([Config("large", torch.OutOfMemoryError("no room")), Config("small")], Config.make)


def test_an_error_is_told_by_its_last_line_or_its_name() -> None:
    assert told_by(RuntimeError("first\nthe reason \n")) == "the reason"
    assert told_by(RuntimeError()) == "RuntimeError"


def test_spilled_words_refuse_a_configuration() -> None:
    refuse_spills({"spilled_words": 0})
    with pytest.raises(Refused, match=r"^spills 7 words of each thread's registers$"):
        refuse_spills({"spilled_words": 7})
