import shlex
from dataclasses import replace

import pytest

from suite.backend import Fact
from suite.errors import StoreUnusable, UsageError
from suite.hardware.figure import NOT_FOUND
from suite.report.document import build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.privacy import LEFT_OUT, Scrubber
from suite.report.reproduce import rerun_command
from suite.rows import Fractions
from tests.report.builders import ENVIRONMENT, SPEC, FakeReader, device, failed, result, run_info
from tests.report.recordings import sustained


def shares(spec):
    return Fractions(spec, None, None, None)


def test_a_report_of_nothing_is_refused():
    with pytest.raises(UsageError, match="at least one run"):
        build(FakeReader(), [])


def test_a_run_named_twice_is_reported_once():
    assert len(build(FakeReader((result(),)), ["latest", run_info().run]).runs) == 1


def test_a_text_report_reads_no_samples():
    def never(row):
        raise AssertionError("samples were read")

    (run,) = build(FakeReader((result(),), measured=never), ["latest"], with_cases=False).runs
    assert run.devices[0].cases == {}


def test_a_case_whose_samples_are_damaged_is_counted_and_the_rest_published():
    def damaged(row):
        if row.params["m"] == 1:
            raise StoreUnusable("results.db is damaged")
        return sustained(row.p50_s, 0.1)

    kept = result()
    (run,) = build(FakeReader((kept, result(1), failed("crashed", "gone")), measured=damaged), ["latest"]).runs
    assert list(run.devices[0].cases) == [kept.result_id]
    assert run.devices[0].unreadable == 1


def test_a_run_without_a_finished_case_is_titled_by_the_device_that_it_was_planned_for():
    assert build(FakeReader(()), ["latest"]).title == "Testium T1 against the roofline"
    nameless = device(info=replace(device().info, name=""))
    assert build(FakeReader((), device_rows=(nameless,)), ["latest"]).title == "A run that recorded no name of a device"


def test_a_resumed_run_on_another_chip_keeps_both_apart():
    other = device(info=device().info.__class__(**{**device().info.to_json(), "uid": "other"}))
    rows = (result(), result(device_uid="other"), result(device_uid="other"))
    (run,) = build(FakeReader(rows, device_rows=(device(), other, device())), ["latest"]).runs
    assert sorted(len(found.rows) for found in run.devices) == [1, 2]


def test_the_command_repeats_the_overrides_quoted_and_without_places():
    info = run_info(
        overrides=(
            "experiment=quick",
            "jobs.gemm.shapes=[512x512x512, 4096]",
            "note='a; rm -rf $HOME'",
            "store.url=/home/ada/x.db",
            "+store.url=y.db",
            "resume=latest",
            "hydra.run.dir=/tmp/x",
            "~experiment",
        )
    )
    words = shlex.split(rerun_command(info, Scrubber()).line)
    assert words == [
        "roofbench",
        "run",
        "experiment=quick",
        "jobs.gemm.shapes=[512x512x512, 4096]",
        "note='a; rm -rf $HOME'",
        "~experiment",
    ]


@pytest.mark.parametrize(
    ("fields", "caution"),
    [
        ({"dirty": True}, "working tree had changes"),
        ({"argv": ("roofbench", "run", "--config-dir=/home/ada/mine")}, "configuration folder of its own"),
        ({"argv": ("roofbench", "run", "--config-dir", "/home/ada/mine")}, "configuration folder of its own"),
        ({"overrides": ("hardware=/home/ada/chip.yaml",)}, "masked"),
        ({"status": "interrupted", "finished": 3}, "3 of 60 planned cases"),
    ],
)
def test_what_keeps_the_command_from_repeating_the_run_is_said(fields, caution):
    command = rerun_command(run_info(**fields), Scrubber())
    assert any(caution in text for text in command.cautions)
    assert "/home/ada" not in command.line


@pytest.mark.parametrize(
    ("rows", "planned", "counts"),
    [
        (4, 17, "4 of 17 cases verified and timed, 13 not measured"),
        (0, 17, "0 of 17 cases verified and timed, 17 not measured"),
        (4, 4, "4 of 4 cases verified and timed"),
    ],
)
def test_a_report_counts_what_was_planned(rows, planned, counts):
    """An unfinished run's read as if it were whole."""
    info = run_info(status="interrupted", planned=planned, finished=rows)
    document = build(FakeReader(tuple(result(result_id=each) for each in range(rows)), (info,)), ["latest"])
    assert document.runs[0].counts == counts
    assert counts in render_markdown(document)
    assert counts in render_html(document)


def test_a_clean_complete_run_needs_no_caution():
    assert rerun_command(run_info(), Scrubber()).cautions == ()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("/home/ada/x.db and /Users/Ada/y", "~/x.db and ~/y"),
        ("/root/x", "~/x"),
        ("/rooted/x /homes/ada", "<folder>/x <folder>/ada"),
        ("postgresql://ada:secret@db/x", "postgresql://db/x"),
        ("link 02:42:ac:11:00:02 up", "link <address> up"),
        ("lovelace-node7 crashed", "<name> crashed"),
        ("my-lovelace-node71", "my-lovelace-node71"),
        ("broken \ud800 half", "broken ? half"),
        ("cuBLAS 13.1.0.3", "cuBLAS 13.1.0.3"),
        ("driver 580.159.4.1, ROCm 6.4.1.2", "driver 580.159.4.1, ROCm 6.4.1.2"),
        ("node 10.1.2.3, 192.168.0.7 and 172.20.1.1:8080", "node <address>, <address> and <address>:8080"),
        ("fe80::1 and 2001:db8:0:1::12", "<address> and <address>"),
        ("GPU-0a1b2c3d-0000-1111-2222-333344445555,1", "<device>,1"),
        ("12:30:05 suite::measure a:b", "12:30:05 suite::measure a:b"),
    ],
)
def test_scrubbing(text, cleaned):
    assert Scrubber.of(ENVIRONMENT).text(text) == cleaned


def test_private_facts_are_withheld_not_dropped():
    facts = Scrubber.of(ENVIRONMENT).facts(ENVIRONMENT)
    assert facts["host"]["hostname"] == Fact.unavailable(LEFT_OUT)
    assert facts["host"]["kernel"].value == "Linux 6.1 built on <name>"
    assert facts["host"]["cpu"] == ENVIRONMENT["host"]["cpu"]
    assert facts["libraries"]["path"].value == "~/env/lib/libcublas.so.13"


def test_the_system_description_says_how_each_field_is_known():
    (run,) = build(FakeReader((result(),)), ["latest"]).runs
    fields = {f.name: f for device_ in run.devices for group in device_.system for f in group.fields}
    assert (fields["driver"].value, fields["driver"].status) == ("580.159", "measured")
    assert (fields["bf16 peak"].value, fields["bf16 peak"].status) == ("960 TFLOP/s", "declared")
    assert (fields["read bandwidth"].value, fields["read bandwidth"].status) == ("4.20 TB/s", "measured")
    missing = fields["maximum memory clock"]
    assert (missing.value, missing.status) == ("", "unavailable")
    assert missing.reason


def fields_of(reader):
    (run,) = build(reader, ["latest"]).runs
    return {f.name: f for each in run.devices for group in each.system for f in group.fields}


def test_peaks_of_a_device_without_a_sheet_are_derived_and_other_figures_say_that_there_is_none():
    derived = replace(SPEC, derived=True, memory=replace(SPEC.memory, bandwidth_bytes_s=NOT_FOUND))
    fields = fields_of(FakeReader((result(),), device_rows=(device(hardware=None, spec=derived.to_json()),)))
    assert fields["bf16 peak"].status == fields["spec sheet"].status == "derived"
    assert fields["memory bandwidth"].reason.startswith("this device has no spec sheet")


def test_the_peak_of_integers_is_in_operations():
    assert fields_of(FakeReader((result(format="int8"),)))["int8 peak"].value == "1.92 POP/s"


def test_figures_of_the_system_have_units_and_memory_one_unit_everywhere():
    facts = {"machine": {"total_bytes": Fact.measured(135148564480), "max_sm_clock_hz": Fact.measured(1980000000.0)}}
    info = replace(device().info, memory_bytes=150_110_000_000)
    reader = FakeReader((result(),), device_rows=(replace(device(), info=info),), facts=facts)
    (run,) = build(reader, ["latest"]).runs
    fields = {f.name: f.value for group in (*run.devices[0].system, *run.system) for f in group.fields}
    assert (fields["total"], fields["max sm clock"], fields["memory"]) == ("135 GB", "1.98 GHz", "150 GB")


@pytest.mark.parametrize(
    ("details", "name", "status", "reason"),
    [
        ({"clock_source": "cpufreq cpuinfo_max_freq", "guest": "no"}, "maximum clock", "measured", ""),
        (
            {"clock_source": "the model name", "guest": "yes"},
            "nominal clock",
            "derived",
            "by the model name; no maximum can be read here",
        ),
        ({}, "nominal clock", "derived", "no maximum can be read here"),
    ],
)
def test_a_cpu_s_clock_is_called_its_maximum_only_where_that_was_read(details, name, status, reason):
    info = replace(device().info, backend="cpu", max_clock_hz=2.6e9, details=details)
    fields = fields_of(FakeReader((result(),), device_rows=(replace(device(), info=info),)))
    assert [each for each in ("maximum clock", "nominal clock") if each in fields] == [name]
    assert (fields[name].value, fields[name].status, fields[name].reason) == ("2.60 GHz", status, reason)


def test_a_gpu_s_clock_is_its_maximum():
    info = replace(device().info, max_clock_hz=1.98e9)
    assert fields_of(FakeReader((result(),), device_rows=(replace(device(), info=info),)))["maximum clock"].value == "1.98 GHz"
