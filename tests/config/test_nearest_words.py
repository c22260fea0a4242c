"""What was meant by a key, a name or a value that stands in the wrong place, and words of ours for those of the libraries."""

from pathlib import Path

import pytest

from suite.config import compose
from suite.errors import UsageError, nearest
from suite.jobs.gemm import GemmJob

NOT_IN_QUOTES = "cannot read the override {}: '{}' may stand only in quotes; write {}"
COLLECTIVE_KEYS = (
    "; choose from: algos, formats, implementations, in_place, joined, joined_by, joined_per_host, name, ops, protos, "
    "share_device, sizes, world_sizes"
)

CASES = [
    # A key in another place than its own.
    ("job.gemm.shapes=[1]", "unknown key 'job.gemm.shapes'; did you mean 'jobs.gemm.shapes'?"),
    ("backend.cpu.options.x=1", "unknown key 'backend.cpu.options.x'; did you mean 'backends.cpu.options.x'?"),
    (
        "experiment.max_cases=3",
        "unknown key 'experiment.max_cases': experiment=NAME chooses a file, whose settings have keys without 'experiment.'",
    ),
    (
        "measure.max_kernel_s=null",
        "unknown key 'measure.max_kernel_s'; did you mean 'max_kernel_s', which stands at the top?",
    ),
    (
        "+measure.max_kernel_s=null",
        "unknown key 'measure.max_kernel_s'; did you mean 'max_kernel_s', which stands at the top?",
    ),
    # A guess far off leads astray: the keys that there are say more.
    *(
        (
            f"{added}jobs.collective.operations=[all_reduce]",
            "unknown key 'jobs.collective.operations'; choose from: algos, formats, implementations, in_place, joined, "
            "joined_by, joined_per_host, name, "
            "ops, protos, share_device, sizes, world_sizes",
        )
        for added in ("", "+")
    ),
    ("jobs.collective.op=[all_reduce]", "unknown key 'jobs.collective.op'; did you mean 'ops'?"),
    ("jobs.gemm.target=0.1", "unknown key 'jobs.gemm.target'; did you mean 'measure.target'?"),
    # A key of another job is no hint; its own keys are, where one has a word like it.
    *(
        (f"{added}jobs.collective.{key}=[1]", f"unknown key 'jobs.collective.{key}', which {whose}")
        for added in ("", "+")
        for key, whose in (
            ("lengths", f"job decode has{COLLECTIVE_KEYS}"),
            ("shapes", f"jobs gemm, grouped_gemm have{COLLECTIVE_KEYS}"),
            ("page_sizes", "jobs decode, decode_step have; did you mean 'sizes'?"),
        )
    ),
    ("lengths=[1]", "unknown key 'lengths'; did you mean 'jobs.decode.lengths'?"),
    ("store=x.db", "store=x.db names no file of store settings; write store.url=x.db for the file of the store"),
    ("store=/d/x", "store=/d/x names no file of store settings; write store.url=/d/x for the file of the store"),
    # Names that are near by their letters in another case, their beginning, or one of their words.
    ("jobs.gemm.formats=[BF16]", "unknown format 'BF16' in jobs.gemm.formats; did you mean 'bf16'?"),
    ("jobs.gemm.formats=[fp8]", "unknown format 'fp8' in jobs.gemm.formats; did you mean 'fp8_e4m3' or 'fp8_e5m2'?"),
    ("backend=CUDA", "unknown backend 'CUDA'; did you mean 'cuda'?"),
    ("hardware=h201", "unknown hardware 'h201'; did you mean 'nvidia-h200-nvl-141gb'? `roofbench hardware` lists all 58"),
    # What the libraries say in their own words.
    ("jobs.gemm.shapes=[null]", "jobs.gemm.shapes[0]=null is no value; leave it out"),
    ("jobs.gemm.shapes={a: 1}", "jobs.gemm.shapes is a list and takes no settings by name; write jobs.gemm.shapes=[VALUE]"),
    ("measure.deadlines=[1]", "measure.deadlines holds settings by name and is no list; write measure.deadlines.NAME=VALUE"),
    (
        "note=${oc.env:ROOFBENCH_NOWHERE}",
        "note: Environment variable 'ROOFBENCH_NOWHERE' not found; set it, or give a default as in ${oc.env:NAME,DEFAULT}",
    ),
    (
        "jobs.gemm.shapes=[64×64×64]",
        "cannot read the override jobs.gemm.shapes=[64×64×64]: '×' is not the letter x; write jobs.gemm.shapes=[64x64x64]",
    ),
    ("store.url=~/x.db", NOT_IN_QUOTES.format("store.url=~/x.db", "~", "\"store.url='~/x.db'\"")),
    ("note=a;b", NOT_IN_QUOTES.format("note=a;b", ";", "\"note='a;b'\"")),
    # Hydra's own settings that change nothing here.
    ("hydra.mode=MULTIRUN", "hydra.mode=MULTIRUN does not choose how many runs there are; write roofbench run -m for several"),
    (
        "hydra.job.chdir=true",
        "hydra.job.chdir=true cannot be: runs stay in the current folder; give full paths, or change to another first",
    ),
    ("hydra.run.dir=x", "hydra.run.dir=x has no effect here; only `roofbench run -m` goes through Hydra's launcher"),
]


@pytest.mark.parametrize(("override", "message"), CASES, ids=[override for override, _ in CASES])
def test_what_was_meant_is_named(override: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOFBENCH_NOWHERE", raising=False)
    with pytest.raises(UsageError) as refused:
        compose([override, "job=[gemm,collective]"])
    assert str(refused.value) == message


@pytest.mark.parametrize("added", ["", "+"])
def test_the_key_of_another_job_leads_to_the_one_of_this_job_that_has_a_word_like_it(added: str) -> None:
    with pytest.raises(UsageError) as refused:
        compose(["job=attention", f"{added}jobs.attention.lengths=[1]"])
    assert str(refused.value) == "unknown key 'jobs.attention.lengths', which job decode has; did you mean 'seq_lens'?"


@pytest.mark.parametrize("override", ["store.url='~/x.db'", "note='a;b'"])
def test_what_a_refusal_says_to_write_is_taken(override: str) -> None:
    compose([override])


def test_a_name_is_never_told_that_it_is_the_nearest_to_itself() -> None:
    assert nearest("job", ["job", "jobs"]) == "; did you mean 'jobs'?"
    assert nearest("a", ["a"]) == ""


def test_many_names_that_begin_alike_are_no_nearest_one() -> None:
    assert nearest("x", [f"x_of_a_kind_{number}" for number in range(4)]).startswith("; choose from: x_of_a_kind_0, ")


GEMM_FORMATS = tuple(GemmJob.formats)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("fp4", "; did you mean 'mxfp4' or 'mxfp4a16' or 'nvfp4'?"),
        ("FP6", "; did you mean 'mxfp6_e2m3' or 'mxfp6_e3m2'?"),
        ("mxfp8", "; did you mean 'mxfp8_e4m3' or 'mxfp8_e5m2'?"),
        ("fp31", "; did you mean 'fp32'?"),
        ("fp8e4m3", "; did you mean 'fp8_e4m3'?"),
        ("w4", "; did you mean 'w4a16'?"),
    ],
)
def test_a_format_with_other_numbers_is_not_nearer_than_those_with_the_same(given: str, told: str) -> None:
    assert nearest(given, GEMM_FORMATS) == told


@pytest.mark.parametrize("given", ["fp", "mxfp", "4", "", "int4", "nvfp8", "fp128", "bf8"])
def test_a_beginning_of_many_formats_and_a_width_that_none_has_are_answered_with_all(given: str) -> None:
    assert nearest(given, GEMM_FORMATS) == f"; choose from: {', '.join(sorted(GEMM_FORMATS))}"


def experiment(folder: Path, text: str) -> str:
    """What is said of a user's experiment with this text."""
    folder.joinpath("experiment").mkdir()
    folder.joinpath("experiment/mine.yaml").write_text(f"# @package _global_\n{text}", encoding="utf-8")
    return refusal(folder)


def refusal(folder: Path, name: str = "mine") -> str:
    with pytest.raises(UsageError) as refused:
        compose([f"experiment={name}"], folder)
    return str(refused.value)


def test_an_experiment_that_is_a_list_is_told_what_is_expected(tmp_path: Path) -> None:
    expected = "experiment/mine: the file holds a list; write settings by name, such as 'max_cases: 3'"
    assert experiment(tmp_path, "- 1\n- 2\n") == expected


def test_an_alias_inside_of_its_anchor_is_not_called_a_defaults_list(tmp_path: Path) -> None:
    file = tmp_path / "experiment" / "mine.yaml"
    assert experiment(tmp_path, "jobs:\n  gemm:\n    shapes: &a [*a]\n") == (
        f"the configuration cannot be composed: {file} has an alias (*NAME) inside of what its anchor (&NAME) names; "
        "write the value out"
    )


def test_an_experiment_that_is_no_file_is_named_with_what_it_is(tmp_path: Path) -> None:
    own = tmp_path / "experiment"
    own.mkdir()
    own.joinpath("folder.yaml").mkdir()
    own.joinpath("lost.yaml").symlink_to("nowhere.yaml")
    own.joinpath("loop.yaml").symlink_to("loop.yaml")
    leads_nowhere = "is a link that leads nowhere"
    assert refusal(tmp_path, "folder") == f"{own}/folder.yaml is a folder; a YAML file is expected there"
    assert refusal(tmp_path, "lost") == f"{own}/lost.yaml {leads_nowhere} (No such file or directory); mend or remove it"
    assert (
        refusal(tmp_path, "loop") == f"{own}/loop.yaml {leads_nowhere} (Too many levels of symbolic links); mend or remove it"
    )


def test_an_unknown_experiment_among_many_is_still_told_names(tmp_path: Path) -> None:
    own = tmp_path / "experiment"
    own.mkdir()
    for number in range(20):
        own.joinpath(f"a{number:02}.yaml").write_text("# @package _global_\nmax_cases: 3\n")
    said = refusal(tmp_path, "zzzzzzzz")
    assert said.startswith("unknown experiment 'zzzzzzzz'; choose from: a00, a01, a02, ")
    assert said.endswith(" more")
