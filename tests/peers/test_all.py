"""Every part in one command: shares of the time, parts that end badly, and what the machine need not have."""

import subprocess
import sys
from pathlib import Path

import pytest

from suite.errors import UsageError
from tests.peers import all as everything
from tests.peers import energy
from tests.peers.all import SHARES, Share, budget_s, chosen, run_part
from tests.peers.part import Part
from tests.peers.record import Record, Verdict

DEVICE = "tests.peers.stand_in.device:CudaStandIn"


def shares(*times: tuple[float, float]) -> list[Share]:
    return [Share(Part(f"part{i}", "", (), lambda session: None), most, least) for i, (most, least) in enumerate(times)]


def test_a_part_takes_no_more_than_its_share_nor_what_is_kept_for_others() -> None:
    three = shares((100, 50), (200, 100), (60, 30))
    assert budget_s(three, 0, 540) == 100
    assert budget_s(three, 1, 200) == 170, "30 s are kept for the last"
    assert budget_s(three, 1, 120) == 100, "its least, though too little is left for the last"
    assert budget_s(three, 1, 90) == 82
    assert budget_s(three, 2, 20) == 12
    assert budget_s(three, 2, 0) == 0


def test_nine_minutes_hold_the_most_of_every_part_but_the_last_and_its_least() -> None:
    *first, last = SHARES
    assert sum(share.most_s for share in first) + last.least_s + everything.GRACE_S <= 540


def test_parts_are_chosen_by_name_in_the_order_they_run() -> None:
    assert [share.part.name for share in chosen("economy,clocks")] == ["clocks", "economy"]
    assert chosen("") == list(SHARES)
    with pytest.raises(UsageError, match="unknown part 'clock'; did you mean 'clocks'"):
        chosen("clock")
    assert everything.main(["--out", "unused", "--parts", "clock"]) == 2


def test_one_command_leaves_a_file_a_part_and_its_tables_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = everything.main(["--out", str(tmp_path), "--backend", DEVICE, "--tiny", "--parts", "energy"])
    printed = capsys.readouterr().out
    assert status == 0, (tmp_path / "all.log").read_text()
    assert printed.splitlines()[0].startswith("energy: 1 pass (")
    assert printed.rstrip().endswith("energy: 1 pass")
    assert (tmp_path / "tables.txt").read_text().strip() in printed
    assert sorted(each.name for each in tmp_path.iterdir()) == ["all.log", "energy.json", "tables.txt"]


def test_a_part_that_is_killed_leaves_what_it_had_and_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything, "GRACE_S", 0.0)
    record = run_part(Share(energy.PART, 1, 1), 0.01, tmp_path, ["--backend", DEVICE, "--tiny"])
    assert [row.verdict for row in record.rows] == [Verdict.FAILED]
    assert "still running after 0.01 s" in record.rows[0].note

    def half_way(name: str, argv: list[str], limit_s: float, log: Path) -> None:
        Record(name, Path(argv[argv.index("--out") + 1]) / f"{name}.json").add(energy.PART.without("first", "", Verdict.PASS))

    monkeypatch.setattr(everything, "run_logged", half_way)
    record = run_part(Share(energy.PART, 1, 1), 1, tmp_path, [])
    assert [row.verdict for row in record.rows] == [Verdict.PASS, Verdict.FAILED]


def test_parts_need_neither_store_nor_config_nor_report() -> None:
    missing = ("hydra", "omegaconf", "sqlalchemy", "alembic", "plotly", "rich", "streamlit")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import tests.peers.all, tests.peers.ncu_target"
    code += "; from tests.peers.bench import Bench; Bench('tests.fake.backend:FakeBackend')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
