"""Each thing a person can get wrong on the command line, with the one line it ends in."""

from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest

import configs
from suite.config import compose
from suite.config.check import check
from suite.config.schema import OFFERED_JOBS
from suite.errors import UsageError
from suite.jobs.registry import JOBS
from suite.settings import MeasureSettings, RunConfig

TOP = (
    "backend, backends, device, experiment, hardware, job, jobs, launcher, max_cases, max_kernel_s, max_time_s, measure, note, "
    "oversize, resume, search, seed, store, wait_s"
)
READ = "write key=value, and quote what the shell or Hydra would split: 'key=\"a, b\"'"
NO_DEVICE = "is no device; write an index, a list such as device=[0,1], device=all or a MIG name"
NO_OVERRIDE = "is not an override; write key=value, such as experiment=standard or jobs.gemm.shapes=[512]"
SIZES = "sizes go from 1 to 2147483647"
NO_JOB = f"no job is selected; choose from: {', '.join(OFFERED_JOBS)}, as in job=gemm or 'job=[gemm]'"
EXPERIMENTS = ", ".join(sorted(path.stem for path in (Path(configs.__file__).parent / "experiment").glob("*.yaml")))

CASES = [
    # Names of files.
    ("job=gem", "unknown job 'gem'; did you mean 'gemm'?"),
    ("job=[gemm,gem]", "unknown job 'gem'; did you mean 'gemm'?"),
    ("job=calibration", f"unknown job 'calibration'; choose from: {', '.join(sorted(OFFERED_JOBS))}"),
    ("backend=cud", "unknown backend 'cud'; did you mean 'cuda'?"),
    ("measure=fst", "unknown measure 'fst'; did you mean 'fast'?"),
    ("experiment=standrd", "unknown experiment 'standrd'; did you mean 'standard'?"),
    ("experiment=x", f"unknown experiment 'x'; choose from: {EXPERIMENTS}"),
    ("store=defalt", "unknown store 'defalt'; did you mean 'default'?"),
    ("launcher=slrm", "unknown launcher 'slrm'; choose from: basic"),
    (
        "hardware=nvidia-h20-sxm",
        "unknown hardware 'nvidia-h20-sxm'; did you mean 'nvidia-h200-sxm5-141gb'? `roofbench hardware` lists all 58",
    ),
    (
        "hardware=h200",
        "hardware 'h200' could be any of nvidia-h200-nvl-141gb, nvidia-h200-sxm5-141gb; name one of them",
    ),
    # Keys.
    ("bakend=cpu", "unknown key 'bakend'; did you mean 'backend'?"),
    ("shapes=[3]", "unknown key 'shapes'; did you mean 'jobs.gemm.shapes'?"),
    ("foo=1", f"unknown key 'foo'; choose from: {TOP}"),
    ("+foo=1", f"unknown key 'foo'; choose from: {TOP}"),
    ("jobs.gemm.shaps=[512]", "unknown key 'jobs.gemm.shaps'; did you mean 'shapes'?"),
    ("+jobs.gemm.shaps=[512]", "unknown key 'jobs.gemm.shaps'; did you mean 'shapes'?"),
    ("measure.deadlines.start=3", "unknown key 'measure.deadlines.start'; did you mean 'start_s'?"),
    ("+measure.deadlines.start=3", "unknown key 'measure.deadlines.start'; did you mean 'start_s'?"),
    ("jobs.gem.shapes=[512]", "unknown job 'gem' in jobs.gem; did you mean 'gemm'?"),
    ("+jobs.gem.shapes=[512]", "unknown job 'gem' in jobs.gem; did you mean 'gemm'?"),
    ("+backends.cpu.options.threads=1", "backends.cpu is set but backend 'cpu' is not selected; add it with backend=cpu"),
    ("+jobs.attention.x=1", "jobs.attention is set but job 'attention' is not selected; add it with job=attention"),
    ("+backends.cpu.options.thread=1", "backend cpu has no option 'thread'; did you mean 'threads'?"),
    (
        "+backends.auto.options.candidates.cuda.options.smapler=spin",
        "backend cuda has no option 'smapler'; did you mean 'sampler'?",
    ),
    (
        "experiment=/etc/passwd",
        "experiment=/etc/passwd is a path where a name is expected; "
        "write --config-dir DIR experiment=NAME for DIR/experiment/NAME.yaml",
    ),
    ("backends.cpu.options.x=1", "backends.cpu is set but backend 'cpu' is not selected; add it with backend=cpu"),
    (
        "backends.auto.options.x=1",
        "backend auto has no option 'x'; choose from: candidates",
    ),
    ("jobs.gemm=3", "jobs.gemm=3 is one value where settings are expected; write jobs.gemm.KEY=VALUE"),
    # Selections that leave nothing, or contradict themselves.
    ("job=[]", NO_JOB),
    ("~jobs.gemm", NO_JOB),
    ("backend=[]", "no backend is selected; write backend=auto, or name one or several as in 'backend=[cpu,cuda]'"),
    ("backend=[auto,cpu]", "backend=[auto] cannot stand beside cpu; name the backends, or leave auto alone"),
    ("measure=null", "measure=null leaves the run without a measure; name one, or drop the override for the default"),
    ("~job", "~job leaves the run without a job; name one, or drop the override for the default"),
    ("measure=[]", "measure=[] is a list, but a run has one measure; write measure=NAME, or -m measure=A,B for one run each"),
    (
        "measure=[fast,precise]",
        "measure=[fast,precise] is a list, but a run has one measure; write measure=fast, or -m measure=A,B for one run each",
    ),
    ("store=[]", "store=[] is a list, but a run has one store; write store=NAME, or -m store=A,B for one run each"),
    (
        "experiment=[x]",
        "experiment=[x] is a list, but a run has one experiment; write experiment=x, or -m experiment=A,B for one run each",
    ),
    ("backend=[[]]", "backend=[[]] is no name of a backend; write backend=NAME"),
    ("backend=[null]", "backend=[null] is no name of a backend; write backend=NAME"),
    ("job={a:1}", "job={a:1} is no name of a job; write job=NAME"),
    ("job=3", "job=3 is no name of a job; write job=NAME"),
    ("jobs.gemm.m=[]", "jobs.gemm.m is empty; name tokens for the models, such as [1,16,4096]"),
    (
        "backend=cpu,cuda",
        "backend=cpu,cuda gives several values; `roofbench run -m` makes one run for each, "
        "or write [cpu,cuda] for one run over all",
    ),
    (
        "jobs.gemm.shapes=[64],[128]",
        "jobs.gemm.shapes=[64],[128] gives several values; `roofbench run -m` makes one run for each",
    ),
    ("measure=fast,precise", "measure=fast,precise gives several values; `roofbench run -m` makes one run for each"),
    # Types.
    ("jobs=3", "jobs=3 is one value where settings are expected; write jobs.NAME=VALUE"),
    ("backends=3", "backends=3 is one value where settings are expected; write backends.NAME=VALUE"),
    ("search=foo", "search=foo is one value where settings are expected; write experiment=peak for a search"),
    (
        "measure.deadlines=3",
        "measure.deadlines=3 is one value where settings are expected; write measure.deadlines.NAME=VALUE",
    ),
    ("measure.target=abc", "measure.target=abc is not a number"),
    ("max_cases=1.5", "max_cases=1.5 is not a whole number; write digits from 0 to 9, as in 16"),
    ("jobs.gemm.m=[1,x]", "jobs.gemm.m[1]=x is not a whole number; write digits from 0 to 9, as in 16"),
    ("jobs.gemm.m=[1e3]", "jobs.gemm.m[0]=1000.0 is not a whole number; write 1000"),
    ("measure.telemetry=maybe", "measure.telemetry=maybe is neither true nor false"),
    ("note=[1]", "note=[1] is not text; write it without brackets or braces"),
    (
        "jobs.gemm.m=x",
        "jobs.gemm.m=x is not a whole number, and a list of these is expected; write jobs.gemm.m=[NUMBER,NUMBER]",
    ),
    ("jobs.gemm.m=8", "jobs.gemm.m=8 is one value where a list is expected; write jobs.gemm.m=[8]"),
    (
        "jobs.gemm.shapes=512x512x512",
        "jobs.gemm.shapes=512x512x512 is one value where a list is expected; write jobs.gemm.shapes=[512x512x512]",
    ),
    ("store.url=null", "store.url=null may not be null; leave it out for the default"),
    ("store.url=???", "store.url has no value; set it with store.url=VALUE"),
    ("store.url=${nope}", "store.url: Interpolation key 'nope' not found"),
    # Grammar.
    ("seed=" + "9" * 5000, "seed has a number of more than 4300 digits; write fewer"),
    ("jobs.gemm.shapes=[" + "9" * 5000 + "]", "jobs.gemm.shapes has a number of more than 4300 digits; write fewer"),
    (
        "jobs.gemm.shapes=['" + "9" * 5000 + "x4x4']",
        f"jobs.gemm.shapes[0]={'9' * 57}... has a number of more than 64 digits; write fewer",
    ),
    ("quick", f"'quick' {NO_OVERRIDE}"),
    ("a b", f"'a b' {NO_OVERRIDE}"),
    ("=3", f"'=3' {NO_OVERRIDE}"),
    (
        "jobs.gemm.shapes=[512",
        f"cannot read the override jobs.gemm.shapes=[512: no viable alternative at input '[512'; {READ}",
    ),
    # Sizes, names and limits.
    ("jobs.gemm.shapes=[0x4x4]", f"shape '0x4x4' has m=0; {SIZES}"),
    ("jobs.gemm.shapes=[4x-1x4]", f"shape '4x-1x4' has n=-1; {SIZES}"),
    ("jobs.gemm.shapes=[4x4x9999999999]", f"shape '4x4x9999999999' has k=9999999999; {SIZES}"),
    (
        "jobs.gemm.shapes=[4x4]",
        "shape '4x4' is not MxNxK; write for instance 4096x4096x4096, or 4096 for a square",
    ),
    ("jobs.gemm.formats=[bf17]", "unknown format 'bf17' in jobs.gemm.formats; did you mean 'bf16'?"),
    (
        "jobs.gemm.formats=[]",
        "jobs.gemm.formats is empty; name at least one of fp64, fp32, tf32, bf16, fp16, int8, fp8_e4m3, fp8_e5m2, mxfp8_e4m3, "
        "mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2, mxfp4, nvfp4, w8a16, w4a16, mxfp4a16",
    ),
    (
        "jobs.gemm.implementations=[librari]",
        "unknown implementation 'librari' in jobs.gemm.implementations; did you mean 'library'?",
    ),
    (
        "jobs.gemm.models=[llama]",
        "unknown model 'llama' in jobs.gemm.models; did you mean 'llama-3-8b' or 'llama-3.1-405b' or 'llama-3.3-70b'?",
    ),
    (
        "measure.regimes=[warm]",
        "regime 'warm' in measure.regimes is not cache/load/dispatch; write for instance cold/sustained/device",
    ),
    (
        "measure.regimes=[cold/sustained/devise]",
        "regime 'cold/sustained/devise' has dispatch 'devise'; choose from: device, call",
    ),
    ("measure.regimes=[]", "measure.regimes is empty; write [standard], or labels such as [cold/sustained/device]"),
    ("measure.target=0", "measure.target=0.0 is not between 1e-06 and 0.999"),
    ("measure.target=nan", "measure.target=nan is not finite; choose from 1e-06 to 0.999"),
    ("measure.target=2", "measure.target=2.0 is not between 1e-06 and 0.999"),
    ("measure.max_time_s=0.01", "measure.max_time_s=0.01 is below measure.min_time_s=0.1"),
    ("max_cases=0", "max_cases=0 is not above 0; leave it out for no limit"),
    ("max_time_s=-1", "max_time_s=-1.0 is not above 0; leave it out for no limit"),
    ("max_kernel_s=nan", "max_kernel_s=nan is not finite; leave it out for no limit"),
    ("seed=-1", "seed=-1 is not between 0 and 9223372036854775807"),
    ("oversize=recrd", "unknown oversize 'recrd'; did you mean 'record'?"),
    ("store.url=", "store.url is empty; write the path of an SQLite file, such as store.url=roofbench.db"),
    ("resume=", "resume is empty; write resume=latest, or a run that `roofbench show --runs` lists"),
    ("max_time_s=inf", "max_time_s=inf is not finite; leave it out for no limit"),
    ("max_kernel_s=inf", "max_kernel_s=inf is not finite; leave it out for no limit"),
    ("jobs.gemm.m=[0]", "jobs.gemm.m has 0; it goes from 1 to 2147483647; write 1"),
    ("jobs.gemm.name=attention", "jobs.gemm.name=attention is not what it is called here; leave it out"),
    ("backends.auto.name=3", "backends.auto.name=3 is not what it is called here; leave it out"),
    # What cannot be left out or is no list.
    ("~seed", "~seed removes a setting that every run has; write seed=VALUE, or leave it out for the default"),
    ("~jobs", "~jobs removes a setting that every run has; write jobs=VALUE, or leave it out for the default"),
    ("jobs=[]", "jobs holds settings by name and is no list; choose with job=[NAME]"),
    ("backends=[]", "backends holds settings by name and is no list; choose with backend=[NAME]"),
    # Devices.
    ("device=-1", "device=-1 is below 0; devices are counted from 0 as `roofbench devices` prints them"),
    ("device=true", f"device=true {NO_DEVICE}"),
    ("device=1.5", f"device=1.5 {NO_DEVICE}"),
    ("device=null", f"device=null {NO_DEVICE}"),
    ("device={a:1}", f"device={{a:1}} {NO_DEVICE}"),
    ("device=[]", "device=[] chooses nothing; write an index, a list such as device=[0,1], or device=all"),
    ("device=[0,0]", "device=[0, 0] names a device twice; name each once"),
    ("device=[0,all]", "device=[all] mixes a list with all; write device=all"),
]


@pytest.mark.parametrize(
    ("content", "remedy"),
    [(b"\xc3\xa4", "set LC_ALL=C.UTF-8 or PYTHONUTF8=1"), (b"\xe4", "write it in UTF-8")],
    ids=["c", "latin"],
)
def test_bytes_that_the_locale_cannot_read_are_not_shown_as_python_holds_them(content: bytes, remedy: str) -> None:
    with pytest.raises(UsageError) as refused:
        compose([f"note={content.decode('ascii', 'surrogateescape')}"])
    said = str(refused.value)
    said.encode()
    assert said.startswith("the value of note has characters that cannot be read in the encoding ")
    assert said.endswith(f"; {remedy}")


# Each has a neighbour above that the same line answers, for another group, key or value.
LIKE_A_NEIGHBOUR = {
    "store=defalt", "measure=fst", "+measure.deadlines.start=3", "store=[]", "job=3", "backends=3", "jobs.gemm.shapes=[4x-1x4]",
    "max_kernel_s=nan", "max_kernel_s=inf", "~jobs", "backends=[]", "device=1.5", "device={a:1}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("override", "message"),
    [pytest.param(*case, marks=pytest.mark.thorough if case[0] in LIKE_A_NEIGHBOUR else (), id=case[0]) for case in CASES],
)
def test_a_wrong_value_is_named_with_its_remedy(override: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        compose([override])
    assert str(refused.value) == message
    assert refused.value.exit_status == 2


LISTS = [
    f"jobs.{name}.{each.name}" for name in OFFERED_JOBS for each in fields(JOBS[name].settings_type) if "list" in str(each.type)
]
# Shapes stand in for models, other masks for windows, groups for mixtures of experts.
MAY_BE_EMPTY = ("jobs.gemm.models", "jobs.attention.windows", "jobs.grouped_gemm.moe")


@cache
def one_job(name: str) -> RunConfig:
    return compose([f"job={name}"])


@pytest.mark.parametrize(
    "axis", [*LISTS, *(f"measure.{each.name}" for each in fields(MeasureSettings) if "list" in str(each.type))]
)
def test_no_axis_may_be_empty_but_where_another_stands_in(axis: str) -> None:
    """An axis without a value multiplies the plan by nothing.  What is looked at is what composing a run ends with."""
    *path, name = axis.split(".")
    config = one_job(path[1] if len(path) > 1 else "gemm")
    holder = config.jobs[path[1]] if len(path) > 1 else config.measure
    emptied = replace(holder, **{name: []})  # type: ignore[type-var]
    changed = {"jobs": {path[1]: emptied}} if len(path) > 1 else {"measure": emptied}
    if axis in MAY_BE_EMPTY:
        check(replace(config, **changed))
        return
    with pytest.raises(UsageError, match=r"is empty|has neither|has groups and no shapes|has shapes and no groups"):
        check(replace(config, **changed))


@pytest.mark.parametrize("override", ["store={url: x.db}", "measure={target: 0.1}", "hardware=4090"])
def test_settings_of_a_group_may_be_given_at_once_and_sheets_by_number(override: str) -> None:
    compose([override])


def test_a_missing_environment_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOFBENCH_NOWHERE", raising=False)
    with pytest.raises(UsageError, match=r"^note: .*'ROOFBENCH_NOWHERE' not found"):
        compose(["note=${oc.env:ROOFBENCH_NOWHERE}"])


@pytest.mark.parametrize("override", ["device=all", "device=[0,1]", "device=MIG-1g.18gb", "device='MIG 1g.18gb'"])
def test_every_way_to_choose_devices_is_taken(override: str) -> None:
    assert compose([override]).device in ("all", [0, 1], "MIG-1g.18gb", "MIG 1g.18gb")


def test_composing_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compose(["experiment=standard"])
    assert list(tmp_path.iterdir()) == []
