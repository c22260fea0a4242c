"""What a comparison asks of its sources: which stored repeatability counts, and samples in parts that are let go of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from suite.compare.noise import noise_of
from suite.compare.repeats import Known, known_repeats
from suite.compare.runs import AT_ONCE, Place, Sampled, compare_runs, looked
from suite.errors import UsageError
from suite.selftest.record import Repeatability, Selftest
from suite.selftest.usable import Standing
from tests.compare.draws import sample_set
from tests.report.builders import UID, FakeReader, result, run_info

SAMPLES = sample_set([1.0, 1.01, 0.99, 1.02, 0.98, 1.0])


@dataclass(frozen=True)
class FakeSource(FakeReader):
    """``FakeReader`` with what a comparison asks beside; notes which results' samples were asked for at once."""

    asked: list[list[int]] = field(default_factory=list)

    def environments(self, run):
        return [self.facts]

    def method_versions(self, run):
        return {row.result_id: 1 for row in self.rows}

    def sampled(self, result_ids: Sequence[int]) -> list[Sampled]:
        self.asked.append(list(result_ids))
        return [Sampled(each, SAMPLES, {"library": "x"}) for each in result_ids]


def selftest(day: int, rel: float | None, uid: str = UID, backend: str = "cuda") -> Selftest:
    found = None if rel is None else Repeatability(rel, rel, in_cycles=True, cases=9)
    return Selftest(uid, "Testium T1", backend, (), datetime(2031, 5, day, tzinfo=UTC), (), found)


def test_the_newest_repeatability_of_either_store_counts_and_one_without_a_figure_does_not():
    old, new = FakeSource(tested=(selftest(3, None), selftest(1, 0.01))), FakeSource(tested=(selftest(2, 0.02),))
    for sources in ((old, new), (new, old)):
        found, refused = known_repeats(sources, [(UID, "cuda")])
        assert {chip: each.cycles_rel for chip, each in found.items()} == {(UID, "cuda"): 0.02}
        why = "no repeatability was known (it asked for none)"
        assert refused == {(UID, "cuda"): Standing(selftest(2, 0.02), selftest(3, None), why)}


def test_a_selftest_of_another_device_or_backend_says_nothing():
    source = FakeSource(tested=(selftest(1, 0.01, backend="xla"), selftest(1, 0.01, uid="other")))
    assert known_repeats([source], [(UID, "cuda")]) == Known({}, {})


def test_samples_are_asked_for_in_parts_and_each_once():
    source = FakeSource()
    found = looked(source, [*range(AT_ONCE + 50), 7])
    assert [len(part) for part in source.asked] == [AT_ONCE, 50]
    assert len(found) == AT_ONCE + 50
    assert found[7] == (noise_of(SAMPLES), {"library": "x"}, None)


def test_only_what_is_compared_is_looked_at():
    rows = (result(512, 512, 512, run="a"), result(run="a"), result(512, 512, 512, run="b"))
    source = FakeSource(rows=rows, infos=(run_info(run="a"), run_info(run="b")))
    found = compare_runs(Place(source, "a"), Place(source, "b"))
    assert source.asked == [[rows[0].result_id], [rows[2].result_id]]
    assert len(found.cases) == len(found.uncompared) == 1


def test_a_run_and_itself_are_refused_before_anything_is_read():
    source = FakeSource(infos=(run_info(run="a"),))
    with pytest.raises(UsageError, match="run a is both A and B"):
        compare_runs(Place(source, "a"), Place(source, "a"))
