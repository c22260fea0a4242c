"""What the RAS client says, and that silence is not health."""

from suite.importers.amd_smi import listed_gpus
from suite.importers.ras import RasGroup, read_ras
from tests.importers.fixtures import text


def test_a_missing_rank_makes_a_job_unhealthy() -> None:
    report = read_ras(text("rccl/ras_degraded_text.log"))
    assert (report.library_version, report.processes, report.gpus) == ("2.28.3", 8, 8)
    assert report.groups == (RasGroup(1, 8, 7, "RUNNING", "INCOMPLETE"),)
    assert (report.missing_ranks, report.healthy) == ((6,), False)
    assert report.warnings == ("ranks 6 are missing: numbers of this job are no results",)


def test_a_whole_job_is_healthy() -> None:
    report = read_ras(text("rccl/ras_healthy.json"))
    assert (report.library_version, report.groups, report.missing_ranks) == (
        "2.28.9",
        (RasGroup(1, 8, 8, "RUNNING", "OK"),),
        (),
    )
    assert report.healthy is True


def test_a_missing_rank_in_json_is_named() -> None:
    damaged = (
        text("rccl/ras_healthy.json")
        .replace('"missing_ranks_count": 0', '"missing_ranks_count": 1')
        .replace('"rank": 5,', '"rank": 99,')
    )
    report = read_ras(damaged.replace('"ranks_count": 8', '"ranks_count": 7'))
    assert (report.missing_ranks, report.healthy) == ((5,), False)


def test_an_aborted_rank_is_not_healthy() -> None:
    damaged = text("rccl/ras_healthy.json").replace('"abort_flag": false', '"abort_flag": true', 1)
    assert read_ras(damaged).healthy is False


def test_a_closed_connection_says_nothing_about_health() -> None:
    report = read_ras(text("rccl/ras_connection_reset.log"))
    assert (report.healthy, report.groups) == (None, ())
    assert report.warnings == ("no communicator is reported: read socket: Connection reset by peer",)


def test_a_network_card_is_no_gpu() -> None:
    (gpu,) = listed_gpus(text("constructed/amd_smi_list_two_documents.json"))
    assert gpu["bdf"] == "0000:05:00.0"
