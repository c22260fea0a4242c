import re

from markdown_it import MarkdownIt

from suite.backend import Fact
from suite.report.document import build
from suite.report.markdown import render_markdown
from suite.rows import Calibration
from tests.report.builders import FakeReader, device, failed, result, run_info, sweep

EVIL = "<script>alert(1)</script> ![x](http://evil.example/p.png) | `code` **b**\n# heading [a](javascript:alert(1))"


def render(*rows, **reader):
    return render_markdown(build(FakeReader(rows, **reader), ["latest"]))


def tables(markdown):
    return re.findall(r"((?:^\|.*\|$\n?)+)", markdown, flags=re.M)


def test_every_result_is_a_line_of_the_table_with_all_its_columns():
    rows = sweep()
    (table,) = (table for table in tables(render(*rows)) if "Throughput" in table)
    head, _, *lines = table.strip().splitlines()
    assert len(lines) == len(rows)
    assert {line.count(" | ") for line in lines} == {head.count(" | ")}
    assert "needs 171 GB, 139 GB free" in table


def test_how_a_case_ended_stands_under_its_own_heading_and_never_under_bound():
    rows = [result(), failed("unsupported", "no unit", format="tf32"), result(outcome="unchecked", evidence="imported")]
    (table,) = (table for table in tables(render(*rows)) if "Throughput" in table)
    head, _, *lines = (line.strip("|\n ").split(" | ") for line in table.strip().splitlines())
    places = head.index("Outcome"), head.index("Bound")
    assert [tuple(line[place] for place in places) for line in lines] == [
        ("ok", "compute"),
        ("unsupported", "–"),
        ("unchecked", "compute"),
    ]
    (table,) = (table for table in tables(render(result())) if "Throughput" in table)
    assert "Outcome" not in table


def test_scalings_and_what_rounding_costs_are_in_the_table():
    (table,) = (each for each in tables(render(result(format="w4a16", semantics={"zero_point": True}, quantisation_error=0.11)))
                if "Throughput" in each)  # fmt: skip
    assert "Quantisation" in table
    assert r"w4a16 zero point" in table
    assert "1.1e-01" in table


def test_hostile_text_makes_no_markup():
    row = result(implementation=EVIL, params={EVIL: EVIL}, throttle=EVIL)
    info = run_info(note=EVIL, overrides=(f"note={EVIL}",), config={"a": "```\n# out"})
    html = MarkdownIt("gfm-like", {"linkify": False}).render(render(row, failed("error", EVIL), infos=(info,)))
    assert not re.search(r"<(script|img|a|strong>b)", html)
    assert html.count("<h1>") == 1


def test_the_command_and_the_configuration_are_code():
    tokens = MarkdownIt().parse(render(result()))
    fences = {token.info: token.content for token in tokens if token.type == "fence"}
    assert fences["sh"] == "roofbench run experiment=quick 'jobs.gemm.shapes=[512x512x512, 4096]'\n"
    assert fences["yaml"].startswith("# @package _global_\n")
    assert "store" not in fences["yaml"]


def test_a_run_that_is_still_calibrating_has_no_table_without_rows():
    copy = result(
        job="calibration", params={"op": "copy", "bytes": 2**32}, flops=0, flop_s=0.0, pipe=None, arithmetic_intensity=0.0
    )
    text = render(copy, base=Calibration())
    assert "No roof is known yet for what this run has measured." in text
    assert "| Roof |" not in text
    empty = render(infos=(run_info(finished=0, status="running"),))
    assert "No case has finished yet." in empty
    assert not [table for table in tables(text) + tables(empty) if table.count("\n") < 3]


def test_a_memory_roof_that_is_known_alone_is_in_the_table_of_roofs():
    rows = (result(1, hardware=None, contended=True), failed("crashed", "gone"))
    found = render(*rows, device_rows=(device(hardware=None, spec=None),))
    assert "| empirical | bf16 |" in found  # the reader's roof of arithmetic has it as its memory part
    assert "| empirical | memory |" not in found
    alone = render(failed("crashed", "gone"), device_rows=(device(hardware=None, spec=None),))
    assert "| empirical | memory |  | n/a | 4.20 TB/s | n/a |" in alone


def test_libraries_that_are_not_installed_are_one_line():
    names = ("jax", "libtpu", "nvidia-cublas")
    facts = {"python": {"torch": Fact.measured("2.11.0"), **{name: Fact.unavailable("not installed") for name in names}}}
    text = render(result(), facts=facts)
    assert "| python: not installed | jax, libtpu, nvidia-cublas | unavailable |  |" in text
    assert text.count("not installed") == 1
    assert "| python: jax |" in render(result(), facts={"python": {"jax": Fact.unavailable("not installed")}})
