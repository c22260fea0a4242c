"""Finding a sheet by what a person types."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.hardware.catalogue import ids, load
from suite.hardware.table import list_lines
from tests.pace import at_reference_pace_s


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("nvidia-h200-sxm5-141gb", "nvidia-h200-sxm5-141gb"),
        ("NVIDIA H200", "nvidia-h200-sxm5-141gb"),
        ("nvidia h200 nvl", "nvidia-h200-nvl-141gb"),
        ("NVIDIA H20", "nvidia-h20-96gb"),
        ("mi300x", "amd-mi300x"),
        ("MI300X", "amd-mi300x"),
        ("b200", "nvidia-b200-sxm"),
        ("gb200", "nvidia-gb200"),
        ("h100 pcie", "nvidia-h100-pcie-80gb"),
        ("TPU v5 lite", "google-tpu-v5e"),
        ("t4", "nvidia-t4"),
        ("h200-sxm", "nvidia-h200-sxm5-141gb"),
        ("H200 SXM", "nvidia-h200-sxm5-141gb"),
        ("b20", "nvidia-b200-sxm"),
        ("instinct mi300x", "amd-mi300x"),
        ("00x", "amd-mi300x"),
    ],
)
def test_a_sheet_is_found_by_id_name_or_words(typed: str, found: str) -> None:
    assert load(typed).id == found


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"unknown hardware 'amd-mi300y'; did you mean 'amd-mi300[ax]'\?") as failure:
        load("amd-mi300y")
    assert failure.value.exit_status == 2
    with pytest.raises(UsageError, match="roofbench hardware"):
        load("abacus")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("h200", "'h200' could be any of nvidia-h200-nvl-141gb, nvidia-h200-sxm5-141gb; name one of them"),
        ("mi30", "'mi30' could be any of amd-mi300a, amd-mi300x; name one of them"),
        ("100-p", "'100-p' could be any of nvidia-a100-pcie-40gb, nvidia-a100-pcie-80gb, nvidia-h100-pcie-80gb"),
    ],
)
def test_a_name_that_fits_several_sheets_is_not_decided_for_the_user(typed: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(typed)
    assert message in str(refused.value)


def test_sheets_that_are_many_are_not_all_listed() -> None:
    with pytest.raises(
        UsageError, match=r"any of (\S+, ){7}\S+ and \d+ more; name one of them, `roofbench hardware` lists all$"
    ):
        load("nvidia")


@pytest.mark.parametrize("typed", ["", " ", "-", "../secrets", "nvidia-h200-sxm5-141gb.yaml"])
def test_nothing_and_paths_are_not_names(typed: str) -> None:
    with pytest.raises(UsageError):
        load(typed)


def test_a_folder_of_the_user_adds_and_replaces(tmp_path: Path) -> None:
    original = Path(__file__).parents[2] / "configs" / "hardware" / "nvidia-t4.yaml"
    text = original.read_text()
    (tmp_path / "nvidia-t4.yaml").write_text(
        text.replace("fp32: {value: 8.1,", "fp32: {value: 9,").replace("published_tflop_s: 8.1", "published_tflop_s: 8.2")
    )
    (tmp_path / "my-t4.yaml").write_text(text.replace("id: nvidia-t4", "id: my-t4"))
    assert load("my-t4", [tmp_path]).peak_flop_s("fp32") == 8.1e12
    assert load("nvidia-t4", [tmp_path]).peak_flop_s("fp32") == 9e12
    assert load("nvidia-t4").peak_flop_s("fp32") == 8.1e12
    assert set(ids([tmp_path])) - set(ids()) == {"my-t4"}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        load("nvidia-t4", [tmp_path / "nowhere"])


def test_an_id_reads_its_own_file_only(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("id: [")
    assert load("nvidia-t4", [tmp_path]).id == "nvidia-t4"
    with pytest.raises(UsageError, match=r"broken\.yaml"):
        load("Tesla T4 or so", [tmp_path])


HEAVY = ("numpy", "sqlalchemy", "hydra", "omegaconf", "torch", "jax", "plotly", "rich", "streamlit")


def test_reading_sheets_imports_nothing_heavy() -> None:
    modules = ["match", "table", "fits", "cpu", "catalogue", "spec", "models", "observed", "parts"]
    code = (
        "import sys\n"
        + "".join(f"import suite.hardware.{module}\n" for module in modules)
        + "from suite.hardware import table\ntable.list_lines()\n"
        + f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.paced
def test_listing_all_sheets_takes_under_a_second() -> None:
    from suite.hardware import catalogue

    def spent_s() -> float:
        catalogue._parse.cache_clear()
        began_s = time.process_time()
        assert len(list_lines()) == 59
        return time.process_time() - began_s

    assert at_reference_pace_s(spent_s, runs=3) < 1
