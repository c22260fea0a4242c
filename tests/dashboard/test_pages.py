"""What each page shows of known results."""

import json

import pytest

from dashboard.text import plain
from suite.rows import NO_FRACTIONS
from suite.store.browsing import Browser
from tests.dashboard.builders import OLD_UID, attention, collective, decode, other_device, step
from tests.dashboard.opened import addressed, charts, labels, opened, table, turn_to, words
from tests.report.builders import RUN, UID, device, failed, result, run_info
from tests.report.stores import write_store
from tests.report.test_overlay import CLOCKED


def figure(app, number=0):
    return json.loads(charts(app)[number].proto.spec)


def traces(app, meta="points", number=0):
    return [trace for trace in figure(app, number)["data"] if trace.get("meta") == meta]


def store_of(tmp_path, *rows, **fields):
    write_store(tmp_path / "s.db", rows, info=run_info(**fields))
    return tmp_path / "s.db"


def test_the_overview_has_the_best_of_each_device_in_each_format(monkeypatch, two_stores):
    app = opened(monkeypatch, *two_stores)
    devices = app.dataframe[0].value
    best = {(line["Device"], line["Job"], line["Format"]): line for line in devices.to_dict("records")}
    assert best["Testium T1", "gemm", "bf16"]["Of spec"] == 86.0  # shown as 86.0 %
    assert best["Testium T0", "gemm", "bf16"]["Of spec"] == 40.0
    assert best["Testium T0", "gemm", "fp8_e4m3"]["Outcome"] == "unsupported"
    assert best["Testium T0, simulated", "gemm", "bf16"]["Remarks"] == "simulated"
    (cells,) = traces(app, "cells")
    assert len(cells["text"]) == len(best)
    assert not app.metric  # no cards where there is something to compare with


def test_operations_of_integers_are_no_flop(monkeypatch, tmp_path):
    write_store(tmp_path / "a.db", [result(format="int8", energy_j=0.25)], info=run_info())
    write_store(tmp_path / "b.db", [result(format="int8", energy_j=0.5)], devices=(other_device(),), info=run_info())
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db")
    assert sorted(app.dataframe[0].value["GOP/J"]) == [2 * 4096**3 / 0.5 / 1e9, 2 * 4096**3 / 0.25 / 1e9]


def test_a_single_device_has_its_roofline_and_a_card_a_format(monkeypatch, one_store):
    app = opened(monkeypatch, one_store)
    shares = {metric.label.replace("\\", ""): metric.value for metric in app.metric}
    assert (next(iter(shares)), shares["bf16"], shares["fp16"], len(shares)) == ("bf16", "86.0 %", "73.0 %", 8)
    assert len(charts(app)) == 2
    assert sum(len(trace["customdata"]) for trace in traces(app, number=1)) == len(table(app)) - 1 - 2  # calibration, failures


def test_a_card_shows_the_true_best_of_one_load_and_names_case_regime_and_marks(monkeypatch, tmp_path):
    rows = (
        result(8192, 8192, 8192, format="tf32", share=0.713, steady=False, throttle="sw_power_cap 100%"),
        result(16, 4096, 4096, format="tf32", share=0.662),
        result(format="tf32", share=0.9, contended=True),
        result(format="tf32", share=0.81, regime="cold/burst/device"),
        result(format="fp16", share=0.9, regime="warm/burst/call"),
    )
    app = opened(monkeypatch, store_of(tmp_path, *rows), job="gemm")
    assert [(metric.label, metric.value) for metric in app.metric] == [("tf32", "71.3 %"), ("fp16", "n/a")]
    for expected in (
        "gemm 8192x8192x8192, compute bound",
        "cold/sustained/device, not steady, throttled: sw_power_cap 100 %",
        "best of 1 sustained; passed over: 1 contended or not resolved, 1 not bound by compute",
        "in a burst: 81.0 %, ",
        "under sustained load",
    ):
        assert expected in words(app)


def test_ceilings_are_chosen_and_stand_in_the_address(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, page="roofline", ceiling="empirical")
    assert {trace["line"].get("dash") for trace in traces(app, "roof")} <= {"dash", "dot"}
    app.multiselect(key="ceiling").select("spec").unselect("empirical").run()
    assert all("spec roof" in str(trace["hovertext"]) for trace in traces(app, "roof"))
    assert addressed(app, "ceiling") == ["spec"]


def test_the_roof_at_the_measured_clock_is_by_no_simulated_clock(monkeypatch, tmp_path):
    chip = device(spec=CLOCKED.to_json())
    rows = [result(clock_hz=1.4e9), *(result(m, clock_hz=1.9e9, evidence="simulated") for m in (2048, 8192))]
    write_store(tmp_path / "s.db", rows, devices=(chip,), info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page="roofline", ceiling="at clock")
    (roof,) = {text for trace in traces(app, "roof") for text in (trace["hovertext"],)}
    assert roof.endswith("at 1.40 GHz")


@pytest.mark.parametrize("page", ["", "roofline", "decode"])
def test_a_click_finds_the_case_of_the_store_that_was_clicked(monkeypatch, tmp_path, page):
    """Both stores begin to count their results at 1."""
    write_store(tmp_path / "a.db", [result(), decode(1024)], info=run_info())
    write_store(tmp_path / "b.db", [result(512), decode(4096)], devices=(other_device(),), info=run_info())
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page=page)
    points = [point for kind in ("points", "cells") for trace in traces(app, kind) for point in trace["customdata"]]
    for path, uid in ((tmp_path / "a.db", UID), (tmp_path / "b.db", OLD_UID)):
        row = next(row for row in Browser.open(str(path)).results() if row.job == (page or "gemm").replace("roofline", "gemm"))
        (clicked,) = (point for point in points if point == [row.run, row.case_key, 0])
        for module in ("overview", "roofline"):
            monkeypatch.setattr(f"dashboard.views.{module}.show", lambda *_, clicked=clicked, **__: clicked)
        monkeypatch.setattr("dashboard.compare_lines.show", lambda *_, clicked=clicked, **__: clicked)
        again = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page=page)
        assert addressed(again, "case") == [f"{row.run} {row.case_key}@0"]
        assert row.device_uid == uid
        assert f"{row.device}, run {row.run}" in words(again)


def test_several_devices_share_a_roofline_and_colours_are_theirs_on_every_page(monkeypatch, two_stores):
    app = opened(monkeypatch, *two_stores, page="roofline")
    keys = {trace["name"]: trace["marker"]["color"] for trace in traces(app, "key")}
    assert set(keys) == {"Testium T0", "Testium T1"}
    assert len(set(keys.values())) == 2
    app = opened(monkeypatch, *two_stores, page="roofline", device=OLD_UID, evidence="measured")
    assert {trace["marker"]["color"] for trace in traces(app)} == {"#0099fe", "#086e70"}  # of one device colours are formats'


def test_gemm_shapes_are_a_heat_map_of_what_is_chosen(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, page="gemm", fmt="fp16", value="rate")
    (cells,) = traces(app, "cells")
    browser = Browser.open(str(one_store))
    chosen = {row.case_key for row in browser.results(format="fp16") if row.regime == "cold/sustained/device"}
    assert {case for _, case, _ in cells["customdata"]} == chosen
    app.selectbox(key="under").select("warm/sustained/device").run()
    assert len(traces(app, "cells")[0]["text"]) == 1
    assert addressed(app, "under") == ["warm/sustained/device"]


def test_a_simulated_shape_takes_no_measured_ones_place(monkeypatch, tmp_path):
    path = store_of(tmp_path, result(share=0.6))
    write_store(path, [result(evidence="simulated", share=0.99)], info=run_info())
    app = opened(monkeypatch, path, page="gemm")
    assert traces(app, "cells")[0]["text"] == ["60.0 %"]
    app.selectbox(key="kind").select("simulated").run()
    assert traces(app, "cells")[0]["text"] == ["99.0 %°"]
    assert addressed(app, "kind") == ["simulated"]


def test_a_shape_in_several_formats_has_a_ladder_and_the_address_says_which_is_shown(monkeypatch, tmp_path):
    errors = {"bf16": 2e-3, "fp8_e4m3": 0.037, "mxfp4": 0.16, "int8": None}
    rows = [result(m, format=name, quantisation_error=error) for m in (4096, 1) for name, error in errors.items()]
    path = store_of(tmp_path, *rows)
    app = opened(monkeypatch, path, page="gemm")
    (box,) = (each for each in app.selectbox if each.label == "Shape and regime")
    ladder = app.dataframe[0].value
    assert list(ladder["Format"]) == list(errors)
    assert ladder["Over bf16"].tolist()[0] == 1.0
    assert {"Time (µs)", "±"} <= set(ladder.columns)
    box.select_index(1).run()
    (address,) = addressed(app, box.key)
    assert "gemm 1x4096x4096 cold/sustained/device" in address
    again = opened(monkeypatch, path, page="gemm", **{box.key: address})
    assert [each.value for each in again.selectbox if each.label == "Shape and regime"] == [address]
    assert again.dataframe[0].value["TFLOP/s, TOP/s"].max() < ladder["TFLOP/s, TOP/s"].max()


def test_attention_goes_over_lengths_one_line_an_implementation(monkeypatch, jobs_store):
    app = opened(monkeypatch, jobs_store, page="attention")
    assert {trace["name"]: list(trace["x"]) for trace in traces(app)} == {
        "library_flash": [512, 1024, 2048],
        "triton": [512, 1024, 2048],
    }


def test_attention_over_a_longer_cache_is_no_part_of_the_line_of_as_many_queries_as_keys(monkeypatch, tmp_path):
    rows = [*(attention(n) for n in (512, 1024)), *(attention(n, params={"q_len": 128}) for n in (2048, 4096))]
    app = opened(monkeypatch, store_of(tmp_path, *rows), page="attention")
    assert {trace["name"]: list(trace["x"]) for trace in traces(app)} == {
        "Testium T1": [512, 1024],
        "128 queries": [2048, 4096],
    }


def test_attention_of_another_mask_or_size_is_another_line_or_choice(monkeypatch, tmp_path):
    rows = [attention(n, params={"mask": mask}) for n in (512, 1024) for mask in ("causal", "full")]
    app = opened(monkeypatch, store_of(tmp_path, *rows, attention(2048, 4)), page="attention")
    assert labels(app)["Mask"] == ["causal", "full"]
    assert labels(app)["Batch"] == ["all", "1", "4"]
    assert [list(trace["x"]) for trace in traces(app)] == [[512, 1024], [2048]]
    app.selectbox(key="a_mask").select("full").run()
    assert [list(trace["x"]) for trace in traces(app)] == [[512, 1024]]
    assert addressed(app, "a_mask") == ["full"]


def test_grouped_products_go_over_tokens_or_groups_one_line_an_implementation(monkeypatch, jobs_store):
    app = opened(monkeypatch, jobs_store, page="grouped_gemm")
    assert not app.exception
    drawn = {trace["name"]: trace for trace in figure(app)["data"] if trace.get("meta") == "points"}
    assert sorted(drawn) == ["library, 256 groups", "library, 64 groups", "triton, 256 groups", "triton, 64 groups"]
    assert drawn["triton, 64 groups"]["x"] == [512, 2048]  # eight groups a token, each a row of its own
    assert figure(app)["layout"]["yaxis"]["title"]["text"].startswith("Rate")
    assert "weights of a group 4096x7168" in words(app)
    assert len(table(app)) == 8
    app.selectbox(key="grouped_against").select("groups").run()
    drawn = {trace["name"]: trace["x"] for trace in figure(app)["data"] if trace.get("meta") == "points"}
    assert drawn["library, 2048 tokens"] == [64, 256]


def test_a_store_without_grouped_products_says_what_measures_them(monkeypatch, one_store):
    assert "roofbench run job=grouped_gemm" in words(opened(monkeypatch, one_store, page="grouped_gemm"))


def test_decode_goes_over_context_batch_or_page_beside_what_memory_can_do(monkeypatch, jobs_store):
    app = opened(monkeypatch, jobs_store, page="decode")
    assert len(traces(app)) == 4
    assert {tuple(trace["x"]) for trace in traces(app)} == {(1024, 4096)}
    (both,) = [note["text"] for note in figure(app)["layout"]["annotations"] if note.get("name") != "key"]
    assert both == "spec 4.50 TB/s<br>measured 4.05 TB/s"  # closer than their words are high
    app.selectbox(key="against").select("page_size").run()
    assert {tuple(trace["x"]) for trace in traces(app)} == {(16, 64)}
    app.selectbox(key="d_batch").select("8").run()
    assert len(traces(app)) == 2
    assert (addressed(app, "against"), addressed(app, "d_batch")) == (["page_size"], ["8"])


def test_decode_of_several_devices_is_told_by_colour(monkeypatch, tmp_path):
    write_store(tmp_path / "a.db", [decode(n, share=0.8) for n in (1024, 4096)], info=run_info())
    write_store(tmp_path / "b.db", [decode(n, share=0.5) for n in (1024, 4096)], devices=(other_device(),), info=run_info())
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="decode")
    found = {trace["name"]: trace for trace in traces(app)}
    assert set(found) == {"Testium T0", "Testium T1"}
    assert len({trace["line"]["color"] for trace in found.values()}) == 2
    assert all(fast > slow for fast, slow in zip(found["Testium T1"]["y"], found["Testium T0"]["y"], strict=True))


def test_a_simulated_bandwidth_is_not_called_measured(monkeypatch, tmp_path):
    copy = result(
        job="calibration", params={"op": "copy", "bytes": 2**32}, compulsory_bytes=2**32, flops=0, flop_s=0.0, pipe=None,
        p50_s=2**32 / 2e12, bytes_s=2e12, interval_s=(2**32 / 2.01e12, 2**32 / 1.99e12), evidence="simulated",
    )  # fmt: skip
    path = store_of(tmp_path, copy, decode(1024, evidence="simulated"))
    notes = [note["text"] for note in figure(opened(monkeypatch, path, page="decode"))["layout"]["annotations"]]
    assert "simulated 2.00 TB/s" in notes
    assert not [note for note in notes if note.startswith("measured")]


def test_a_decode_step_shows_tokens_per_second_against_batch_or_context(monkeypatch, tmp_path):
    rows = [step(batch, length, p50_s=1e-2) for batch in (1, 8) for length in (1024, 4096)]
    app = opened(monkeypatch, store_of(tmp_path, *rows, step(1, model="llama-3.3-70b", p50_s=5e-2)), page="decode_step")
    assert labels(app)["Model"] == ["llama-3-8b", "llama-3.3-70b"]
    assert sorted(tuple(trace["y"]) for trace in traces(app)) == [(100, 800), (100, 800)]
    assert {tuple(trace["x"]) for trace in traces(app)} == {(1, 8)}
    assert "New tokens per second" in figure(app)["layout"]["yaxis"]["title"]["text"]
    app.selectbox(key="step_against").select("kv_len").run()
    assert {tuple(trace["x"]) for trace in traces(app)} == {(1024, 4096)}
    app.selectbox(key="s_model").select("llama-3.3-70b").run()
    assert [list(trace["y"]) for trace in traces(app)] == [[20]]
    assert addressed(app, "s_model") == ["llama-3.3-70b"]
    (tmp_path / "none").mkdir()
    none = store_of(tmp_path / "none", result())
    assert "roofbench run experiment=decode_step" in words(opened(monkeypatch, none, page="decode_step"))


def test_collectives_have_busbw_latency_and_where_ring_and_tree_cross(monkeypatch, jobs_store):
    app = opened(monkeypatch, jobs_store, page="collectives")
    measured = [trace for trace in figure(app)["data"] if trace.get("meta") == "measured"]
    assert {trace["yaxis"] for trace in measured} == {"y", "y2"}
    crossings = app.table[0].value
    # 10e-6 + s/100e9 meets 5e-6 + s/50e9 at 500 kB, between 2^15 and 2^19.
    assert "32 KiB to 512 KiB" in crossings["Measured"][0]


def test_fits_of_collectives_are_of_all_ranks_whichever_are_shown_and_a_refusal_says_why(monkeypatch, tmp_path):
    def time_s(size, ranks):  # of four ranks a line, of two another: no one fit explains both
        return (10e-6 + size / 100e9) if ranks == 4 else (3e-3 + size / 2e6)

    sizes = [2**power for power in range(3, 28, 4)]
    rows = [collective(size, ranks=ranks, p50_s=time_s(size, ranks)) for size in sizes for ranks in (2, 4)]
    app = opened(monkeypatch, store_of(tmp_path, *rows), page="collectives")
    assert app.selectbox(key="c_ranks").value == "4"
    said = words(app)
    assert "Fits are of all ranks that were measured, 2, 4; the figure shows 4." in said
    assert "2, 4 ranks: no fit: " in said
    fits = app.table[-1].value
    assert list(fits["Ranks"]) == [plain("2, 4")]
    assert fits["Remark"][0].startswith("no fit")


def test_a_run_has_its_progress_machine_logs_and_command(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, page="run")
    said = words(app)
    assert "standard, complete, started" in said
    assert "after the update" in said
    assert "roofbench run experiment=quick 'jobs.gemm.shapes=[512x512x512, 4096]'" in said
    assert "/home/ada" not in said
    assert "This run has stored no log" in said
    counts = {metric.label: metric.value for metric in app.metric}
    assert counts["ok"] == str(len(table_of_results(app)) - 2)
    machine = table(app)
    assert {"Device", "host", "libraries"} <= set(machine["Part"])


def table_of_results(app):
    return app.dataframe[0].value


def test_it_opens_on_the_newest_run_that_is_no_selftest(monkeypatch, tmp_path):
    write_store(tmp_path / "s.db", [result()], info=run_info(experiment="quick"))
    write_store(tmp_path / "s.db", [result()], info=run_info(experiment="selftest"))
    app = opened(monkeypatch, tmp_path / "s.db", page="run")
    assert "quick, complete" in words(app)
    app.selectbox(key="one").select_index(0).run()
    assert "selftest, complete" in words(app)
    assert addressed(app, "one") == [app.selectbox(key="one").value]


def address_of(path, **wanted):
    (row,) = Browser.open(str(path)).results(**wanted)
    return f"{row.run} {row.case_key}@{row.device_slot}", row


def test_a_link_to_a_case_shows_its_floors_marks_and_samples(monkeypatch, tmp_path):
    path = store_of(tmp_path, result(converged=False, throttle="hw_slowdown 30%"))
    name, _ = address_of(path, job="gemm")
    app = opened(monkeypatch, path, page="roofline", case=name)
    said = words(app)
    for expected in (
        "gemm 4096x4096x4096 bf16 library cold/sustained/device",
        "compute bound: the median is 1.43x the compute floor",  # 0.7 of the roof
        "not converged: the interval did not become as narrow as asked",
        "throttled: hw_slowdown 30 % (the driver held the clock down)",
        "40 samples of 1 launch each, by graph",
    ):
        assert expected in said
    floors = next(frame.value for frame in app.dataframe if "Floor" in frame.value)
    assert "4.50 TB/s, spec sheet" in set(floors["By"])
    assert len(charts(app)) == 2
    app.button(key="close-case").click().run()
    assert addressed(app, "case") == []
    assert "not converged: the interval" not in words(app)


def test_a_case_that_failed_says_why(monkeypatch, tmp_path):
    path = store_of(tmp_path, failed("incorrect", "row 3 is off by 2", m=16), result())
    name, _ = address_of(path, outcome="incorrect")
    app = opened(monkeypatch, path, case=name, page="gemm")
    assert [error.value.replace("\\", "") for error in app.error] == ["incorrect: row 3 is off by 2"]
    (cells,) = traces(app, "cells")
    assert "row 3 is off by 2" in cells["hovertext"][0]


@pytest.mark.parametrize("name", [f"{RUN} nothing@0", "gone case@0", "x", "<script> <script>@1", f"{RUN} @x"])
def test_a_link_to_no_case_is_a_word(monkeypatch, one_store, name):
    app = opened(monkeypatch, one_store, case=name, page="roofline")
    assert not app.exception
    assert len(app.warning) == (" " in name)


def test_the_catalogue_has_every_sheet_and_what_a_price_buys(monkeypatch, one_store):
    sheet = "nvidia-h200-sxm5-141gb"
    app = opened(monkeypatch, one_store, page="hardware", priced=sheet, price=f"{sheet}:2.5", sheet=sheet)
    assert not app.exception
    frame = app.dataframe[0].value
    assert len(frame) == frame["Id"].nunique() > 50
    worth = next(each.value for each in app.dataframe if "Price of an hour" in each.value).to_dict("records")
    assert worth[0]["TB moved for one unit"] == 4.8 * 3600 / 2.5
    assert worth[0]["PFLOP for one unit"] == pytest.approx(0.9895 * 3600 / 2.5)
    # Llama-3-8B in bf16 has 16.06 GB of weights, which each token reads.
    assert worth[0]["Tokens for one unit"] == pytest.approx(4.8e12 * 3600 / 2.5 / 16.06e9, rel=1e-3)
    figures = next(each.value for each in app.dataframe if "Trust" in each.value)
    assert (figures["Value"][figures["Figure"] == "bandwidth"] == "4.8 TB/s").any()
    app.number_input(key=f"price-{sheet}").set_value(5.0).run()
    assert addressed(app, "price") == [f"{sheet}:5"]
    app.query_params["price"] = f"{sheet}:2.5"  # a step back
    app.run()
    assert (addressed(app, "price"), app.number_input(key=f"price-{sheet}").value) == ([f"{sheet}:2.5"], 2.5)


def test_times_of_a_table_are_in_the_unit_that_fits_them(monkeypatch, tmp_path):
    path = store_of(tmp_path, *(result(m, p50_s=p50_s) for m, p50_s in ((1, 9e-5), (2, 3.2e-2), (3, 0.21))))
    frame = table(opened(monkeypatch, path, page="gemm"))
    assert sorted(frame["Time (ms)"]) == pytest.approx([0.09, 32, 210])
    assert "Job" not in frame
    assert UID not in frame.to_string()


def test_a_width_above_the_median_is_no_percentage_and_integers_are_no_flop(monkeypatch, tmp_path):
    wide = result(format="int8", p50_s=2e-6, interval_s=(1e-6, 2.4e-5), converged=False, count=5, fractions=NO_FRACTIONS)
    app = opened(monkeypatch, store_of(tmp_path, wide), page="gemm")
    (line,) = table(app).to_dict("records")
    assert line["±"] is None or line["±"] != line["±"]
    assert line["Marks"] == "RC"
    assert "Marks: R not resolved, C not converged." in words(app)
    assert line["Remarks"].startswith("± not resolved: 1.000 µs to 24.00 µs from 5 samples")
    assert "TOP/s" in line


def test_marks_stand_right_behind_the_name_of_the_case_whose_figures_they_put_in_doubt(monkeypatch, tmp_path):
    path = store_of(tmp_path, result(contended=True), result(512))
    for page, number in (("gemm", -1), ("run", 0), ("", -1)):
        app = opened(monkeypatch, path, page=page)
        assert list(app.dataframe[number].value)[:2] == ["Case", "Marks"]
        assert "Marks: O contended: others used the device." in words(app)
    (tmp_path / "clean").mkdir()
    assert "Marks" not in table(opened(monkeypatch, store_of(tmp_path / "clean", result()), page="gemm"))


def test_scalings_are_filtered_and_listed_apart(monkeypatch, tmp_path):
    rows = [result(format="fp8_e4m3", semantics={"scaling": name}) for name in ("tensor", "row")]
    app = opened(monkeypatch, store_of(tmp_path, *rows), page="gemm", format="fp8_e4m3 row")
    assert labels(app)["Formats"] == ["fp8_e4m3", "fp8_e4m3 row"]
    assert list(table(app)["Format"]) == ["fp8_e4m3 row"]
    turn_to(app, "")
    assert list(table(app)["Format"]) == ["fp8_e4m3 row"]
