"""When samples were taken: spans of calls, their bound, and what of a worker's spans is believed."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.launcher.examine import examined
from suite.measure.collected import Collected, Taken
from suite.measure.timeline import SPANS_AT_MOST, joined_spans, sample_times_s, sampling_s, span_flaws
from suite.measurement import Measurement, SampleSet, Span
from suite.outcome import Outcome
from tests.measure.stand_ins import Clock, ScriptedKernel, ScriptedSampler


def samples_with(*spans: Span, count: int = 8, stride: int = 1) -> SampleSet:
    kept = tuple(range(1000, 1000 + count))[::stride]
    return SampleSet(kept, 1, "scripted", 1e-9, count, count * 1000, 1000, stride, spans=spans)


def test_a_spans_samples_are_spread_evenly_over_it():
    samples = samples_with(Span(0, 0.0, 2.0), Span(4, 10.0, 10.4))
    assert sample_times_s(samples) == pytest.approx([0.0, 0.5, 1.0, 1.5, 10.0, 10.1, 10.2, 10.3])
    assert sampling_s(samples) == pytest.approx(2.4)


def test_thinning_leaves_every_kept_sample_its_time():
    spans = (Span(0, 0.0, 2.0), Span(4, 10.0, 10.4))
    assert sample_times_s(samples_with(*spans, stride=3)) == pytest.approx([0.0, 1.5, 10.2])


def test_a_set_from_before_spans_were_kept_has_no_times():
    assert sample_times_s(samples_with()) == []
    assert sampling_s(samples_with()) is None


def test_a_call_that_gave_nothing_leaves_no_span():
    collected, sampler = Collected(), ScriptedSampler(ScriptedKernel(), lambda i: 5, Clock())
    collected.begin_batch()
    for durations, began_s in (([], 1.0), ([5, 5], 2.0), ([], 3.0), ([5], 4.0)):
        collected.add(Taken(durations, began_s, began_s + 0.5))
    assert collected.sample_set(sampler, opened_s=0.5).spans == (Span(0, 1.5, 2.0), Span(2, 3.5, 4.0))


calls = st.lists(st.tuples(st.integers(1, 50), st.floats(0, 5), st.floats(0, 1e-3)), min_size=1, max_size=40)


@given(calls, st.integers(1, 12))
def test_joined_spans_keep_order_ends_and_the_largest_gaps(calls: list[tuple[int, float, float]], most: int):
    spans, first, at_s = [], 0, 0.0
    for count, length_s, gap_s in calls:
        spans.append(Span(first, at_s, at_s + length_s))
        first, at_s = first + count, at_s + length_s + gap_s
    joined = joined_spans(spans, most)
    assert len(joined) == min(most, len(spans))
    assert (joined[0].first, joined[0].began_s, joined[-1].ended_s) == (0, 0.0, spans[-1].ended_s)
    assert list(span_flaws(samples_with(*joined, count=first))) == []
    gaps = sorted((after.began_s - before.ended_s for before, after in pairwise(spans)), reverse=True)
    left = sorted((after.began_s - before.ended_s for before, after in pairwise(joined)), reverse=True)
    assert left == gaps[: len(joined) - 1]


def test_the_calls_of_a_thousand_rounds_become_one_span_a_round():
    rounds = [(1000.0 * index, Span(100 * index, 1000.0 * index, 1000.0 * index + 0.003)) for index in range(SPANS_AT_MOST)]
    calls = [call for at_s, first in rounds for call in (first, Span(first.first + 3, at_s + 0.003001, at_s + 0.1))]
    joined = joined_spans(calls)
    assert len(joined) == SPANS_AT_MOST
    assert [(span.first, span.began_s) for span in joined] == [(span.first, at_s) for at_s, span in rounds]


WRONG = {
    "a first that is none": (Span(-1, 0.0, 1.0),),
    "a first that is no count": (Span(0.0, 0.0, 1.0),),  # type: ignore[arg-type]
    "a time that is no number": (Span(0, 0.0, float("nan")),),
    "a time that is a text": (Span(0, "0", "1"),),  # type: ignore[arg-type]
    "not from the first sample on": (Span(1, 0.0, 1.0),),
    "beyond the last sample": (Span(0, 0.0, 1.0), Span(8, 1.0, 2.0)),
    "samples out of order": (Span(0, 0.0, 1.0), Span(4, 1.0, 2.0), Span(4, 2.0, 3.0)),
    "an end before its beginning": (Span(0, 1.0, 0.5),),
    "one within another": (Span(0, 0.0, 2.0), Span(4, 1.0, 3.0)),
    "before the window": (Span(0, -1.0, 2.0),),
    "too many": tuple(Span(index, float(index), float(index)) for index in range(SPANS_AT_MOST + 1)),
}


@pytest.mark.parametrize("spans", WRONG.values(), ids=WRONG)
def test_a_worker_whose_spans_cannot_be_ends_its_case_only(spans: tuple[Span, ...]):
    count = 8 if len(spans) < 8 else 2 * SPANS_AT_MOST
    measured = Measurement(Outcome.OK, samples=samples_with(*spans, count=count))
    ended = examined(measured)
    assert (ended.outcome, ended.samples) == (Outcome.ERROR, None)
    assert "span" in ended.reason


def test_good_spans_and_none_at_all_are_believed():
    good = Measurement(Outcome.OK, samples=samples_with(Span(0, 0.0, 1.0), Span(4, 1.0, 2.5)))
    bare = replace(good, samples=samples_with())
    assert [examined(each) for each in (good, bare)] == [good, bare]


@pytest.mark.parametrize("median_ns", [float("nan"), float("inf"), "20", True, 999.5])
def test_a_median_that_cannot_be_ends_its_case_only(median_ns: object):
    measured = Measurement(Outcome.OK, samples=replace(samples_with(), median_ns=median_ns, min_ns=1000))
    ended = examined(measured)
    assert (ended.outcome, ended.samples) == (Outcome.ERROR, None)
    assert "median_ns" in ended.reason


def test_a_median_is_carried_between_processes():
    for median_ns in (1234.5, None):
        samples = replace(samples_with(), median_ns=median_ns)
        assert SampleSet.from_json(samples.to_json()) == samples
