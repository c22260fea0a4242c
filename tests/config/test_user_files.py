"""YAML that users add with --config-dir: found, merged, and refused in one line that names the file when it is broken."""

from pathlib import Path

import pytest

from suite.config import compose, schema
from suite.errors import UsageError
from suite.jobs.gemm import GemmSettings

GLOBAL = "# @package _global_\n"


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def refusal(folder: Path, *overrides: str) -> str:
    with pytest.raises(UsageError) as refused:
        compose(overrides, folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_an_experiment_of_ones_own_stands_beside_the_built_in_ones(tmp_path: Path) -> None:
    text = f"{GLOBAL}defaults:\n  - override /measure: precise\n  - _self_\njobs:\n  gemm:\n    shapes: [512]\n"
    config = compose(["experiment=mine"], put(tmp_path, "experiment/mine.yaml", text))
    gemm = config.jobs["gemm"]
    assert isinstance(gemm, GemmSettings)
    assert (config.experiment, gemm.shapes, config.measure.interleave) == ("mine", ["512"], 10)
    assert compose(["experiment=standard"], tmp_path) == compose(["experiment=standard"])


@pytest.mark.parametrize("name", ["with space", "quo'te", "back\\slash", "com,ma", "bra[ce]{d}", "équ=al$"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    folder = put(tmp_path / name, "measure/own.yaml", "defaults:\n  - /schema/measure@_here_\n  - _self_\ntarget: 0.3\n")
    assert compose(["measure=own"], folder).measure.target == 0.3


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert refusal(missing) == (
        f"--config-dir {missing} is not a directory; name one that holds groups such as experiment/mine.yaml"
    )


def test_a_file_that_sets_what_only_hydras_program_reads_is_refused(tmp_path: Path) -> None:
    """On the command line it is; in a file it was dropped in silence."""
    text = f"{GLOBAL}hydra:\n  sweeper:\n    params:\n      seed: 1,2\n"
    folder = put(tmp_path, "experiment/mine.yaml", text)
    file = folder / "experiment" / "mine.yaml"
    assert refusal(folder, "experiment=mine").startswith(f"{file}: hydra has no effect here; only `roofbench run -m` goes")
    assert compose(["experiment=quick"], folder).experiment == "quick"


def test_an_experiment_that_is_a_search_is_not_left_without_it(tmp_path: Path) -> None:
    """It would measure the one shape that the search begins with."""
    text = f"{GLOBAL}search:\n  m: 4096\n"
    folder = put(tmp_path, "experiment/mine.yaml", text)
    for name in ("peak", "mine"):
        assert refusal(folder, f"experiment={name}", "search=null").startswith(f"search=null leaves experiment={name} without")
    assert compose(["experiment=quick", "search=null"], folder).search is None


def test_settings_of_a_job_that_the_user_left_out_are_dropped(tmp_path: Path) -> None:
    """An experiment over several jobs can be narrowed to one of them."""
    folder = put(tmp_path, "experiment/both.yaml", f"{GLOBAL}jobs:\n  attention:\n    heads: [16x128]\n  gemm:\n    m: [7]\n")
    config = compose(["experiment=both", "job=[gemm]"], folder)
    assert list(config.jobs) == ["gemm"]
    assert "attention" in schema.OFFERED_JOBS


BROKEN = [
    ("jobs:\n\tgemm: {}\n", "{file}, line 3, column 1: not valid YAML: found character '\\t' that cannot start any token"),
    ("note: a: b\n", "{file}, line 2, column 8: not valid YAML: mapping values are not allowed here"),
    ("note: a\nnote: b\n", "{file}, line 3, column 1: not valid YAML: found duplicate key note"),
    ("jobs: {gemm: [1,\n", "{file}, line 3, column 1: not valid YAML: expected the node content, but found '<stream end>'"),
    ("max_casess: 3\n", "experiment/mine: unknown key 'max_casess'; did you mean 'max_cases'?"),
    ("jobs:\n  gemm:\n    shaps: [1]\n", "experiment/mine: unknown key 'jobs.gemm.shaps'; did you mean 'shapes'?"),
    ("jobs:\n  gem:\n    shapes: [1]\n", "unknown job 'gem' in jobs.gem; did you mean 'gemm'?"),
    ("max_cases: many\n", "experiment/mine: max_cases=many is not a whole number; write digits from 0 to 9, as in 16"),
    ("measure: null\n", "experiment/mine: measure=null may not be null; leave it out for the default"),
    ("jobs:\n  gemm:\n    shapes: [0x1x1]\n", "shape '0x1x1' has m=0; sizes go from 1 to 2147483647"),
    ("note: ${nope.x}\n", "note: Interpolation key 'nope.x' not found"),
    ("note: ${note}\n", "note: Recursive interpolation detected"),
    (
        "defaults: fast\n",
        "the configuration cannot be composed: Invalid defaults list in 'experiment/mine', defaults must be a list (got str)",
    ),
    ("defaults:\n  - override /measure: fst\n", "unknown measure 'fst'; did you mean 'fast'?"),
    (
        "defaults:\n  - mine\n",
        "the configuration cannot be composed: experiment/mine: a defaults list leads back to its own file",
    ),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    folder = put(tmp_path, "experiment/mine.yaml", GLOBAL + text)
    assert refusal(folder, "experiment=mine") == message.format(file=folder / "experiment/mine.yaml")


@pytest.mark.parametrize("text", ["max_cases: 3\n", "", "- 1\n", "words\n"])
def test_a_file_that_forgot_its_package_is_told_which_line_is_missing(tmp_path: Path, text: str) -> None:
    folder = put(tmp_path, "experiment/mine.yaml", text)
    expected = "experiment/mine: the first line has to be '# @package _global_', so that its settings count for the whole run"
    assert refusal(folder, "experiment=mine") == expected


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "experiment/mine.yaml", "").joinpath("experiment/mine.yaml").write_bytes(b"\xff\xfe\x00")
    file = tmp_path / "experiment/mine.yaml"
    assert refusal(tmp_path, "experiment=mine") == (
        f"the configuration cannot be composed: {file} is not UTF-8 text (invalid start byte); save it as UTF-8"
    )


def test_an_alias_inside_of_its_own_anchor_is_found_in_its_file(tmp_path: Path) -> None:
    folder = put(tmp_path, "experiment/mine.yaml", f"{GLOBAL}jobs: &all\n  gemm: *all\n")
    assert refusal(folder, "experiment=mine") == (
        f"the configuration cannot be composed: {folder / 'experiment/mine.yaml'} has an alias (*NAME) inside of what its "
        "anchor (&NAME) names; write the value out"
    )


MARK = "\ufeff"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("experiment/mine.yaml", f"{GLOBAL}max_cases: 3\n"),
        ("backend/mine.yaml", "# @package backends.mine\ndefaults:\n  - /schema/backend@_here_\n  - _self_\nname: mine\n"),
    ],
)
def test_a_byte_order_mark_that_hides_the_first_line_is_named(name: str, text: str, tmp_path: Path) -> None:
    folder = put(tmp_path, name, MARK + text)
    group = name.partition("/")[0]
    assert refusal(folder, f"{group}=mine") == (
        f"{folder / name} begins with a byte-order mark, which hides its first line; save it as UTF-8 without one"
    )


def test_a_byte_order_mark_that_hides_nothing_is_passed_over(tmp_path: Path) -> None:
    text = f"{MARK}defaults:\n  - /schema/measure@_here_\n  - _self_\ntarget: 0.3\n"
    assert compose(["measure=own"], put(tmp_path, "measure/own.yaml", text)).measure.target == 0.3


def test_a_file_with_the_other_ending_is_pointed_at(tmp_path: Path) -> None:
    folder = put(tmp_path, "experiment/mine.yml", f"{GLOBAL}max_cases: 3\n")
    assert refusal(folder, "experiment=mine") == (
        f"{folder / 'experiment/mine.yml'} is not read, as its name does not end in .yaml; rename it to mine.yaml"
    )


def test_a_file_may_carry_settings_of_a_backend_that_is_left_out_but_no_unknown_ones(tmp_path: Path) -> None:
    text = f"{GLOBAL}backends:\n  cpu:\n    options: {{{{{{}}: 2}}}}\n"
    folder = put(tmp_path, "experiment/mine.yaml", text.format("threads"))
    assert list(compose(["experiment=mine"], folder).backends) == ["auto"]
    put(tmp_path, "experiment/other.yaml", text.format("thread"))
    assert refusal(folder, "experiment=other") == "backend cpu has no option 'thread'; did you mean 'threads'?"


def test_a_misspelt_key_is_found_with_and_without_a_schema(tmp_path: Path) -> None:
    put(tmp_path, "measure/bare.yaml", "targett: 3\n")
    put(tmp_path, "measure/full.yaml", "defaults:\n  - /schema/measure@_here_\n  - _self_\ntargett: 3\n")
    for name in ("bare", "full"):
        expected = f"measure/{name}: unknown key 'measure.targett'; did you mean 'target'?"
        assert refusal(tmp_path, f"measure={name}") == expected


def test_a_backend_without_a_class_is_refused(tmp_path: Path) -> None:
    text = "# @package backends.own\ndefaults:\n  - /schema/backend@_here_\n  - _self_\nname: own\n"
    message = refusal(put(tmp_path, "backend/own.yaml", text), "backend=own")
    assert message == "backends.own.target=None is not module:Class, such as backends.cpu:CpuBackend"


@pytest.mark.parametrize("extra", ["", "note=x"])
def test_a_file_of_a_built_in_name_replaces_that_one(tmp_path: Path, extra: str) -> None:
    put(tmp_path, "experiment/quick.yaml", f"{GLOBAL}max_cases: 7\n")
    put(tmp_path, "measure/fast.yaml", "defaults:\n  - /schema/measure@_here_\n  - _self_\ntarget: 0.3\n")
    given = ["measure=fast", *filter(None, [extra])]
    config = compose(given, tmp_path)
    assert (config.max_cases, config.measure.target) == (7, 0.3)
    without = compose(given)
    assert (without.max_cases, without.measure.target) == (60, 0.01)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "defaults:\n  - /schema/backend@_here_\n  - _self_\nname: own\n",
            "a file of backend/ has to begin with '# @package backends.NAME', where NAME is the file's own",
        ),
        ("name: own\n", "backend/own: the first line has to be '# @package backends.own', where its settings are looked for"),
    ],
)
def test_a_backend_that_forgot_its_package_is_told_which_line_is_missing(tmp_path: Path, text: str, told: str) -> None:
    assert refusal(put(tmp_path, "backend/own.yaml", text), "backend=own") == told


@pytest.mark.parametrize(
    ("file", "given", "schema"),
    [
        ("job/gemm.yaml", "job=gemm", "/schema/job/gemm@_here_"),
        ("job/gemm.yaml", "job=[attention,gemm]", "/schema/job/gemm@_here_"),
        ("backend/cpu.yaml", "backend=cpu", "/schema/backend@_here_"),
        ("backend/cpu.yaml", "backend=[cpu,cuda]", "/schema/backend@_here_"),
    ],
)
@pytest.mark.parametrize("settings", ["seed: 1\n", ""], ids=["settings", "nothing"])
def test_a_file_without_its_schema_is_named_with_the_lines_that_it_lacks(
    tmp_path: Path, file: str, given: str, schema: str, settings: str
) -> None:
    """Hydra reads it, and what has no schema is no job: nothing else would say that it was left out."""
    group, name = Path(file).parent.name, Path(file).stem
    folder = put(tmp_path, file, f"# @package {group}s.{name}\n{settings}")
    assert refusal(folder, "experiment=null", given) == (
        f"{group} '{name}' has no schema, by which its settings are known: {folder / file} has to begin with "
        f"'# @package {group}s.{name}' and 'defaults: [{schema}, _self_]'"
    )


def test_a_file_may_have_another_name_than_the_entry_that_it_fills(tmp_path: Path) -> None:
    schema = "defaults:\n  - /schema/backend@_here_\n  - _self_\n"
    text = f"# @package backends.cpu\n{schema}name: cpu\ntarget: backends.cpu:CpuBackend\n"
    folder = put(tmp_path, "backend/mine.yaml", text)
    assert list(compose(["experiment=null", "backend=mine", "job=gemm"], folder).backends) == ["cpu"]
    put(tmp_path, "backend/several.yaml", "# @package _global_\ndefaults:\n  - /backend/cpu\n")
    assert list(compose(["experiment=null", "backend=several", "job=gemm"], folder).backends) == ["cpu"]
    put(tmp_path, "backend/mine.yaml", "# @package backends.cpu\nname: cpu\n")
    assert f"backend 'cpu' has no schema, by which its settings are known: {folder / 'backend/mine.yaml'}" in refusal(
        folder, "experiment=null", "backend=mine"
    )


def test_a_job_that_is_taken_out_again_needs_no_schema(tmp_path: Path) -> None:
    folder = put(tmp_path, "job/gemm.yaml", "# @package jobs.gemm\nseed: 1\n")
    assert list(compose(["experiment=null", "job=[attention,gemm]", "~jobs.gemm"], folder).jobs) == ["attention"]


def test_an_experiment_that_chooses_a_file_without_its_schema_by_a_list_is_told_of_the_file(tmp_path: Path) -> None:
    put(tmp_path, "job/gemm.yaml", "# @package jobs.gemm\nseed: 1\n")
    folder = put(tmp_path, "experiment/mine.yaml", "# @package _global_\ndefaults:\n  - override /job: [gemm]\n")
    assert f"job 'gemm' has no schema, by which its settings are known: {folder / 'job/gemm.yaml'}" in refusal(
        folder, "experiment=mine"
    )
