from hypothesis import given
from hypothesis import strategies as st

from suite.measure.samples import KEPT_AT_MOST, decode, encode, thin


@given(st.lists(st.integers(0, 2**62), max_size=300))
def test_samples_come_back_exactly(durations_ns):
    assert decode(encode(durations_ns)) == durations_ns


def test_similar_samples_are_stored_in_far_less_than_eight_bytes_each():
    durations_ns = [1_000_000 + (i * 37) % 900 for i in range(4096)]
    assert len(encode(durations_ns)) < 4 * len(durations_ns)


@given(st.integers(0, 30_000))
def test_thinning_keeps_an_even_course_and_at_most_the_limit(count):
    kept, stride = thin(range(count))
    assert len(kept) <= KEPT_AT_MOST
    assert list(kept) == list(range(0, count, stride))
