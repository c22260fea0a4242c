"""Ranks without a core each: how that is told, before a run and of its results."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.backend import DeviceInfo
from suite.collectives.cores import Host, described, mark, shared_cores
from suite.collectives.marked import shared_cores_marks
from suite.commands.plan import remarks
from suite.errors import StoreUnusable
from suite.jobs.collective import CollectiveSettings
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.planned import DeviceSlot
from suite.ranks import cores as usable
from suite.ranks.places import Place, Places
from suite.rows import ResultRow
from suite.settings import RunConfig
from suite.show.results import run_lines
from suite.show.screen import Screen
from tests.report.builders import device, result, run_info

TWO_ON_ONE = Place("a", "10.0.0.1", 0, 1), Place("a", "10.0.0.1", 1, 1), Place("b", "10.0.0.2", 0, 1)


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ([Host(2, 2)], ""),
        ([Host(3, 2)], "3 ranks on 2 cores"),
        ([Host(2, 1)], "2 ranks on 1 core"),
        ([Host(8, 0)], ""),  # nobody knows
        ([Host(4, 4), Host(5, 4), Host(6, 4)], "6 ranks on 4 cores"),
        ([], ""),
    ],
)
def test_more_ranks_than_cores_share_them(hosts: list[Host], said: str) -> None:
    assert shared_cores(hosts) == said
    assert mark(described(hosts)) == (f"ranks share cores: {said}" if said else "")


def slot(backend: str = "cpu", cores: int | None = 2, index: int = 0) -> DeviceSlot:
    info = DeviceInfo(backend, index, "Two cores", f"uid{index}", 8 * 2**30, visible_units=cores)
    return DeviceSlot(index, backend, "", info)


def said_first(slots: list[DeviceSlot], **settings: Any) -> list[str]:
    asked = CollectiveSettings(ops=["all_reduce"], **settings)
    return list(remarks(RunConfig(jobs={"collective": asked}), slots))


def test_plan_and_run_name_the_worlds_that_share_cores() -> None:
    (line,) = said_first([slot()], world_sizes=[8, 2, 3])
    assert line == (
        "ranks share cores: 3 ranks on 2 cores, 8 ranks on 2 cores; they take turns, so that a time is also of waiting for a "
        "core and no figure of the link: these results are marked"
    )
    assert said_first([slot()], world_sizes=[2]) == []
    assert said_first([slot("cuda")], world_sizes=[8]) == []
    assert said_first([slot(cores=None), DeviceSlot(0, "cpu", "", None)], world_sizes=[8]) == []


def test_of_joined_ranks_it_is_said_where_they_are_known_to_be() -> None:
    assert said_first([slot(cores=1)], world_sizes=[3], joined=3) == []
    with Places("srun", "10.0.0.1", 1, "secret", TWO_ON_ONE).telling("/tmp/nothing"):
        (line,) = said_first([slot(cores=64)], world_sizes=[3], joined=3)
    assert line.startswith("ranks share cores: 2 ranks on 1 core; ")
    apart = tuple(place._replace(cores=2) for place in TWO_ON_ONE)
    with Places("srun", "10.0.0.1", 1, "secret", apart).telling("/tmp/nothing"):
        assert said_first([slot(cores=1)], world_sizes=[3], joined=3) == []


def test_a_core_has_one_name_whichever_of_its_threads_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 4, 6})
    for cpu, siblings in ((0, "0,4"), (1, "1,5"), (4, "0,4")):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{siblings}\n")
    assert usable.usable_cores(tmp_path) == {"0,4", "1,5", "6"}


def collective(ranks: int, **fields: Any) -> ResultRow:
    params = {"op": "all_reduce", "message_bytes": 8, "world_size": ranks}
    switches = {"algo": "ring", "proto": "library", "in_place": True, "transport": "host"}
    return replace(result(), job="collective", params=params, switches=switches, bound="link", **fields)


class Stored:
    """A store in which results of four ranks were stored with the mark; the first that is asked for cannot be read."""

    def __init__(self, rows: list[ResultRow]) -> None:
        self.ranks: dict[int, Any] = {row.result_id: row.params.get("world_size") for row in rows}
        self.asked: list[int] = []

    def measurement(self, result_id: int) -> Measurement:
        self.asked.append(result_id)
        if len(self.asked) == 1:
            raise StoreUnusable("its samples are damaged")
        description: Mapping[str, Any] = described([Host(self.ranks[result_id], 2)])
        return Measurement(Outcome.ERROR, "only its description is asked for", description=description)


def test_every_result_of_a_world_that_shared_cores_is_marked_in_the_table() -> None:
    rows = [collective(4), collective(4), collective(2), collective(4, p50_s=None, outcome="crashed", reason="gone"), result()]
    stored = Stored(rows)
    marks = shared_cores_marks(stored, rows)
    assert marks == {row.result_id: "ranks share cores: 4 ranks on 2 cores" for row in rows[:2]}
    assert len(stored.asked) == 3  # the damaged one, another of its world, and one of two ranks
    lines = list(run_lines(run_info(), [device()], rows, Screen(), shared_cores=marks))
    ended = [line.endswith("ranks share cores: 4 ranks on 2 cores") for line in lines if "all_reduce 8 B" in line]
    assert ended == [True, True, False, False]
    said = " ".join(lines)
    assert "with more ranks than cores they take turns" in said
    assert "take turns" not in " ".join(run_lines(run_info(), [device()], rows, Screen()))


def test_ranks_on_devices_that_compute_for_themselves_are_not_looked_up() -> None:
    row = replace(collective(4), switches={**collective(4).switches, "transport": "device_link"})
    stored = Stored([row])
    assert shared_cores_marks(stored, [row]) == {}
    assert stored.asked == []
