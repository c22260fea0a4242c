"""The matrix on a terminal: 80 columns, a mark in each cell, every mark explained and every reason told."""

import pytest

from suite.show.screen import Screen
from suite.targets.facts_table import facts_lines
from suite.targets.marks import MEANINGS, mark
from suite.targets.matrix import counts, matrix_lines
from suite.targets.names import TARGETS, TRITON
from suite.targets.reasons import reasons
from suite.targets.record import Compiled
from tests.targets.cells import cell, estimated, failed
from tests.targets.scripted import facts

PLAIN = Screen(80)
LONGEST = "quantised.mxfp8_e4m3.to_bf16"


def lines(*cells: Compiled) -> list[str]:
    return list(matrix_lines(cells, PLAIN))


@pytest.mark.parametrize(
    ("compiled", "shown"),
    [
        (cell(), "N"),
        (cell(facts=facts(execution="upcast")), "U"),
        (cell(facts=facts(execution="none")), "V"),
        (cell(facts=facts(execution="")), "o"),
        (cell(facts=facts(spilled_bytes=16)), "N*"),
        (failed("unsupported", "not made for it"), "-"),
        (failed("error", "no unit"), "E"),
        (failed("timeout", "not compiled within 300 s"), "T"),
        (failed("crashed", "died of SIGABRT"), "C"),
    ],
)
def test_a_mark_says_how_a_cell_ended_and_is_explained(compiled: Compiled, shown: str) -> None:
    assert mark(compiled) == shown
    assert all(f"  {character}  {MEANINGS[character]}" in lines(compiled) for character in shown)


def test_the_whole_matrix_fits_80_columns() -> None:
    every = [cell(LONGEST if target.kind == TRITON else "xla_collective.reduce_scatter", target.name) for target in TARGETS]
    long = failed("error", "a reason of many words, " * 12, LONGEST, "gfx942")
    found = lines(*every, long)
    assert max(map(len, found)) <= 80
    assert "80 86 89 90 100 120 90a 942 950 1100 1201" in "\n".join(found)
    assert "v5e v5p v6e 7x cpu" in "\n".join(found)


def test_marks_stand_under_their_targets() -> None:
    found = lines(cell("a", "sm_80"), failed("unsupported", "why", "a", "gfx1100"), cell("b", "gfx1100"))
    head = next(line for line in found if "1100" in line)
    rows = {line[0]: line for line in found if line.startswith(("a ", "b "))}
    assert (rows["a"][head.index("80")], rows["a"][head.index("1100")]) == ("N", "-")
    assert rows["b"].rstrip()[head.index("1100") :] == "N"
    assert rows["b"][head.index("80")] == " "  # nobody asked for it


def test_a_reason_stands_once_with_where_it_holds_failures_first() -> None:
    none = "no configuration is made for {}, only for sm_80"
    cells = [failed("unsupported", none.format(target), f"k{n}", target) for target in ("gfx1100", "gfx1201") for n in range(5)]
    found = reasons([*cells, failed("crashed", "died of SIGABRT", "x", "sm_80")])
    assert [(each.where, each.why, each.is_failure) for each in found] == [
        ("x on sm_80", "died of SIGABRT", True),
        ("k0, k1, k2 and 2 more on gfx1100, gfx1201", none.format("this target"), False),
    ]


def test_text_that_is_none_of_ours_cannot_reach_the_terminal() -> None:
    assert "\x1b" not in "".join(lines(failed("error", "red \x1b[31m and \n lines")))


def test_what_was_compiled_under_variables_says_under_which() -> None:
    flags = {"jax": "0.10", "XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    found = lines(cell("xla_gemm.bf16", "cpu", versions=flags), cell("xla_gemm.bf16", "v5e", versions=flags), cell())
    told = "  xla_gemm.bf16 on cpu, v5e: compiled under"
    assert [line for line in found if "compiled" in line] == [told]
    assert found[found.index(told) + 1] == "    XLA_FLAGS=--xla_cpu_enable_fast_math=true"
    assert not [line for line in lines(cell()) if "compiled" in line]


def test_cells_are_counted_by_how_they_ended() -> None:
    assert counts([cell(), cell("b"), failed("timeout", "t")]) == "2 ok, 1 timeout"


def test_the_facts_of_few_cells_are_told() -> None:
    wide = Screen(None)
    gpu, tpu = cell(facts=facts(registers=155, shared_bytes=213016, warps=8)), estimated()
    head, first, second = facts_lines([gpu, tpu, failed("error", "no")], wide)
    assert head.split()[:2] == ["program", "target"]
    assert "155" in first
    assert "12.5 %" in first
    assert "registers, shared memory" in first
    assert "197 TFLOP/s, 100.0 % of roof" in second
