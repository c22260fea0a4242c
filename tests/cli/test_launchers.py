"""Ranks of a launcher on the command line: planned as they are run, gone on with as they were started, and else refused."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from suite import cli
from suite.ranks import join
from suite.ranks.keeper import Keeper, find_hub
from suite.ranks.launched import launched
from suite.store.queries import Reader
from tests.cli.command import FAKE
from tests.cli.test_known import planned
from tests.patience import PATIENCE_S

COLLECTIVE = (*FAKE, "job=collective", "jobs.collective.ops=[all_reduce]", "jobs.collective.sizes=[1KiB]")
AGAIN = "start it again under torchrun, srun or mpirun with 2 ranks"
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")


@pytest.fixture(autouse=True, scope="module")
def _unlaunched() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def variables(rank: int, world: int, port: int) -> Mapping[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


@contextmanager
def started(world: int, rank: int = 0, port: int = 30_500) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(rank, world, port).items():
            patch.setenv(name, value)
        yield


def launch(*arguments: str, world: int = 2) -> int:
    """Run a command as rank 0, with the others kept by threads; its status."""
    # Apart from what other processes of these tests listen on.
    port = 20_000 + os.getpid() % 500 * 20

    def keep(rank: int) -> None:
        found = launched(variables(rank, world, port))
        assert found is not None
        Keeper(find_hub(found, "here", PATIENCE_S), f"rank-{rank}").serve()

    keepers = [threading.Thread(target=keep, args=(rank,)) for rank in range(1, world)]
    with started(world, port=port):
        for keeper in keepers:
            keeper.start()
        try:
            return cli.main(arguments)
        finally:
            for keeper in keepers:
                keeper.join(PATIENCE_S)
                assert not keeper.is_alive()


def stored() -> tuple[str, int]:
    """The status of the latest run, and how many results it has."""
    with Reader.open("roofbench.db") as reader:
        return reader.resolve("latest").status, len(list(reader.results("latest")))


@pytest.fixture(scope="module")
def begun_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The store of a run of two ranks that reached its time, at rest; and what the run printed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(TextIOWrapper(BytesIO())) as out:
        patch.chdir(tmp_path_factory.mktemp("begun"))
        assert launch("run", *COLLECTIVE, "backends.fake.options.sleep_s=0.1", "max_time_s=0.2") == 0
        out.seek(0)
        return Path("roofbench.db").read_bytes(), out.read()


@pytest.fixture
def begun(begun_once: tuple[bytes, str], tmp_path: Path) -> str:
    """In this folder a run of two ranks that reached its time; what it printed."""
    store, printed = begun_once
    (tmp_path / "roofbench.db").write_bytes(store)
    return printed


def test_a_launched_run_goes_on_under_a_launcher_with_as_many_ranks(begun: str) -> None:
    (hint,) = [line for line in begun.splitlines() if line.startswith("to go on")]
    how, _, command = hint.partition(": roofbench ")
    assert how == f"to go on, {AGAIN}"
    _, before = stored()
    assert launch(*command.split(), f"max_time_s={PATIENCE_S:g}") == 0
    assert stored()[0] == "complete"
    assert stored()[1] > before
    with Reader.open("roofbench.db") as reader:
        rows = [row for row in reader.results("latest") if row.job == "collective"]
    assert [(row.outcome, row.params["world_size"], row.switches["joined"]) for row in rows] == [("ok", 2, True)] * len(rows)
    assert rows


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("world", [0, 3])
def test_with_other_ranks_it_is_refused_and_nothing_is_stored(
    world: int, command: str, begun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stored()
    arguments = (command, "resume=latest")
    if world and command == "run":
        assert launch(*arguments, world=world) == 2
    else:
        with started(world):
            assert cli.main(arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "was started under torchrun, srun or mpirun with 2 ranks, and" in last
    assert f"{'torchrun started 3' if world else 'none of them started this'}; {AGAIN}, for instance torchrun" in last
    assert " --nproc-per-node 2 --no-python roofbench run resume=2" in last
    assert stored() == before


def test_a_run_that_no_launcher_started_is_not_gone_on_with_by_each_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", *FAKE, "backends.fake.options.sleep_s=0.1", "max_time_s=0.2"]) == 0
    before = stored()
    assert launch("run", "resume=latest") == 2
    told = "was started without a launcher, and torchrun started 2; start it once, without torchrun"
    assert told in capsys.readouterr().err.splitlines()[-1]
    assert stored() == before


def worlds(rows: list[dict[str, Any]]) -> set[tuple[int, bool]]:
    found = [row for row in rows if row["job"] == "collective"]
    assert found
    return {(row["params"]["world_size"], row["switches"].get("joined", False)) for row in found}


def test_a_plan_is_of_the_ranks_that_were_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None of them has come, and nothing says where they would meet."""
    assert worlds(planned(capsys, *COLLECTIVE)) == {(2, False)}
    with started(4):
        os.environ.pop("MASTER_ADDR")
        assert worlds(planned(capsys, *COLLECTIVE)) == {(4, True)}
        assert worlds(planned(capsys, *COLLECTIVE, "jobs.collective.world_sizes=[2,3]")) == {(2, True), (3, True)}
    with started(4, rank=1):
        assert cli.main(["plan", *COLLECTIVE]) == 0
    said = capsys.readouterr()
    assert said.out + said.err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("run", *FAKE), ("plan", *FAKE), ("run", "-m", *FAKE, "seed=1,2")])
def test_a_launch_without_collectives_is_refused(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(2):
        assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert said.err.startswith("roofbench: torchrun started 2 ranks, and there are no collectives for them (gemm)")
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_selftest_is_refused_under_a_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    with started(2):
        assert cli.main(["selftest", *FAKE[:3]]) == 2
    assert "started 2 ranks, and there are no collectives for them" in capsys.readouterr().err


def test_the_other_ranks_of_a_sweep_that_is_refused_say_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a launch")
    monkeypatch.setattr(join, "QUIET_S", 0.0)
    with started(2, rank=1), pytest.raises(SystemExit) as left:
        cli.main(["run", "-m", *FAKE, "seed=1,2"])
    said = capsys.readouterr()
    assert (left.value.code, said.out, said.err) == (2, "", "")


@pytest.mark.parametrize("command", [("run",), ("plan",), ("run", "-m"), ("run", "--cfg", "experiment")])
def test_how_many_ranks_joined_is_nobodys_to_say(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, *COLLECTIVE, "jobs.collective.joined=4"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("roofbench: jobs.collective.joined=4 cannot be set: ")
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_launched_run_is_repeated_by_as_many_ranks(begun: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a launcher it would measure other cases, and says so."""
    folder = Path("mine/experiment")
    folder.mkdir(parents=True)
    assert cli.main(["run", "--cfg", "experiment", "resume=latest"]) == 0
    said = capsys.readouterr()
    assert f"not in this file: the launcher that started its 2 ranks (torchrun); {AGAIN}\n" in said.err
    (folder / "again.yaml").write_text(said.out)
    again = ("--config-dir", "mine", "experiment=again", "store.url=other.db")
    with started(2):
        assert worlds(planned(capsys, *again)) == {(2, True)}
    for command in ("run", "plan"):
        assert cli.main([command, *again]) == 2
        assert f"none of them started this; {AGAIN}" in capsys.readouterr().err
    assert not Path("other.db").exists()
