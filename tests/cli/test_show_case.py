"""One case in a terminal: its number, floors, samples and the device over time, checks and surroundings."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from suite.backend import Channel, Fact
from suite.cli import main
from suite.hardware.cpu import NOMINAL
from suite.measure.others import LISTED_ELSEWHERE
from suite.measurement import Check, Measurement, SampleSet
from suite.outcome import Outcome
from suite.report.floors import Ground
from suite.report.panels import panel
from suite.report.timeline import timeline
from suite.roofline import launch_times_s
from suite.rows import ResultDetail
from suite.show.detail import detail_lines
from suite.show.screen import Screen
from suite.show.timeline import Limits, timeline_lines
from suite.store.queries import Reader
from tests.report.builders import SPEC, FakeReader, device, failed, result
from tests.report.recordings import alternating, burst, sustained, untimed
from tests.report.stores import write_store

PLAIN = Screen()
GROUND = Ground.of(panel(FakeReader(()), device(), []), result())
ASCII = Screen(80, blocks=False)
LIMITS = Limits(700.0, "")
RECORDED = {
    "sustained": sustained(1.6e-3),
    "burst": burst(1.4e-3),
    "alternating": alternating(4e-4),
    "untimed": untimed(burst(1.4e-3)),
    "few": sustained(0.04, 0.1),
}


def detail(**fields: object) -> ResultDetail:
    durations = tuple(1000 + index % 7 for index in range(200))
    samples = SampleSet(durations, 4, "graph", 1e-9, 400, 400_000, 1000, stride=2, boundaries=(0, 100), details={"sets": 3})
    passed = Check(True, 1e-4, 1e-3, None, 0, 0)
    given: dict[str, object] = {
        "outcome": Outcome.OK,
        "samples": samples,
        "interval_s": (2.5e-7, 2.6e-7),
        "check_before": passed,
        "check_after": replace(passed, passed=False, reason="3 of 4 tiles differ"),
        "telemetry": {
            "sm_clock": Channel("Hz", (0.0, 0.1), (1.3e9, 1.6e9)),
            "energy": Channel("J", (), (), "windows under 2 s"),
        },
        "description": {"library": "cuBLAS 13.0"},
    }
    measurement = Measurement(**{**given, **fields})  # type: ignore[arg-type]
    environment = {"python": {"torch": Fact.measured("2.13.0"), "jax": Fact.unavailable("not installed")}}
    return ResultDetail(result(), measurement, environment, "\n".join(f"line {n}" for n in range(50)))


def test_a_case_shows_its_samples_device_checks_and_surroundings() -> None:
    text = "\n".join(detail_lines(detail(), GROUND, Screen(90)))
    for expected in (
        "400 samples of 4 launches each, one of every 2 kept, in 2 stretches (bursts, or rounds between other cases), by graph",
        "compute bound: the median is 1.43x the compute floor",
        "sm clock: 1.30 GHz to 1.60 GHz in 2 readings",
        "energy: unavailable, windows under 2 s",
        "before timing: passed; error 1.00e-04 of 1.00e-03 allowed",
        "after timing: failed: 3 of 4 tiles differ;",
        "torch  2.13.0 (measured)",
        "jax    unavailable, not installed",
        "line 49",
    ):
        assert expected in text
    assert "line 29" not in text


def test_readings_and_facts_have_units_and_prefixes() -> None:
    telemetry = {
        "throttle": Channel("mask", (0.0, 0.1, 0.2), (4.0, 0.0, 4.0)),
        "pcie_tx": Channel("bytes/s", (0.0, 0.1), (1.39799e7, 1.39799e7)),
        "violation.power": Channel("s", (0.0, 0.1), (0.0, 0.452703)),
        "memory_used": Channel("bytes", (0.0,), (2.34e9,)),
    }
    facts = {
        "max_sm_clock_hz": Fact.measured(1980000000.0),
        "max_clock_khz": Fact.measured(3500000),
        "total_bytes": Fact.measured(135148564480),
        "power_limit_w": Fact.measured(700.0),
        "memory_limit_bytes": Fact.measured("no limit"),
        "swap_bytes": Fact.unavailable("not read"),
        "numa_nodes": Fact.measured(1),
    }
    shown = replace(detail(telemetry=telemetry, description={"flush_bytes": 33554432}), environment={"machine": facts})
    lines = [" ".join(line.split()) for line in detail_lines(shown, GROUND, PLAIN)]
    for expected in (
        "throttle mask: 0x0, 0x4 in 3 readings",
        "pcie tx: 14.0 MB/s in all 2 readings",
        "violation.power: 0 s to 452.7 ms in 2 readings",
        "memory used: 2.34 GB in 1 reading",
        "max_sm_clock 1.98 GHz (measured)",
        "max_clock 3.50 GHz (measured)",
        "total 135 GB (measured)",
        "power_limit 700 W (measured)",
        "memory_limit no limit (measured)",
        "swap unavailable, not read",
        "numa_nodes 1 (measured)",
        "flush 33.6 MB",
    ):
        assert expected in lines


def test_an_interval_as_wide_as_all_samples_says_that_they_say_no_more() -> None:
    shown = detail()
    times_s = launch_times_s(shown.measurement.samples)
    whole = replace(shown.row, interval_s=(min(times_s), max(times_s)))
    within = replace(shown.row, interval_s=(min(times_s), sorted(times_s)[-2] * 0.999))
    texts = ["\n".join(detail_lines(replace(shown, row=row), GROUND, PLAIN)) for row in (whole, within)]
    assert ["the whole range of the samples" in text for text in texts] == [True, False]


def test_libraries_that_are_not_there_are_one_line() -> None:
    libraries = {name: Fact.unavailable("not installed") for name in ("jax", "libtpu", "nvidia-cublas")}
    facts = {"torch": Fact.measured("2.13.0"), **libraries, "cublas": Fact.unavailable("no CUDA here")}
    lines = [" ".join(line.split()) for line in detail_lines(replace(detail(), environment={"python": facts}), GROUND, PLAIN)]
    first = lines.index("environment: python") + 1
    assert lines[first : first + 3] == [
        "torch 2.13.0 (measured)",
        "not installed jax, libtpu, nvidia-cublas",
        "cublas unavailable, no CUDA here",
    ]


def test_one_sample_and_memory_that_is_not_counted_are_said_in_words() -> None:
    lone = replace(detail(), row=result(count=1, interval_s=None))
    lines = [" ".join(line.split()) for line in detail_lines(lone, GROUND, PLAIN)]
    assert any(line.startswith("time ") and line.endswith(", one sample: no interval") for line in lines)
    assert "peak memory n/a: not counted here" in lines
    counted = [" ".join(line.split()) for line in detail_lines(detail(peak_memory_bytes=2**30), GROUND, PLAIN)]
    assert "peak memory 1.07 GB held on the device by this case" in counted


@pytest.mark.parametrize(("note", "said"), [("", "boost 64.4 %"), (NOMINAL, "boost n/a (no maximum clock can be read here)")])
def test_a_nominal_clock_gives_no_share_of_boost(note: str, said: str) -> None:
    clocks = replace(SPEC.clocks, boost_hz=replace(SPEC.clocks.boost_hz, note=note))
    ceilings = GROUND.ceilings._replace(spec=replace(SPEC, derived=True, clocks=clocks))
    text = "\n".join(detail_lines(detail(), GROUND._replace(ceilings=ceilings), PLAIN))
    assert said in text


def test_which_clock_is_counted_and_which_reported_is_said() -> None:
    both = " ".join(" ".join(figure(RECORDED["sustained"])).split())
    assert "the device clock is counted on the device, the sm clock is what the driver reports: they may differ" in both
    assert "fractions use the counted one" in both
    reported = " ".join(" ".join(detail_lines(detail(), GROUND, Screen(90))).split())
    assert "none was counted on the device, so that no fraction is at the clock" in reported
    assert "clock is" not in " ".join(figure(replace(RECORDED["sustained"], telemetry={})))


def test_a_case_says_how_it_is_scaled_and_what_rounding_costs_where_that_is_known() -> None:
    scaled = result(format="int8", semantics={"scaling": "row", "zero_point": True}, quantisation_error=0.01)
    text = "\n".join(detail_lines(replace(detail(), row=scaled), GROUND, PLAIN))
    assert text.startswith("gemm 4096x4096x4096 int8 row zero point library")
    assert "semantics  scaling=row, zero_point=True" in text
    assert re.search(r"quantisation error +0.01 of the product, from rounding the data to int8 row zero point", text)
    assert "quantisation error" not in "\n".join(detail_lines(detail(), GROUND, PLAIN))


def test_a_case_without_a_number_shows_none() -> None:
    nothing = dict.fromkeys(("samples", "interval_s", "check_before", "check_after"))
    lost = detail(outcome=Outcome.CRASHED, reason="signal 11", **nothing)
    row = failed("crashed", "signal 11")
    lines = list(detail_lines(replace(lost, row=row), GROUND, PLAIN))
    assert "  outcome    crashed: signal 11" in lines
    assert not {"result", "roof and floors", "samples", "over time", "checks"} & set(lines)


def figure(measured: Measurement, screen: Screen = ASCII, limits: Limits = LIMITS) -> list[str]:
    found = timeline(measured)
    assert found is not None
    return list(timeline_lines(found, limits, screen))


def plots(lines: list[str]) -> list[str]:
    """The drawn part of each row, without what stands left of it."""
    return [line.partition(" |")[2] for line in lines if " |" in line]


def rows_below(title: str, lines: list[str]) -> list[str]:
    """The rows of the panel under the title that begins with ``title``."""
    after = lines[next(index for index, line in enumerate(lines) if line.startswith(f"  {title}")) + 1 :]
    drawn = next(index for index, line in enumerate(after) if " |" in line)
    return plots(after[drawn : drawn + next(i for i, line in enumerate(after[drawn:]) if " |" not in line)])


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("screen", [ASCII, Screen(80), Screen(60), Screen(200)], ids=str)
def test_the_figure_is_no_wider_than_the_screen_and_its_panels_share_one_axis(name: str, screen: Screen) -> None:
    lines = figure(RECORDED[name], screen)
    assert max(map(len, lines)) <= (screen.width or 0)
    assert len({line.index(" |") for line in lines if " |" in line}) <= (2 if name == "untimed" else 1)


def test_without_blocks_and_colour_only_ascii_is_drawn() -> None:
    text = "\n".join(line for name in RECORDED for line in figure(RECORDED[name]))
    assert not set("".join(plots(text.splitlines()))) - set(" *:^_-'#.+/|")
    assert "\033" not in text


def test_the_windows_of_a_burst_stand_side_by_side_with_the_idle_time_cut_and_marked() -> None:
    lines = figure(RECORDED["burst"])
    assert "  5 windows; the idle time between them is cut short (//)" in lines
    line, labels = next((line, lines[index + 1]) for index, line in enumerate(lines) if "|+-" in line)
    assert len(re.findall(r"/+", line)) == 4
    assert labels.split() == ["s", "0", "1.02", "2.04", "3.06", "4.08"]
    broken = line.partition("|")[2]
    for plot in plots(lines):
        assert not {plot.ljust(len(broken))[column] for column, each in enumerate(broken) if each == "/"} - {" ", "/"}


def test_a_clock_that_falls_goes_from_the_top_row_to_the_lowest() -> None:
    top, _, low = rows_below("sm clock: 1.41 GHz to 1.75 GHz (as the driver reports it)", figure(RECORDED["sustained"]))
    assert not top[30:].strip()
    assert not low[:10].strip()


def test_one_reading_of_the_devices_own_clock_is_said_and_the_drivers_course_is_drawn() -> None:
    lines = figure(RECORDED["sustained"])
    assert "  device clock: 1.38 GHz in 1 reading (counted by the device)" in lines
    several = figure(RECORDED["burst"])
    assert any(line.startswith("  device clock: 1.46 GHz to 1.48 GHz") for line in several)
    assert not any(line.startswith("  sm clock") for line in several)


def test_a_window_of_the_devices_own_clock_is_drawn_as_far_as_it_was_counted() -> None:
    channels = {"device_clock": Channel("Hz", tuple(0.02 + 1.02 * n - 1e-4 for n in range(5)), (1e9, 2e9, 1e9, 2e9, 1e9))}
    top, _, low, *_ = rows_below("device clock", figure(replace(RECORDED["burst"], telemetry=channels)))
    width = len(low.split()[0])
    assert width > 10
    assert low.split() == ["_" * width] * 3
    assert [len(part) for part in top.split()] == pytest.approx([width] * 2, abs=1)


def test_power_beside_a_burst_is_said_to_lag() -> None:
    lines = figure(RECORDED["sustained"], limits=Limits(700.0, "", burst=True))
    assert "of before" in " ".join(" ".join(lines).split())


def test_power_is_drawn_against_its_limit_and_without_one_says_so() -> None:
    assert any("power: 124 W to 672 W of 700 W allowed" in line for line in figure(RECORDED["sustained"]))
    lines = figure(RECORDED["sustained"], limits=Limits(None, ""))
    assert any("power: 124 W to 672 W; its limit is not known" in line for line in lines)


def test_the_strip_shows_when_a_reason_was_set_and_the_others_are_named() -> None:
    lines = figure(RECORDED["sustained"])
    (strip,) = [line for line in lines if line.startswith("  sw power cap |")]
    assert re.fullmatch(r"\.+#+", strip.partition("|")[2])
    text = " ".join(line.strip() for line in lines)
    assert "by share of readings: sw power cap 37.0 %; sw power cap counts as throttling only where the driver's" in text
    assert "throttle reasons never set: hw slowdown, sync boost" in text
    named = " ".join(line.strip() for line in figure(RECORDED["sustained"], limits=Limits(700.0, "sw_power_cap 37%")))
    assert "counts as throttling only" not in named


def test_samples_of_an_older_store_come_in_their_order_above_the_readings() -> None:
    lines = figure(RECORDED["untimed"])
    text = " ".join(line.strip() for line in lines)
    assert "in the order they were taken, this store does not say when" in text
    assert [line for line in lines if line.startswith("  power")]
    assert len([line for line in lines if "|+-" in line]) == 1


def test_a_column_above_the_scale_is_marked_and_the_slowest_sample_named() -> None:
    durations = (*(1_000_000 + index % 7 * 1000 for index in range(4000)), 9_000_000)
    samples = replace(
        RECORDED["sustained"].samples,
        durations_ns=durations,
        count=4001,
        stride=1,
        boundaries=(0,),
        spans=(),  # type: ignore[type-var]
    )
    lines = figure(replace(RECORDED["sustained"], samples=samples, telemetry={}))
    assert "^ above the scale, slowest 9.000 ms" in " ".join(line.strip() for line in lines)
    assert sum(plot.count("^") for plot in plots(lines)) <= 1
    assert sum("*" in plot for plot in plots(lines)) > 0


def test_what_is_drawn_of_hostile_names_moves_no_terminal() -> None:
    telemetry = {"throttle.\x1b[2Jevil" + "y" * 300: Channel("", (0.0, 0.5), (1.0, 0.0))}
    lines = figure(replace(RECORDED["sustained"], telemetry=telemetry))
    assert all(line.isprintable() for line in lines)
    assert max(len(line.partition(" |")[0]) for line in lines if " |" in line) < 30


def test_the_command_finds_the_roof_of_a_stored_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = result(8192, 8192, 8192)
    run = write_store(tmp_path / "roofbench.db", [row], measured=lambda row: burst(row.p50_s or 1.0))
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        (stored,) = [each for each in reader.results(run) if each.job == "gemm"]
    words = ["show", run, stored.case_key, "--store", str(tmp_path / "roofbench.db")]
    assert main(words) == 0
    assert "compute bound: the median is 1.43x the compute floor" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    below = json.loads(capsys.readouterr().out)["floors"]
    assert [(floor["name"], floor["applies"]) for floor in below if floor["applies"]] == [("compute", True)]


def test_what_a_kernel_says_of_itself_is_in_words_and_blanks_are_left_out() -> None:
    described = {
        "precision": {"tf32": False, "fast": True},
        "stored": {"b": {"block": [1, 32], "zero_points": None, "element": "e2m1"}},
        "emulation": "",
        "switches_without_effect": [],
        "sets": 0,
        "every_rank": list(range(128)),
    }
    lines = list(detail_lines(detail(description=described), GROUND, PLAIN))
    start = lines.index("implementation")
    assert [line.split(maxsplit=1) for line in lines[start + 1 : start + 5]] == [
        ["precision", "tf32 no, fast yes"],
        ["stored", "b (block (1, 32), element e2m1)"],
        ["sets", "0"],
        ["every_rank", "128 values, in --json"],
    ]
    assert not [line for line in lines if "emulation" in line or "switches_without_effect" in line]


@pytest.mark.parametrize(
    ("contended", "regime", "said"),
    [
        (None, "cold/burst/device", f"not known: {LISTED_ELSEWHERE}"),
        (None, "cold/sustained/device", f"not known: {LISTED_ELSEWHERE}"),
        (False, "cold/burst/device", "no"),
        (True, "cold/burst/device", "yes"),
    ],
)
def test_other_work_that_could_not_be_looked_for_is_not_said_to_be_absent(
    contended: bool | None, regime: str, said: str
) -> None:
    row = result(regime=regime, contended=contended)
    lines = list(detail_lines(replace(detail(), row=row), GROUND, PLAIN))
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("  contended")] == [said]
    assert row.to_json()["contended"] is contended


def test_on_a_cpu_a_case_that_does_not_know_of_other_work_was_too_short() -> None:
    row = result(backend="cpu", contended=None)
    cpu = replace(device(), info=replace(device().info, backend="cpu"))
    ground = Ground.of(panel(FakeReader(()), cpu, []), row)
    lines = list(detail_lines(replace(detail(), row=row), ground, PLAIN))
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("  contended")] == [
        "not known: it was sampled for under 0.2 s, too short to count the work of others"
    ]


def test_sampling_without_a_break_is_one_stretch_and_no_batch() -> None:
    text = "\n".join(detail_lines(detail(samples=replace(detail().measurement.samples, boundaries=(0,))), GROUND, PLAIN))
    assert "in one stretch, by graph" in text
    assert "batch" not in text
