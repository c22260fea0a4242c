import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

from dashboard import data
from dashboard.text import plain
from suite.errors import StoreUnusable
from suite.rows import NO_FRACTIONS
from tests.report.builders import RUN, FakeReader, device, failed, result, run_info, sweep

APP = Path(data.__file__).with_name("app.py")
OLDER = "2030-01-01T00-00-00-old1"
EVIL = "<script>alert(1)</script> ![x](http://evil.example/p.png) :red[x] $x$ `a`"


@pytest.fixture
def page(monkeypatch):
    """Make the page over readers by store name; a name without one cannot be opened."""
    st.cache_resource.clear()

    def start(**readers):
        def open_reader(url):
            if url not in readers:
                raise StoreUnusable(f"no store {url}: {EVIL}")
            return readers[url]

        monkeypatch.setattr(data, "open_reader", open_reader)
        return AppTest.from_file(str(APP), default_timeout=30)

    return start


@pytest.fixture
def stores(monkeypatch):
    return lambda *urls: monkeypatch.setattr(data, "store_arguments", lambda: list(urls))


def two_runs():
    """The latest run has bf16 and fp16 of one chip, the one before fp32 of another."""
    rows = (
        result(format="bf16"),
        result(format="fp16", regime="warm/sustained/device"),
        failed("timeout", "over 120 s", format="fp16"),
        result(format="fp32", run=OLDER, device_uid="beef", device="Testium T0"),
    )
    older = run_info(run=OLDER, started_at="2030-01-01T00:00:00Z", note="before")
    return FakeReader(rows, infos=(run_info(), older))


class PerRun(FakeReader):
    """Devices differ by run."""

    def devices(self, run):
        if run == RUN:
            return [device()]
        return [device(info=replace(device().info, uid="beef", name="Testium T0"))]


def per_run():
    found = two_runs()
    return PerRun(found.rows, infos=found.infos)


def table(app):
    """The results, which stand last."""
    return app.dataframe[-1].value


def addressed(app, name):
    """The values of one parameter of the page's address."""
    value = app.query_params.get(name, [])
    return [value] if isinstance(value, str) else list(value)


def charts(app):
    return app.get("plotly_chart")


def words(app):
    shown = [
        *app.markdown,
        *app.caption,
        *app.info,
        *app.warning,
        *app.error,
        *app.code,
        *app.header,
        *app.subheader,
        *app.title,
    ]
    return "\n".join(element.value for element in shown).replace("\u200b", "")


def test_it_opens_on_the_latest_run_with_a_roofline_and_every_case(page, stores):
    stores("a.db")
    app = page(**{"a.db": per_run()}).run()
    assert not app.exception
    assert len(charts(app)) == 1
    assert len(table(app)) == 3
    assert addressed(app, "run") == [RUN]


def test_time_share_and_bound_come_first_and_shares_are_ratios_shown_as_percent(page, stores):
    stores("a.db")
    frame = table(page(**{"a.db": per_run()}).run())
    assert list(frame.columns)[:4] == ["Case", "Time (µs)", "Of spec", "Bound"]
    assert frame["Of spec"].max() == pytest.approx(0.7)
    assert frame["Of spec"].dtype == float


def test_a_failed_case_keeps_its_line_and_its_reason(page, stores):
    stores("a.db")
    frame = table(page(**{"a.db": per_run()}).run())
    (line,) = frame[frame["Bound"] == "timeout"].to_dict("records")
    assert line["Remarks"] == "over 120 s"
    assert line["Time (µs)"] != line["Time (µs)"]  # no time is no number, not a zero


def test_choices_narrow_the_view_and_stand_in_the_address(page, stores):
    stores("a.db")
    app = page(**{"a.db": per_run()}).run()
    app.multiselect(key="format").select("bf16").run()
    assert list(table(app)["Format"]) == ["bf16"]
    assert addressed(app, "format") == ["bf16"]
    app.multiselect(key="format").unselect("bf16").run()
    assert len(table(app)) == 3
    assert addressed(app, "format") == []


def test_an_address_restores_the_view(page, stores):
    stores("a.db")
    app = page(**{"a.db": per_run()})
    app.query_params["run"] = [RUN, OLDER]
    app.query_params["format"] = ["fp32", "bf16"]
    app.query_params["regime"] = ["cold/sustained/device"]
    app.run()
    assert sorted(table(app)["Format"]) == ["bf16", "fp32"]
    assert len(charts(app)) == 2


def test_an_address_from_another_store_is_no_error(page, stores):
    stores("a.db")
    app = page(**{"a.db": per_run()})
    app.query_params["run"] = "gone"
    app.query_params["format"] = "fp3"
    app.query_params["device"] = EVIL
    app.run()
    assert not app.exception
    assert "is in no open store" in words(app)
    assert len(table(app)) == 3


def test_one_device_of_two(page, stores):
    stores("a.db")
    app = page(**{"a.db": per_run()})
    app.query_params["run"] = [RUN, OLDER]
    app.query_params["device"] = "beef"
    app.run()
    assert [element.value for element in app.subheader] == ["Testium T0", "Results"]
    assert len(table(app)) == 1


def test_choices_that_leave_nothing_say_how_to_go_on(page, stores):
    stores("a.db")
    app = page(**{"a.db": per_run()})
    app.query_params["run"] = [RUN, OLDER]
    app.query_params["device"] = "beef"
    app.query_params["format"] = "bf16"
    app.run()
    assert "Clear a filter" in words(app)
    assert not charts(app)


def test_an_empty_store_says_what_to_run(page, stores):
    stores("a.db")
    app = page(**{"a.db": FakeReader(infos=())}).run()
    assert "No results yet" in words(app)
    assert "roofbench run experiment=quick" in words(app)


def test_a_run_without_results_yet_is_no_error(page, stores):
    stores("a.db")
    app = page(**{"a.db": FakeReader(infos=(run_info(finished=0, status="running"),))}).run()
    assert not app.exception
    assert "No results" in words(app)


def test_a_store_that_cannot_be_opened_is_named_and_the_others_are_shown(page, stores):
    stores("bad.db", "a.db")
    app = page(**{"a.db": per_run()}).run()
    assert not app.exception
    assert "no store bad.db" in words(app)
    assert len(table(app)) == 3


def test_no_store_at_all_is_a_message(page, stores):
    stores("bad.db")
    app = page().run()
    assert not app.exception
    assert "no store bad.db" in words(app)
    assert "No results yet" not in words(app)


def test_the_same_chip_in_two_stores_is_shown_under_each_stores_roofs(page, stores):
    stores("a.db", "b.db")
    rows = tuple(replace(row, run=OLDER) for row in (result(), result(m=1)))
    other = FakeReader(rows, infos=(run_info(run=OLDER, started_at="2030-01-01T00:00:00Z"),))
    app = page(**{"a.db": FakeReader((result(),)), "b.db": other})
    app.query_params["run"] = [RUN, OLDER]
    app.run()
    assert not app.exception
    assert len(charts(app)) == 2
    assert len(table(app)) == 3


def test_an_unknown_device_shows_rates_and_says_why(page, stores):
    stores("a.db")
    unknown = device(hardware=None, spec=None, match_reason="no sheet has the runtime name 'Testium T1'")
    app = page(**{"a.db": FakeReader((result(fractions=NO_FRACTIONS),), device_rows=(unknown,))}).run()
    assert not app.exception
    assert "no sheet has the runtime name" in words(app).replace("\\", "")
    assert "TFLOP/s" in app.metric[0].value
    assert app.metric[0].delta == "of spec n/a"


def test_a_card_shows_the_true_best_of_one_load_and_names_case_regime_and_marks(page, stores):
    stores("a.db")
    rows = (
        result(8192, 8192, 8192, format="tf32", share=0.713, steady=False, throttle="sw_power_cap 100%"),
        result(16, 4096, 4096, format="tf32", share=0.662),
        result(format="tf32", share=0.9, contended=True),
        result(format="tf32", share=0.81, regime="cold/burst/device"),
        result(format="fp16", share=0.9, regime="warm/burst/call"),
    )
    app = page(**{"a.db": FakeReader(rows)}).run()
    assert not app.exception
    assert [(metric.label, metric.value) for metric in app.metric] == [("tf32", "71.3 %"), ("fp16", "n/a")]
    said = words(app).replace("\\", "")
    for expected in (
        "gemm 8192x8192x8192, compute bound",
        "cold/sustained/device, not steady, throttled: sw_power_cap 100%",
        "best of 3 sustained, 1 passed over: contended or not resolved",
        "in a burst: 81.0 %, ",
        "under sustained load",
    ):
        assert expected in said


def test_times_of_a_table_are_in_the_unit_that_fits_them(page, stores):
    stores("a.db")
    rows = tuple(result(p50_s=p50_s) for p50_s in (9e-5, 3.2e-2, 0.21))
    frame = table(page(**{"a.db": FakeReader(rows)}).run())
    assert list(frame["Time (ms)"]) == pytest.approx([0.09, 32, 210])


def test_a_width_above_the_median_is_no_percentage(page, stores):
    stores("a.db")
    wide = result(p50_s=2e-6, interval_s=(1e-6, 2.4e-5), converged=False, count=5)
    (line,) = table(page(**{"a.db": FakeReader((wide,))}).run()).to_dict("records")
    assert line["± (%)"] is None or line["± (%)"] != line["± (%)"]
    assert line["Remarks"].startswith("± not resolved: 1.000 µs to 24.00 µs from 5 samples")


def test_hostile_text_is_never_markup(page, stores):
    stores("a.db")
    evil = device(info=replace(device().info, name=EVIL), match_reason=EVIL, hardware=None, spec=None)
    row = result(device=EVIL, format=EVIL, implementation=EVIL, params={EVIL: EVIL}, bound=EVIL, pipe=EVIL)
    app = page(**{"a.db": FakeReader((row,), infos=(run_info(note=EVIL),), device_rows=(evil,))}).run()
    assert not app.exception
    drawn = [*app.markdown, *app.caption, *app.header, *app.subheader, *app.title]
    texts = [element.value for element in drawn] + [metric.label for metric in app.metric]
    assert any("evil" in text for text in texts)
    assert not [text for text in texts if ":red[" in text]
    assert not re.search(r"<(script|img|a|code)", "".join(MarkdownIt().render(text) for text in texts))
    assert not [element for element in app.main if getattr(element, "allow_html", False)]


def test_new_results_appear_and_unchanged_ones_are_not_read_again(page, stores):
    stores("a.db")
    reader = Growing([result()])
    app = page(**{"a.db": reader}).run()
    app.run()
    assert reader.reads == 1
    reader.grown.append(result(m=1))
    app.run()
    assert len(table(app)) == 2
    assert reader.reads == 2


class Growing:
    """A store that a sweep is writing."""

    def __init__(self, rows):
        self.grown = rows
        self.reads = 0

    def __getattr__(self, name):
        return getattr(FakeReader(tuple(self.grown)), name)

    def runs(self):
        return [run_info(status="running", finished=len(self.grown))]

    def results(self, run):
        self.reads += 1
        return list(self.grown)


def test_a_whole_sweep_is_drawn(page, stores):
    stores("a.db")
    rows = tuple(sweep())
    app = page(**{"a.db": FakeReader(rows)}).run()
    assert not app.exception
    assert len(table(app)) == len(rows)
    assert len(app.metric) == 7


LADDER = {"bf16": 2e-3, "fp8_e4m3": 0.037, "mxfp4": 0.16, "int8": None}


def shapes():
    formats = LADDER.items()
    return tuple(result(m, format=name, quantisation_error=error) for m in (4096, 1) for name, error in formats)


def test_a_shape_in_several_formats_has_a_ladder_and_the_address_says_which_is_shown(page, stores):
    stores("a.db")
    app = page(**{"a.db": FakeReader(shapes())}).run()
    ladder, results = (frame.value for frame in app.dataframe)
    assert len(charts(app)) == 2
    assert list(ladder["Format"]) == list(LADDER)
    assert ladder["Error, normal"].tolist()[:3] == list(LADDER.values())[:3]
    assert ladder["Over bf16"].tolist()[0] == 1.0
    assert len(results) == 8
    (box,) = app.selectbox
    box.select_index(1).run()
    assert not app.exception
    address = f"{RUN} gemm 1x4096x4096 cold/sustained/device"
    assert addressed(app, box.key) == [address]
    again = page(**{"a.db": FakeReader(shapes())})
    again.query_params[box.key] = address
    again.run()
    assert again.selectbox[0].value == address
    rate = "TFLOP/s, TOP/s"
    assert again.dataframe[0].value[rate].max() < app.dataframe[1].value[rate].max()


def test_a_filter_takes_formats_off_the_ladder_until_there_is_none(page, stores):
    stores("a.db")
    app = page(**{"a.db": FakeReader(shapes())}).run()
    app.multiselect(key="format").select("bf16").select("mxfp4").run()
    assert not app.exception
    assert not app.selectbox
    assert len(app.dataframe) == 1


def test_scalings_are_filtered_and_listed_apart(page, stores):
    stores("a.db")
    rows = tuple(result(format="fp8_e4m3", semantics={"scaling": name}) for name in ("tensor", "row"))
    app = page(**{"a.db": FakeReader(rows)}).run()
    assert sorted(table(app)["Format"]) == ["fp8_e4m3", "fp8_e4m3 row"]
    assert {metric.label.replace("\\", "") for metric in app.metric} == {"fp8_e4m3", "fp8_e4m3 row"}
    app.multiselect(key="format").select("fp8_e4m3 row").run()
    assert list(table(app)["Format"]) == ["fp8_e4m3 row"]
    assert "Quantisation" not in table(app)


def test_plain_escapes_all_that_streamlit_reads():
    assert plain("a\n<b>") == "a \\<b\\>"
    assert plain(":red[x]") == "\\:red\\[x\\]"


class Damaged(FakeReader):
    """A store that opens and lists its runs, but whose results cannot be read."""

    def results(self, run):
        raise StoreUnusable(f"a.db is damaged: result 1: {EVIL}")


def test_damage_that_shows_late_is_one_line_and_no_traceback(page, stores):
    stores("a.db")
    app = page(**{"a.db": Damaged((result(),))}).run()
    assert not app.exception
    assert [error.value for error in app.error] == [plain(f"a.db is damaged: result 1: {EVIL}")]


def test_it_opens_on_the_newest_run_that_is_no_selftest_and_says_so(page, stores):
    stores("a.db")
    infos = (run_info(experiment="selftest"), run_info(run=OLDER, started_at="2030-01-01T00:00:00Z"))
    app = page(**{"a.db": FakeReader((result(), result(run=OLDER, format="fp16")), infos=infos)}).run()
    assert list(table(app)["Format"]) == ["fp16"]
    assert addressed(app, "run") == [OLDER]
    assert "newest run that is no pass of a selftest" in words(app)


def test_a_store_of_selftests_alone_opens_on_the_newest(page, stores):
    stores("a.db")
    app = page(**{"a.db": FakeReader((result(),), infos=(run_info(experiment="selftest"),))}).run()
    assert addressed(app, "run") == [RUN]
    assert "newest run that is no pass" not in words(app)


def test_a_card_carries_every_mark_and_integers_are_no_flop(page, stores):
    stores("a.db")
    row = result(format="int8", interval_s=None, count=1, execution="emulated")
    app = page(**{"a.db": FakeReader((row,))}).run()
    assert "cold/sustained/device, one sample: no interval, emulated" in words(app).replace("\\", "")
    assert "TOP/s" in table(app).columns


def test_the_column_of_cases_is_as_wide_as_the_longest_and_leaves_a_telephone_room_for_another(page, stores):
    def width(*rows):
        st.cache_resource.clear()
        stores("a.db")
        app = page(**{"a.db": FakeReader(rows)}).run()
        return json.loads(app.dataframe[-1].proto.columns)["Case"]["width"]

    short, long = width(result(1, 8, 8)), width(result(16384, 16384, 16384))
    assert short < long == 20 + round(6.7 * len("gemm 16384x16384x16384"))
    assert width(result(), result(params={"op": "copy" * 30})) == 250
