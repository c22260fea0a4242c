"""What pages open with: something that is there, unless a link asks for what is not."""

import pytest

from suite.rows import NO_FRACTIONS
from tests.dashboard.builders import attention, decode
from tests.dashboard.opened import addressed, opened, turn_to, words
from tests.dashboard.test_pages import store_of, traces
from tests.report.builders import failed, result

EMPTY = "None of these results has"
WARM = "warm/sustained/device"


@pytest.fixture
def cpu(tmp_path):
    """A CPU's: memory bounds what is cold in bf16, and no sheet has its bandwidth."""
    rows = [result(m, fractions=NO_FRACTIONS, bound="memory") for m in (64, 512)]
    rows += [result(m, regime=WARM, format=name, share=0.3) for m in (64, 512, 4096) for name in ("fp32", "fp16")]
    return store_of(tmp_path, *rows)


def test_products_open_with_a_format_and_a_regime_that_have_the_value(monkeypatch, cpu):
    app = opened(monkeypatch, cpu, page="gemm")
    assert EMPTY not in words(app)
    assert app.selectbox(key="value").value == "of spec"
    assert app.selectbox(key="fmt").value == "fp16"  # as many as fp32, and before it
    assert len(traces(app, "cells")[0]["text"]) == 3
    assert addressed(app, "fmt") == addressed(app, "value") == []


def test_a_link_that_asks_for_what_nothing_has_says_so(monkeypatch, cpu):
    app = opened(monkeypatch, cpu, page="gemm", fmt="bf16", value="of spec")
    assert EMPTY in words(app)
    assert addressed(app, "fmt") == ["bf16"]


def test_a_link_that_names_a_format_alone_opens_with_a_value_that_it_has(monkeypatch, cpu):
    app = opened(monkeypatch, cpu, page="gemm", fmt="bf16")
    assert EMPTY not in words(app)
    assert app.selectbox(key="fmt").value == "bf16"
    assert app.selectbox(key="value").value == "empirical"  # the first of the others that it has


def test_a_default_follows_what_is_there_and_a_choice_does_not(monkeypatch, cpu):
    app = opened(monkeypatch, cpu, page="gemm")
    app.selectbox(key="value").select("rate").run()
    assert app.selectbox(key="fmt").value == "bf16"  # which has rates, and comes first
    app.selectbox(key="fmt").select("fp32").run()
    app.selectbox(key="value").select("of spec").run()
    assert app.selectbox(key="fmt").value == "fp32"
    app.selectbox(key="fmt").select("bf16").run()
    assert EMPTY in words(app)


def test_a_default_of_one_page_is_no_choice_on_another(monkeypatch, tmp_path):
    path = store_of(tmp_path, result(), attention(512, fractions=NO_FRACTIONS), attention(1024, fractions=NO_FRACTIONS))
    app = opened(monkeypatch, path, page="gemm")
    assert app.selectbox(key="value").value == "of spec"
    turn_to(app, "attention")
    assert app.selectbox(key="value").value == "rate"
    assert EMPTY not in words(app)


def test_lines_open_with_a_setting_whose_cases_have_ended_well(monkeypatch, tmp_path):
    """Most lengths were refused with a full mask."""
    refused = [failed("unsupported", "no mask", **shape(attention(n, params={"mask": "full"}))) for n in (512, 1024, 2048)]
    path = store_of(tmp_path, *refused, attention(512), attention(1024))
    app = opened(monkeypatch, path, page="attention")
    assert app.selectbox(key="a_mask").value == "causal"
    assert len(traces(app)) == 1
    app = opened(monkeypatch, path, page="attention", a_mask="full")
    assert EMPTY in words(app)


def shape(row):
    return {"job": row.job, "params": row.params}


def test_decoding_opens_with_a_time_where_no_bandwidth_is_known(monkeypatch, tmp_path):
    path = store_of(tmp_path, *(decode(n, bytes_s=0.0, compulsory_bytes=0, fractions=NO_FRACTIONS) for n in (1024, 4096)))
    app = opened(monkeypatch, path, page="decode")
    assert app.selectbox(key="value").value == "time"
    assert EMPTY not in words(app)


def test_the_overview_opens_with_a_share_that_some_device_has(monkeypatch, tmp_path):
    path = store_of(tmp_path, result(fractions=NO_FRACTIONS._replace(at_clock=0.5)))
    assert opened(monkeypatch, path).selectbox(key="share").value == "at clock"
    assert opened(monkeypatch, path, share="of boost").selectbox(key="share").value == "of boost"


def test_a_peak_of_the_catalogue_is_one_that_its_makers_declare(monkeypatch, tmp_path):
    app = opened(monkeypatch, store_of(tmp_path, result()), page="hardware")
    assert app.selectbox(key="pipe").value == "bf16"
    assert app.get("plotly_chart")


def test_a_choice_of_nothing_is_a_choice(monkeypatch, tmp_path):
    """Cases without a mask are offered as ``none``, which is an empty text in the address."""
    plain = [attention(n, params={"mask": "", "direction": "forward"}) for n in (512, 1024)]
    path = store_of(tmp_path, *plain, *(attention(n) for n in (512, 1024, 2048)))
    app = opened(monkeypatch, path, page="attention")
    assert app.selectbox(key="a_mask").value == "causal"
    app.selectbox(key="a_mask").select_index(0).run()
    assert app.selectbox(key="a_mask").value == ""
    assert len(traces(app)[0]["x"]) == 2
