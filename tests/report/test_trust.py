from datetime import UTC, datetime

from suite.errors import StoreUnusable
from suite.report.document import build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.trust import distrust, distrust_lines
from suite.selftest.record import Finding, Selftest, Status
from tests.report.builders import UID, FakeReader, device, result


def of_status(status, *, backend="cuda"):
    findings = (Finding("timer", Status.OK, "fine"), Finding("flush", status, "cold cases came from the cache"))
    return Selftest(UID, "Testium T1", backend, (), datetime(2031, 5, 6, 9, tzinfo=UTC), findings)


def test_a_device_whose_latest_selftest_failed_says_so():
    told = "selftest of 2031-05-06 09:00 UTC: flush FAIL; see `roofbench selftest --last`"
    reader = FakeReader((result(),), tested=(of_status(Status.FAIL), of_status(Status.OK)))
    document = build(reader, ["latest"])
    assert document.runs[0].devices[0].distrust == told
    assert "Selftest of 2031-05-06 09:00 UTC: flush FAIL" in render_html(document)
    assert "flush FAIL" in render_markdown(document)
    assert list(distrust_lines(reader, [device().info])) == [f"cuda Testium T1: {told}"]


def test_an_older_selftest_and_that_of_another_backend_say_nothing_against_a_device():
    later_ok = FakeReader(tested=(of_status(Status.OK), of_status(Status.FAIL)))
    other = FakeReader(tested=(of_status(Status.FAIL, backend="xla"),))
    assert [distrust(reader, device().info) for reader in (later_ok, other, FakeReader())] == ["", "", ""]


def test_selftests_that_cannot_be_read_are_no_reason_to_show_nothing():
    class Damaged(FakeReader):
        def selftests(self, device_uid=None):
            raise StoreUnusable("selftest 1: not JSON")

    assert "roofbench store check" in build(Damaged((result(),)), ["latest"]).runs[0].devices[0].distrust
