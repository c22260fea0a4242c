"""Which results of two runs are compared with which, and why the others are not: none is dropped."""

import pytest

from suite.compare.comparison import Comparison, compare
from suite.compare.pairing import By, Pairing, pair
from suite.compare.repeats import Known
from suite.compare.side import Entry, Side
from suite.compare.words import uncompared
from tests.compare.builders import entry, side
from tests.report.builders import failed


def names(pairing: Pairing) -> list[tuple[str, str]]:
    """Implementation and slot of each pair."""
    return [tuple(f"{each.row.implementation}@{each.row.device_slot}" for each in both) for both in pairing.pairs]


def whys(pairing: Pairing) -> list[str]:
    return [each.why for each in pairing.uncompared]


def complete(pairing: Pairing, a: Side, b: Side) -> bool:
    """Whether each result of both runs is in a pair or listed."""
    seen = {id(each) for both in (*pairing.pairs, *((u.a, u.b) for u in pairing.uncompared)) for each in both if each}
    return seen >= {id(each) for each in (*a.entries, *b.entries)}


def lost(outcome: str, reason: str = "", **fields: object) -> Entry:
    made = entry(**fields)
    return made._replace(row=failed(outcome, reason, case_key=made.row.case_key, **fields))


def test_two_runs_of_one_device_are_joined_by_case():
    a = side(entry(512, 512, 512), entry(), entry(regime="warm/sustained/device"))
    b = side(entry(), entry(512, 512, 512))
    found = pair(a, b)
    assert (found.by, found.why) == (By.CASE, "two runs of one device")
    assert [(one.row.case_key, one.row.params) for one, _ in found.pairs] == [
        (other.row.case_key, other.row.params) for _, other in found.pairs
    ]
    assert len(found.pairs) == 2
    assert whys(found) == ["B has it in other regimes only: cold/sustained/device"]
    assert complete(found, a, b)


def test_other_devices_are_joined_by_workload_and_regime():
    a = side(entry(), entry(regime="warm/sustained/device"))
    b = side(entry(device_uid="other", backend="xla", implementation="xla"))
    found = pair(a, b)
    assert (found.by, found.why) == (By.WORKLOAD, "not the same devices on both sides")
    assert names(found) == [("library@0", "xla@0")]
    assert whys(found) == ["B has it in other regimes only: cold/sustained/device"]


def test_other_implementations_of_one_device_are_too_whatever_was_calibrated():
    calibrated = {"job": "calibration", "params": {"op": "read"}, "workload_key": "read"}
    a = side(entry(**calibrated), entry(implementation="library"))
    b = side(entry(**calibrated), entry(implementation="triton"))
    found = pair(a, b)
    assert (found.by, found.why) == (By.WORKLOAD, "the runs share 1 case of calibration and no other")
    assert names(found) == [("library@0", "library@0"), ("library@0", "triton@0")]
    apart = pair(side(entry(implementation="library")), side(entry(implementation="triton")))
    assert (apart.by, apart.why) == (By.WORKLOAD, "no case is in both runs")


def test_two_calibrations_alone_are_compared_as_the_cases_that_they_are():
    calibrated = {"job": "calibration", "params": {"op": "read"}, "workload_key": "read"}
    assert pair(side(entry(**calibrated)), side(entry(**calibrated))).by is By.CASE


def test_by_case_a_case_with_another_switch_has_no_partner_and_says_how_to_compare_it():
    a, b = side(entry(), entry(512, switches={"tf32": False})), side(entry(), entry(512, switches={"tf32": True}))
    found = pair(a, b)
    assert whys(found) == [
        "B has it with switches tf32=True: --by workload compares them",
        "A has it with switches tf32=False: --by workload compares them",
    ]
    assert names(pair(a, b, By.WORKLOAD)) == [("library@0", "library@0")] * 2
    assert pair(a, b, By.WORKLOAD).why == "as asked for"


@pytest.mark.parametrize("by", By)
def test_another_method_version_is_never_compared(by):
    a, b = side(entry(), entry(512)), side(entry(), entry(512, version=2))
    found = pair(a, b, by)
    assert len(found.pairs) == 1
    assert all("method version" in why for why in whys(found))
    assert complete(found, a, b)


def test_one_implementation_is_compared_with_each_of_several():
    a, b = side(entry()), side(entry(implementation="triton"), entry(implementation="compiled"))
    assert names(pair(a, b)) == [("library@0", "triton@0"), ("library@0", "compiled@0")]


def test_the_same_implementation_goes_first_and_is_not_used_twice():
    a, b = side(entry()), side(entry(implementation="triton"), entry())
    found = pair(a, b, By.WORKLOAD)
    assert names(found) == [("library@0", "library@0")]
    assert whys(found) == ["what A has of it is compared with another"]


def test_several_with_several_others_are_not_guessed():
    a = side(entry(implementation="naive"), entry(implementation="library"))
    b = side(entry(implementation="triton"), entry(implementation="compiled"))
    found = pair(a, b, By.WORKLOAD)
    assert found.pairs == ()
    assert whys(found)[0] == "B has 2 results of it left (triton, compiled), and which is its like is not clear"
    assert complete(found, a, b)


def told(pairing: Pairing) -> list[tuple[str, str]]:
    """Implementation of each result that was not compared, with why; each result once."""
    return [(each.row.implementation, uncompared.why) for uncompared in pairing.uncompared
            for each in (uncompared.a, uncompared.b) if each]  # fmt: skip


@pytest.mark.parametrize("by", By)
def test_what_was_not_timed_is_nobodys_partner_and_hides_nobody(by):
    """``library_math`` was in neither list: it had been joined with a ``triton`` that no CPU has, and only that was named."""
    a = side(
        entry(implementation="flash"), entry(implementation="naive"), lost("unsupported", "no GPU", implementation="triton")
    )
    b = side(entry(implementation="naive"), entry(implementation="flash"), entry(implementation="math"), run="b")
    found = pair(a, b, by)
    assert sorted(names(found)) == [("flash@0", "flash@0"), ("naive@0", "naive@0")]
    assert told(found) == [("triton", "A unsupported"), ("math", "what A has of it is compared with another")]
    assert complete(found, a, b)
    assert [reason for reason, _ in uncompared(_compared(a, b, found))] == [
        "A unsupported (no GPU)", "what A has of it is compared with another",
    ]  # fmt: skip


def _compared(a: Side, b: Side, found: Pairing) -> Comparison:
    return compare(a, b, found, ({}, {}), Known({}, {}), 0.01)


@pytest.mark.parametrize("by", By)
def test_where_the_other_run_timed_nothing_of_it_that_is_why(by):
    a = side(entry(implementation="math"))
    b = side(*(lost("unsupported", f"no {name}", implementation=name) for name in ("triton", "flash")), run="b")
    found = pair(a, b, by)
    assert told(found) == [
        ("math", "B has no time of it: triton unsupported, flash unsupported"),
        ("triton", "B unsupported"),
        ("flash", "B unsupported"),
    ]
    assert [each.is_lost for each in found.uncompared] == [True, False, False]
    assert [why for why, _ in uncompared(_compared(a, b, found))] == [
        "lost, as it is ok in A alone: B has no time of it: triton unsupported, flash unsupported",
        "B unsupported (no flash)",
        "B unsupported (no triton)",
    ]


def test_what_crashed_in_the_other_run_is_lost_though_another_was_timed_there():
    """A gate on what is lost would pass, if the other took its place."""
    a, b = side(entry()), side(lost("crashed", "signal 11"), entry(implementation="triton"), run="b")
    found = pair(a, b, By.WORKLOAD)
    assert [(each.why, each.is_lost) for each in found.uncompared] == [
        ("B crashed", True),
        ("what A has of it goes with another, which is not compared", False),
    ]


@pytest.mark.parametrize(("kind", "said"), [
    ({"evidence": "simulated"}, ("simulated, not measured", "measured, not simulated")),
    ({"version": 2}, ("by method version 2 instead of 1", "by method version 1 instead of 2")),
])  # fmt: skip
@pytest.mark.parametrize("by", By)
def test_two_implementations_of_two_kinds_are_listed_each(by, kind, said):
    found = pair(side(entry()), side(entry(implementation="triton", **kind), run="b"), by)
    assert told(found) == [
        ("library", f"B has it {said[0]}: never compared"), ("triton", f"A has it {said[1]}: never compared"),
    ]  # fmt: skip


def test_no_pairing_is_promised_that_does_not_happen():
    """Whatever is said of one run by case holds of the same two by workload."""
    switched = [entry(switches={"tf32": on}) for on in (False, True)]
    a = side(switched[0], entry(implementation="naive"), lost("unsupported", implementation="flash"), entry(512))
    b = side(switched[1], entry(implementation="triton"), entry(implementation="flash"), entry(512, switches={"x": 1}), run="b")
    by_case, by_workload = pair(a, b, By.CASE), pair(a, b, By.WORKLOAD)
    compared = {id(each) for both in by_workload.pairs for each in both}
    promised = {id(each.entry) for each in by_case.uncompared if each.why.endswith(": --by workload compares them")}
    assert len(promised) == 6
    assert promised <= compared
    assert ("flash", "A unsupported") in told(by_case)
    assert complete(by_case, a, b)
    assert complete(by_workload, a, b)


def test_by_case_it_is_said_what_another_is_compared_with_by_workload():
    a, b = side(entry(switches={"x": 1})), side(entry(switches={"x": 2}), entry(implementation="triton"), run="b")
    assert told(pair(a, b, By.CASE))[-1] == ("triton", "what A has of it is compared with another --by workload")


def test_a_case_on_several_slots_goes_with_its_chip_wherever_that_is_now():
    a = side(*(entry(device_slot=slot, device_uid=f"chip{slot}") for slot in range(3)))
    b = side(*(entry(device_slot=slot, device_uid=f"chip{2 - slot}") for slot in range(3)))
    found = pair(a, b)
    assert (found.by, found.why) == (By.CASE, "two runs of the same devices")
    assert names(found) == [("library@0", "library@2"), ("library@1", "library@1"), ("library@2", "library@0")]


def test_nodes_are_compared_slot_by_slot():
    a = side(*(entry(device_slot=slot, device_uid=f"one{slot}") for slot in range(2)))
    b = side(*(entry(device_slot=slot, device_uid=f"two{slot}", implementation="triton") for slot in range(2)))
    assert names(pair(a, b)) == [("library@0", "triton@0"), ("library@1", "triton@1")]


def test_one_device_is_compared_with_each_of_a_node():
    a = side(entry(device_uid="one"))
    b = side(*(entry(device_slot=slot, device_uid=f"two{slot}") for slot in range(3)))
    assert names(pair(a, b)) == [("library@0", f"library@{slot}") for slot in range(3)]


def test_of_a_node_it_is_compared_with_what_computes_alike():
    a = side(entry(device_uid="one"))
    others = [
        entry(device_slot=slot, device_uid=f"two{slot}", implementation=by) for slot in range(2) for by in ("library", "triton")
    ]
    b = side(*others)
    found = pair(a, b)
    assert names(found) == [("library@0", "library@0"), ("library@0", "library@1")]
    assert whys(found) == ["what A has of it is compared with another"] * 2
    assert complete(found, a, b)


@pytest.mark.parametrize(
    ("a", "b", "why", "is_lost"),
    [
        (entry(), lost("crashed", "signal 11"), "B crashed", True),
        (lost("out_of_memory"), entry(), "A out of memory", False),
        (lost("unsupported"), lost("unsupported"), "both unsupported", False),
        (lost("timeout"), lost("incorrect"), "A timeout, B incorrect", False),
        (entry(), entry(evidence="simulated"), "A is measured, B simulated", False),
        (entry(evidence="imported"), entry(), "A is imported, B measured", False),
        (
            entry(evidence="modelled"),
            entry(evidence="modelled"),
            "both are modelled: only what was timed here is compared",
            False,
        ),
        (entry(), entry(outcome="impossible"), "B impossible", True),
        (entry(), entry(p50_s=None), "B has no time", False),
    ],
)
def test_only_verified_times_of_one_kind_are_compared(a, b, why, is_lost):
    found = pair(side(a), side(b))
    assert found.pairs == ()
    assert [(each.why, each.is_lost) for each in found.uncompared] == [(why, is_lost)]


def test_simulated_is_compared_with_simulated():
    simulated = entry(evidence="simulated")
    assert len(pair(side(simulated), side(entry(evidence="simulated"))).pairs) == 1


def test_what_only_one_run_has_is_listed_and_lost_where_the_first_had_it():
    found = pair(side(entry(), entry(512)), side(entry(), entry(1024)))
    assert [(each.why, each.is_lost) for each in found.uncompared] == [("not in B", True), ("not in A", False)]


def test_no_result_is_dropped_of_a_thousand_of_which_half_have_no_partner():
    a = side(*(entry(8 * size) for size in range(1, 501)))
    b = side(*(entry(8 * size, implementation="triton") for size in range(1, 501)), entry(8))
    found = pair(a, b, By.CASE)
    assert len(found.pairs) == 1
    assert len(found.uncompared) == 999
    assert complete(found, a, b)


def test_a_run_without_results_is_one_of_the_same_device_and_is_called_empty():
    a, b = side(entry()), side(run="b")
    for one, other, why in ((a, b, "B has no results"), (b, a, "A has no results"), (b, b, "A and B have no results")):
        found = pair(one, other)
        assert (found.by, found.why, found.pairs) == (By.CASE, why, ())
    assert b.chips == a.chips


def test_a_calibration_that_was_taken_as_it_is_is_not_lost():
    calibrated = entry(job="calibration", params={"op": "read"}, workload_key="read")
    found = pair(side(calibrated, entry()), side(entry(), run="b"))
    assert [(each.why, each.is_lost) for each in found.uncompared] == [("B measured no calibration of its own", False)]
    failed_there = calibrated._replace(row=failed("crashed", "signal 9", case_key=calibrated.row.case_key, job="calibration"))
    assert [each.is_lost for each in pair(side(calibrated), side(failed_there, run="b")).uncompared] == [True]


@pytest.mark.parametrize("by", By)
def test_what_was_not_timed_is_nobodys_partner_and_each_result_has_its_own_reason(by):
    a = side(entry(), entry(implementation="naive"), lost("unsupported", implementation="triton"))
    b = side(entry(), entry(implementation="naive"), entry(implementation="library_math"))
    found = pair(a, b, by)
    assert names(found) == [("library@0", "library@0"), ("naive@0", "naive@0")]
    assert {(each.a or each.b).row.implementation: each.why for each in found.uncompared} == {
        "triton": "A unsupported",
        "library_math": "what A has of it is compared with another",
    }
    assert complete(found, a, b)
