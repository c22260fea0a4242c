"""What a store already knows: a plan counts what the run does, and the store is not there before the run can be."""

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from suite import cli
from suite.backend import DeviceInfo
from suite.commands import known
from suite.commands.known import look, store_file
from suite.commands.options import store_option, store_override
from suite.config import compose
from suite.devices import resolve
from suite.errors import StoreUnusable
from suite.locks import hold
from suite.planned import DeviceSlot
from suite.rows import BaseKey
from suite.store.files import locate
from suite.store.queries import Reader
from suite.store.schema import Found
from suite.store.writer import Store
from suite.sweep import devices
from tests.cli.command import CONFIGS, FAKE
from tests.store import first_schema

MEASURED = (*FAKE, "backends.fake.target=tests.cli.strange_backends:MeasuredFake")
CALIBRATION, GEMM = 5, 2


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The store of one run, at rest."""
    path = tmp_path_factory.mktemp("calibrated") / "store.db"
    assert cli.main(["run", *MEASURED, f"store.url={path}"]) == 0
    return path.read_bytes()


@cache
def fake_slots() -> tuple[DeviceSlot, ...]:
    return tuple(resolve(compose(FAKE[2:], CONFIGS)).slots)


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert cli.main(["plan", "--json", *arguments]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def results(path: str) -> list[tuple[int, str]]:
    with Reader.open(path) as reader:
        return [(row.device_slot, row.case_key) for row in reader.results("latest")]


def test_a_plan_counts_what_the_next_run_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A device that the store has calibrated is not calibrated again, in this store and in no other."""
    store = "store.url=some where.db"
    assert len(planned(capsys, *MEASURED, store)) == CALIBRATION + GEMM
    assert cli.main(["run", *MEASURED, store]) == 0
    assert "7 cases on fake Simulated Accelerator (68.7 GB): about " in capsys.readouterr().out
    ahead = planned(capsys, *MEASURED, store)
    assert {row["job"] for row in ahead} == {"gemm"}
    assert len(planned(capsys, *MEASURED)) == CALIBRATION + GEMM
    assert cli.main(["run", *MEASURED, store]) == 0
    assert results("some where.db") == [(row["device_slot"], row["case_key"]) for row in ahead]
    assert [path.name for path in tmp_path.iterdir()] == ["some where.db"]


def test_a_run_that_goes_on_is_planned_by_what_is_left_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Also from another folder of settings: the run has its own."""
    long = ("jobs.gemm.shapes=[64,128,256,512]", "backends.fake.options.sleep_s=0.2", "store.url=deep.db")
    assert cli.main(["run", *FAKE, *long, "max_time_s=0.9"]) == 0
    said = capsys.readouterr().out
    (hint,) = (line.partition("roofbench ")[2] for line in said.splitlines() if line.startswith("to go on: "))
    done = results("deep.db")
    assert cli.main(["plan", "resume=latest", "store.url=deep.db"]) == 0
    text = capsys.readouterr().out
    assert f": {13 - len(done)} of its 13 cases are left\n" in text
    assert "max_time_s=0.9 allows 1 s at a time" in text
    left = planned(capsys, "resume=latest", "store.url=deep.db")
    assert {(row["device_slot"], row["case_key"]) for row in left}.isdisjoint(done)
    assert len(left) + len(done) == 13
    assert hint.startswith("run resume=2")
    assert hint.endswith(f"store.url={Path.cwd() / 'deep.db'}")
    assert cli.main([*hint.split(), "max_time_s=null"]) == 0
    assert len(results("deep.db")) == 13


@pytest.mark.parametrize("arguments", [("resume=latest", "seed=3"), ("resume=latest",)])
def test_a_plan_refuses_what_the_run_would(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for command in ("run", "plan"):
        assert cli.main([command, *arguments]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]


def test_a_device_that_is_held_is_said_before_there_is_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with hold(devices(fake_slots()), "another"):
        assert cli.main(["run", *FAKE]) == 1
    said = capsys.readouterr()
    assert "is held by run another" in said.err
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def kept_answers() -> list[Path]:
    return list(Path(os.environ["XDG_CACHE_HOME"]).rglob("*.json"))


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("Unstartable", "device 0 fell off the bus"),
        (
            "Exchanged",
            "fake device 0 is now Simulated Accelerator (MIG 3g.71gb, ffff), not Simulated Accelerator (simulated0) as "
            "planned: it was exchanged or partitioned anew; start again",
        ),
    ],
)
def test_a_device_that_cannot_be_opened_leaves_no_store_and_is_asked_for_anew(
    backend: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer kept of a device that has changed would refuse every further run."""
    before = kept_answers()
    assert cli.main(["run", *FAKE, f"backends.fake.target=tests.cli.strange_backends:{backend}"]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []
    assert kept_answers() == before
    with hold(devices(fake_slots())):
        pass  # the lock was let go


def test_planning_without_a_store_and_a_search_loads_no_database_no_launcher_and_no_search(tmp_path: Path) -> None:
    """The empty file is none either: it is what a test of a disk leaves.  A probe uses the reaper."""
    (tmp_path / "empty.db").touch()
    code = (
        "import sys; from suite.cli import main; main(sys.argv[1:]); "
        "rooms = ('suite.launcher.', 'suite.search.'); used = ('suite.launcher.reaper', 'suite.search.settings'); "
        "print([name for name in sys.modules if name in ('sqlalchemy', 'numpy', 'rich')"
        " or name.startswith(rooms) and name not in used], file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "plan", *FAKE, "store.url=empty.db"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stderr == "[]\n"


def test_an_older_store_is_not_counted_and_the_plan_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.db").write_text("anything")
    monkeypatch.setattr("suite.store.schema.look", lambda path: Found("older", "0000"))
    assert cli.main(["plan", *FAKE, "store.url=old.db"]) == 0
    said = capsys.readouterr().out
    assert f"{CALIBRATION + GEMM} cases on " in said
    assert "\nwhat old.db has is not counted: it is of an older version; `roofbench run` upgrades it first\n" in said


def test_nothing_is_asked_about_a_machine_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there.db").write_text("anything")
    monkeypatch.setattr(Reader, "open", lambda *_: pytest.fail("the store was asked"))
    config = compose(["hardware=mi300x", "store.url=there.db"])
    from suite.commands.plan import make

    assert len(make(config).cases) > GEMM


@pytest.mark.parametrize("url", ["nothing.db", "folder/nothing.db", "sqlite:///nothing.db", "postgresql://host/db", "x" * 300])
def test_what_is_no_file_is_no_store(url: str) -> None:
    slot = DeviceSlot(0, "cuda", "m:C", DeviceInfo("cuda", 0, "NVIDIA H200", "a1b2", 2**37))
    assert store_file(url) is None
    assert look(url, (slot,), None) == known.Known()


SPELLINGS = ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}", "sqlite://me@/{}", "sqlite:///{}?", "sqlite:///{}%20"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_store_is_found_without_a_database_or_refused(spelling: str, tmp_path: Path) -> None:
    """What the store itself took and ``look`` did not find would be a calibration that no plan counts."""
    path = tmp_path / "there.db"
    url = spelling.format(path)
    path.write_text("anything")
    if spelling in SPELLINGS[:2]:
        assert (store_file(url), locate(url)) == (path, path)
        return
    with pytest.raises(StoreUnusable, match=r"is not written as roofbench reads it: give /\S+there\.db +or sqlite:///PATH"):
        locate(url)


@pytest.mark.parametrize("name", ["plain.db", "with space", "quo'te", "back\\slash", "com,ma", "bra[ce]{d}", "équ=al", "end\\"])
def test_the_hint_names_a_store_as_it_can_be_typed(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert compose(shlex.split(store_override(path))).store.url == str(path)
    assert shlex.split(store_option(path)) == ["--store", str(path)]


def test_the_default_store_needs_no_naming() -> None:
    assert (store_option(Path("roofbench.db").resolve()), store_override(Path("roofbench.db").resolve())) == ("", "")


def test_another_framework_on_the_same_chip_is_calibrated_for_itself(calibrated: bytes, tmp_path: Path) -> None:
    """What an empty kernel takes is the framework's; that the store knows the chip is not enough."""
    (tmp_path / "shared.db").write_bytes(calibrated)
    (slot,) = fake_slots()
    assert slot.info is not None
    other = slot._replace(info=replace(slot.info, backend="xla"))
    found = look("shared.db", (slot, other), None)
    assert [found.has_calibrated(each) for each in (slot, other)] == [True, False]
    jobs = Counter(case.case.workload.job for case in known.cases(compose(FAKE[2:], CONFIGS), (other,), found, None))
    assert jobs == {"calibration": CALIBRATION, "gemm": GEMM}


def test_a_calibration_beside_other_work_is_taken_again(calibrated: bytes, tmp_path: Path) -> None:
    """A contended triad of 2.9 GB/s, where an idle machine has 27, bounded every later run of the store."""
    (tmp_path / "contended.db").write_bytes(calibrated)
    (slot,) = fake_slots()
    with sqlite3.connect("contended.db") as connection:
        triad = "select id from workload where params like '%triad%'"
        of_triad = f'select id from "case" where workload_id in ({triad})'
        assert connection.execute(f"update result set contended = 1 where case_id in ({of_triad})").rowcount == 1
    connection.close()
    again = look("contended.db", (slot,), None)
    assert not again.has_calibrated(slot)
    assert {key.name for key in again.disturbed} == {"triad_bytes_s"}
    assert again.contended == again.disturbed
    assert list(again.recalibrated([slot])) == [
        "calibration is measured again on fake Simulated Accelerator; of the earlier one in this store contended: triad"
    ]
    assert again.disturbed < again.figures.keys()  # what goes on with that run is bound by it, for want of a better one
    jobs = Counter(case.case.workload.job for case in known.cases(compose(FAKE[2:], CONFIGS), (slot,), again, None))
    assert jobs == {"calibration": CALIBRATION, "gemm": GEMM}
    assert cli.main(["run", *MEASURED, "store.url=contended.db"]) == 0
    assert look("contended.db", (slot,), None).has_calibrated(slot)


def newer(path: Path) -> None:
    Store.open(str(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update alembic_version set version_num = '9999'")


def truncated(path: Path) -> None:
    Store.open(str(path)).close()
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def with_a_trigger(path: Path) -> None:
    Store.open(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER gone AFTER INSERT ON result BEGIN DELETE FROM run; END")


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "a directory": Path.mkdir,
    "a pipe": os.mkfifo,
    "a trigger": with_a_trigger,
    "a newer schema": newer,
    "a truncated store": truncated,
    "no folder": lambda path: None,
}


ASKING = {"run": ("run", *FAKE), "selftest": ("selftest", *FAKE[:3]), "plan": ("plan", *FAKE)}
OF_EVERY_COMMAND = ("a trigger", "no folder")  # what is unusable is found by the same look, whichever command looks


@pytest.mark.parametrize(
    ("command", "make"),
    [
        pytest.param(
            command,
            make,
            id=f"{asking}-{name}",
            marks=() if asking == "run" or name in OF_EVERY_COMMAND else pytest.mark.thorough,
        )
        for asking, command in ASKING.items()
        for name, make in UNUSABLE.items()
    ],
)
def test_a_store_is_looked_at_before_a_held_device_is_waited_for(
    command: tuple[str, ...], make: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("none/store.db" if make is UNUSABLE["no folder"] else "store.db")
    make(path)
    before = sorted(tmp_path.iterdir())
    with hold(devices(fake_slots()), "another"):
        assert cli.main([*command, f"store.url={path}", "wait_s=1"]) == 2
    said = capsys.readouterr().err
    assert str(path) in said
    assert "held" not in said
    assert sorted(tmp_path.iterdir()) == before


def test_an_older_store_is_not_upgraded_before_the_device_is_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = first_schema.make(tmp_path / "store.db")
    before = path.read_bytes()
    with hold(devices(fake_slots()), "another"):
        assert cli.main(["run", *FAKE, f"store.url={path}"]) == 1
    assert "is held by run another" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_contended_figure_is_named_though_another_backend_has_a_better_one_of_the_same_memory() -> None:
    """Torch and JAX read the same memory: that JAX's figure is sound does not make torch's so."""
    info = DeviceInfo("cpu", 0, "EPYC", "a1b2", 2**34)
    keys = {(backend, name): BaseKey("a1b2", backend, name) for backend in ("cpu", "xla") for name in known.CALIBRATES}
    contended = frozenset({keys["cpu", "read_bytes_s"], keys["cpu", "triad_bytes_s"], keys["xla", "triad_bytes_s"]})
    found = known.Known(dict.fromkeys(keys.values(), 1.0), contended | {keys["cpu", "empty_call_s"]}, contended=contended)
    of_cpu, of_xla = (
        list(found.recalibrated([DeviceSlot(0, name, "m:C", replace(info, backend=name))])) for name in ("cpu", "xla")
    )
    assert of_cpu == [
        "calibration is measured again on cpu EPYC; of the earlier one in this store contended: read, triad; "
        "not resolved: empty kernel called"
    ]
    assert of_xla == ["calibration is measured again on xla EPYC; of the earlier one in this store contended: triad"]


def test_why_a_calibration_is_taken_again_is_said(
    calibrated: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the plan and by the run; not where there is none yet, and not where all of it does."""
    again = "calibration is measured again on fake Simulated Accelerator; of the earlier one in this store contended: triad; "
    again += "not resolved: empty kernel called\n"
    assert cli.main(["plan", *MEASURED]) == 0
    assert "measured again" not in capsys.readouterr().out
    (tmp_path / "roofbench.db").write_bytes(calibrated)
    assert cli.main(["plan", *MEASURED]) == 0
    assert "measured again" not in capsys.readouterr().out
    whole = known.look

    def disturbed(*arguments: Any) -> known.Known:
        found = whole(*arguments)
        triad, call = (
            frozenset(key for key in found.figures if key.name == name) for name in ("triad_bytes_s", "empty_call_s")
        )
        return found._replace(disturbed=triad | call, contended=triad)

    monkeypatch.setattr(known, "look", disturbed)
    for command in ("plan", "run"):
        assert cli.main([command, *MEASURED]) == 0
        assert again in capsys.readouterr().out
