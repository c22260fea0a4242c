"""Stored text as terminals and tables may get it."""

from dataclasses import replace

import pytest

from suite.report.printable import REASON_LENGTH, WHOLE_LENGTH, clipped, printable
from suite.report.words import remarks
from suite.show.results import header_lines, result_table
from suite.show.screen import Screen
from tests.report.builders import device, failed, run_info

HOSTILE = "\x1b[2J\x1b]0;pwn\x07 \u202etxt.exe\u202c \x9b31m \u2066x\u2069 \x00 end"


@pytest.mark.parametrize(
    "character", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u200f", "\u202e", "\u2066", "\udc80", "\ufeff"]
)
def test_what_moves_or_turns_a_terminal_is_written_as_its_escape(character: str) -> None:
    shown = printable(f"a{character}b")
    assert shown.isprintable()
    assert shown == f"a{ascii(character)[1:-1]}b"


def test_breaks_become_spaces_and_other_letters_stay() -> None:
    assert printable("a\nb\tc\u2028d\u00a0e") == "a b c d e"
    assert printable("Größe 128×256 日本 \\x1b") == "Größe 128×256 日本 \\x1b"


def test_a_clipped_text_is_no_longer_than_allowed() -> None:
    assert clipped("x" * REASON_LENGTH) == "x" * REASON_LENGTH
    assert len(clipped("x" * (REASON_LENGTH + 1))) == REASON_LENGTH
    assert clipped("x" * 5000, WHOLE_LENGTH).endswith("x...")


def test_a_table_and_its_heading_show_hostile_text_harmless_and_short() -> None:
    row = failed("crashed", HOSTILE + "y" * 5000, implementation=HOSTILE)
    info, known = run_info(note=HOSTILE + "z" * 5000, experiment=HOSTILE), device()
    chip = replace(known, info=replace(known.info, name=HOSTILE + "n" * 5000))
    lines = [*header_lines(info, [chip], Screen()), *result_table([(1, row)], Screen()).lines(Screen())]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 5 * REASON_LENGTH
    assert "\\x1b[2J" in "".join(lines)


def test_remarks_of_reports_are_clipped() -> None:
    assert len(remarks(failed("crashed", "y" * 5000))) == REASON_LENGTH
