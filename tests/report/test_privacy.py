"""What a report does not publish: where things lie on the machine that measured."""

import json
from dataclasses import replace

import pytest

from suite.backend import Fact
from suite.report.document import build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.privacy import Scrubber, is_place, without_places
from suite.settings import RunConfig
from tests.report.builders import FakeReader, result, run_info

KEPT = [
    "cold/sustained/device",
    "989 TFLOP/s / 3.35 TB/s",
    "https://docs.example.org/cuda/cublas/index.html",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1: cannot open",
    "/opt/rocm/lib/hipblaslt/library",
    "/dev/nvidia0 and /proc/self/status",
    "gemm 4096x4096x4096, and/or",
]
MASKED = [
    ("/data/ada/sheets/acme.yaml", "<folder>/acme.yaml"),
    ("read '/scratch/ada/a b/x.yaml'", "read '<folder>/a b/x.yaml'"),
    ("--xla_dump_to=/lustre/proj7/dump", "--xla_dump_to=<folder>/dump"),
    ("/a/b/c:/d/e/f,/g/h", "<folder>/c:<folder>/f,<folder>/h"),
    ("file:///data/ada/x", "file://<folder>/x"),
    ("sqlite:////data/ada/x.db", "sqlite:///<folder>/x.db"),
    ("['/data/ada/x', /data/ada/y]", "['<folder>/x', <folder>/y]"),
    ("/home/ada/sheets/acme.yaml", "~/sheets/acme.yaml"),
]


@pytest.mark.parametrize("text", KEPT)
def test_what_every_machine_has_and_what_is_no_path_stays(text):
    assert Scrubber().text(text) == text


@pytest.mark.parametrize(("text", "published"), MASKED, ids=[text for text, _ in MASKED])
def test_of_a_path_only_the_last_part_is_published(text, published):
    assert Scrubber().text(text) == published
    assert Scrubber().text(published) == published


@pytest.mark.parametrize(
    "override",
    ["store.url=/d/x", "+store.url=x", "resume=latest", "hardware_folders=[/d]", "hydra.searchpath=[x]", "hydra/launcher=s"],
)
def test_an_override_that_says_where_is_no_part_of_the_command(override):
    assert is_place(override)
    assert not is_place(f"note={override}")


def test_settings_are_published_without_those_that_only_say_where():
    config = {"hardware": "acme", "hardware_folders": ["/data"], "store": {"url": "x.db"}, "resume": None, "seed": 1}
    assert without_places(config) == {"hardware": "acme", "seed": 1}


def test_no_folder_of_a_run_gets_into_its_report():
    """Every setting and every variable that can hold one, on a disk that is nobody's home."""
    secret = "/scratch/team-ada"
    config = json.loads(json.dumps(RunConfig().__dict__, default=lambda each: each.__dict__))
    config |= {
        "hardware": "acme",
        "hardware_folders": [f"{secret}/mine/hardware"],
        "store": {"url": f"{secret}/results.db"},
        "backends": {"own": {"name": "own", "target": "own:Backend", "options": {"library": f"{secret}/lib/libown.so"}}},
        "note": f"see {secret}/notes/why.txt",
    }
    info = run_info(
        config=config,
        argv=("roofbench", "run", "--config-dir", f"{secret}/mine"),
        overrides=(f"store.url={secret}/results.db", f"++backends.own.options.library={secret}/lib/libown.so"),
        note=config["note"],
    )
    environment = {"variables": {"NCCL_TOPO_FILE": Fact.measured(f"{secret}/topo/node.xml")}}
    failing = replace(result(), outcome="error", reason=f"cannot read {secret}/lib/libown.so", p50_s=None)
    reader = FakeReader((result(), failing), infos=(info,), facts=environment)
    document = build(reader, ["latest"])
    for page in (render_html(document), render_markdown(document)):
        assert "team-ada" not in page
        assert "libown.so" in page
        assert "node.xml" in page
