"""Spec sheets that a plugin brings: named like ours, and never in place of ours."""

import json
from pathlib import Path
from typing import Any

from suite.hardware.catalogue import builtin, load
from tests.plugins.installed import install_example, run, write_plugin

COMPOSED = """
import json, sys
from suite.config import compose
from suite.errors import UsageError
from suite.plugins.used import sheet_refusals

def answer(overrides):
    try:
        config = compose(overrides)
        return [config.hardware, config.hardware_folders]
    except UsageError as error:
        return str(error)

print(json.dumps([[answer(overrides) for overrides in json.loads(sys.argv[1])], list(sheet_refusals())]))
"""


def with_sheet(site: Path, name: str) -> Path:
    """The example beside a plugin with a sheet."""
    text = (builtin("hardware") / "nvidia-l4.yaml").read_text()
    text = (
        text.replace("id: nvidia-l4", f"id: {name}").replace("NVIDIA L4", "Acme X1").replace("vendor: NVIDIA", "vendor: Acme")
    )
    return write_plugin(install_example(site), "acme", {f"conf/hardware/{name}.yaml": text}, jobs={"x": "acme:X"})


def composed(site: Path, *each: list[str]) -> list[Any]:
    """The sheet and the folders of sheets, or the refusal, for each list of overrides; and what is complained of."""
    said = run(site, site, "-c", COMPOSED, json.dumps(each))
    assert said.status == 0, said.err
    found: list[Any] = json.loads(said.out)
    return found


def test_a_sheet_of_a_plugin_is_named_as_ours_are(tmp_path: Path) -> None:
    site = with_sheet(tmp_path, "acme-x1")
    folder = site / "acme" / "conf" / "hardware"
    named, of_plugin, of_ours, unknown = composed(
        site, ["hardware=acme-x1"], ["experiment=matvec"], ["hardware=nvidia-l4"], ["hardware=acme-x2"]
    )[0]
    assert named == ["acme-x1", [str(folder)]]
    assert of_plugin == [None, [str(folder)]]
    assert of_ours == ["nvidia-l4", []]
    assert unknown.startswith("unknown hardware 'acme-x2'")
    assert load("acme-x1", [folder]).vendor == "Acme"


def test_a_sheet_with_the_name_of_ours_is_not_read(tmp_path: Path) -> None:
    answers, refused = composed(with_sheet(tmp_path, "nvidia-l4"), ["experiment=matvec", "hardware=nvidia-l4"])
    assert answers == [["nvidia-l4", []]]
    assert refused == ["the spec sheets of acme 0.1 are refused: roofbench has a hardware 'nvidia-l4' too"]
