"""The decode_step job on paper: axes, work, footprint, tolerance, tokens."""

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from suite.backend import DeviceInfo
from suite.case import Case, shape_label
from suite.errors import UsageError
from suite.jobs.decode_step import FORMATS, DecodeStepJob, DecodeStepSettings, sizes_of
from suite.jobs.decode_step.job import SCRATCH_BYTES
from suite.jobs.decode_step.tolerance import ROUNDINGS, stage_tolerances
from suite.jobs.decode_step.work import step_bytes
from suite.outcome import Outcome
from suite.plan import plan
from suite.planned import DeviceSlot
from suite.report.quantities import tokens_rate
from suite.settings import BackendSettings, RunConfig
from tests.report.builders import result

JOB = DecodeStepJob()
LLAMA_WEIGHTS = 32 * (6144 * 4096 + 4096 * 4096 + 28672 * 4096 + 4096 * 14336) + 128256 * 4096
SMALL = {"layers": 2, "hidden_sizes": 64, "heads": "4/2x16", "intermediate_sizes": 96, "vocabularies": 300}


def only(**settings):
    (workload,) = JOB.workloads(DecodeStepSettings(**settings))
    return workload


def test_bytes_of_a_step_of_llama_by_hand():
    """4096 tokens: 256 pages of 16; 32 layers of 8 KV heads of 128 columns."""
    workload = only()
    found = step_bytes(workload)
    assert found.weights == 2 * LLAMA_WEIGHTS == 15_009_316_864
    assert found.norms == (32 * 2 + 1) * 4096 * 2 == 532_480
    assert found.kv == 32 * 4096 * 2 * 8 * 128 * 2 == 536_870_912
    assert found.inputs == 4 + 4096 * 2 + 256 * 4 + 4 + 128 * 4
    assert found.logits == 128256 * 2
    work = JOB.work(workload)
    assert work.compulsory_bytes == 15_009_316_864 + 532_480 + 536_870_912 + 9_736 + 256_512
    assert work.flops == 2 * LLAMA_WEIGHTS + 32 * 32 * 4096 * 2 * (128 + 128)
    assert work.pipe == "bf16"


def test_a_batch_reads_weights_once_and_a_cache_for_each_sequence():
    one, eight = (step_bytes(only(batches=[batch])) for batch in (1, 8))
    assert (eight.weights, eight.norms) == (one.weights, one.norms)
    assert eight.kv == 8 * one.kv
    assert eight.logits == 8 * one.logits
    assert JOB.work(only(batches=[8])).flops == 8 * JOB.work(only()).flops


@pytest.mark.parametrize(
    ("format_name", "bits", "scale_bytes", "activation_bytes"),
    [
        ("bf16", 16, 0, 2),
        ("w8a16", 8, 2 * (32 * (6144 + 4096 + 28672 + 4096) + 128256), 2),
        ("w4a16", 4, 2 * LLAMA_WEIGHTS // 128, 2),
        ("fp8_e4m3", 8, 4 * (32 * 4 + 1), 1),
    ],
)
def test_weights_alone_count_their_scales_and_activations_of_every_product(format_name, bits, scale_bytes, activation_bytes):
    workload = only(parts=["weights"], formats=[format_name], batches=[4])
    inputs = 4 * (32 * (4096 + 4096 + 4096 + 14336) + 4096) * activation_bytes
    if format_name == "fp8_e4m3":  # one scale of each activation tensor
        inputs += 4 * (32 * 4 + 1)
    outputs = 4 * (32 * (6144 + 4096 + 28672 + 4096) + 128256) * 2
    assert JOB.work(workload).compulsory_bytes == LLAMA_WEIGHTS * bits // 8 + scale_bytes + inputs + outputs
    assert JOB.work(workload).flops == 2 * 4 * LLAMA_WEIGHTS
    assert JOB.work(workload).pipe == ("fp8" if format_name == "fp8_e4m3" else "bf16")


def test_weights_have_neither_a_context_nor_pages():
    workload = only(parts=["weights"], kv_lens=[512], page_sizes=[1])
    assert workload == only(parts=["weights"])
    assert not {"kv_len", "page_size", "q_len"} & set(dict(workload.params))


def test_decoding_is_bound_by_memory():
    """On an H200 from 206 FLOP a byte on arithmetic is the limit."""
    assert JOB.work(only()).arithmetic_intensity < 2
    assert JOB.work(only(batches=[64])).arithmetic_intensity < 206


def test_a_model_fills_its_sizes_and_keeps_its_name_with_fewer_layers_only():
    whole, part, other = only(), only(layers=2), only(layers=2, hidden_sizes=1024)
    assert dict(whole.params) == {
        "part": "step",
        "model": "llama-3-8b",
        "layers": 32,
        "hidden_size": 4096,
        "num_q_heads": 32,
        "num_kv_heads": 8,
        "head_dim": 128,
        "v_head_dim": 128,
        "intermediate_size": 14336,
        "vocabulary": 128256,
        "batch": 1,
        "q_len": 1,
        "kv_len": 4096,
        "page_size": 16,
    }
    assert (sizes_of(part).model, sizes_of(part).layers) == ("llama-3-8b", 2)
    assert sizes_of(other).model == ""
    assert "model" not in dict(other.params)


def test_sizes_of_a_catalogues_model_are_its_own():
    sizes = sizes_of(only(models=["llama-3.3-70b"]))
    assert (sizes.layers, sizes.hidden_size, sizes.intermediate_size) == (80, 8192, 28672)
    assert [(each.n, each.k, each.times) for each in sizes.products] == [
        (10240, 8192, 80),
        (8192, 8192, 80),
        (57344, 8192, 80),
        (8192, 28672, 80),
        (128256, 8192, 1),
    ]


def test_axes_multiply_without_repeats():
    settings = DecodeStepSettings(
        parts=["weights", "step"], formats=["bf16", "w4a16"], batches=[1, 8, 1], kv_lens=[1024, 4096], layers=[1, 2]
    )
    found = list(JOB.workloads(settings))
    # bf16: weights 2 x 2, steps 2 x 2 x 2; w4a16: weights alone.
    assert len(found) == len({each.key for each in found}) == 4 + 8 + 4
    assert {sizes_of(each).part for each in found if each.format == "w4a16"} == {"weights"}


def test_a_title_says_what_was_computed():
    case = Case(only(**SMALL, batches=[2], kv_lens=[37]), "triton", "cuda", JOB.usual_regimes[0])
    assert case.title == (
        "decode_step 4/2x16 2x1/37 hidden_size=64 intermediate_size=96 layers=2 page_size=16 part=step vocabulary=300 "
        "bf16 triton cold/sustained/device"
    )
    assert shape_label(only()).startswith("32/8x128 1x1/4096 ")


def test_it_is_measured_in_a_graph_and_launch_by_launch():
    assert [each.label for each in JOB.usual_regimes] == ["cold/sustained/device", "cold/sustained/call"]


@pytest.mark.parametrize(
    "settings", [{}, {"batches": [64]}, {"parts": ["weights"]}, {"parts": ["weights"], "formats": ["w8a16"]}]
)
def test_memory_is_what_a_launch_touches_and_what_stands_beside_it(settings):
    workload = only(**settings)
    footprint = JOB.footprint(workload)
    assert footprint.set_bytes == JOB.work(workload).compulsory_bytes
    assert footprint.scratch_bytes >= SCRATCH_BYTES
    if settings.get("parts") != ["weights"]:
        # At least the embedding, and what passes from stage to stage.
        assert footprint.rearranged_bytes > 128256 * 4096 * 2 * 0.9
        assert footprint.total_bytes(1, implementation="library") > footprint.total_bytes(1, implementation="triton")


def slot_of(memory_bytes):
    info = DeviceInfo("cuda", 0, "NVIDIA H200", "uid", memory_bytes, llc_bytes=50 * 2**20)
    return DeviceSlot(0, "cuda", "backends.cuda:CudaBackend", info)


def planned(memory_bytes, oversize="record", **settings):
    config = RunConfig(
        jobs={"decode_step": DecodeStepSettings(**settings)},
        backends={"cuda": BackendSettings("cuda", "backends.cuda:CudaBackend", {})},
        oversize=oversize,
    )
    return plan(config, [slot_of(memory_bytes)], {0})


def test_two_sets_of_an_8b_model_fit_an_h200_and_a_70b_model_does_not():
    assert {each.sets for each in planned(141 * 10**9)} == {2}
    assert {each.verdict for each in planned(141 * 10**9)} == {None}
    assert {each.verdict for each in planned(141 * 10**9, models=["llama-3.3-70b"])} == {Outcome.OUT_OF_MEMORY}
    assert {each.verdict for each in planned(24 * 10**9)} == {Outcome.OUT_OF_MEMORY}


def test_what_has_no_room_is_refused_before_anything_runs():
    with pytest.raises(UsageError, match=r"decode_step .* on NVIDIA H200 needs .* GB, predicted"):
        planned(24 * 10**9, oversize="refuse")


@pytest.mark.parametrize("name", FORMATS["step"])
def test_a_stage_may_be_off_by_its_roundings_and_its_sums(name):
    roundoff = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}[name]
    found = stage_tolerances(only(formats=[name]))
    assert set(found) == set(ROUNDINGS)
    assert found["mid"] == pytest.approx(math.sqrt(2) * roundoff + 4 * 2.0**-24 * math.sqrt(4096))
    assert found["act"] == max(found.values()) or name == "fp32"
    assert JOB.tolerance(only(formats=[name]), ()) == max(found.values())


def test_depth_allows_no_more():
    assert JOB.tolerance(only(layers=1), ()) == JOB.tolerance(only(layers=1000), ())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"parts": ["weight"]}, "did you mean 'weights'"),
        ({"parts": []}, "jobs.decode_step.parts is empty"),
        ({"formats": ["fp4"]}, "unknown format 'fp4' in jobs.decode_step.formats"),
        ({"formats": ["w4a16"]}, "leaves nothing of parts=[step]: a step is in bf16, fp16, fp32; add parts=[weights]"),
        ({"models": ["llama-3-9b"]}, "did you mean 'llama-3-8b'"),
        ({"models": []}, "jobs.decode_step.models is empty"),
        ({"models": ["deepseek-v3"]}, "deepseek-v3, whose attention is MLA"),
        ({"models": ["qwen2.5-72b"]}, "biases, which this step does not add; parts=[weights] takes it; leave it out"),
        ({"batches": [0]}, "jobs.decode_step.batches has 0; it goes from 1 to 512"),
        ({"batches": [513]}, "goes from 1 to 512"),
        ({"kv_lens": []}, "jobs.decode_step.kv_lens is empty"),
        ({"page_sizes": [256]}, "goes from 1 to 128"),
        ({"layers": 0}, "jobs.decode_step.layers has 0; it goes from 1 to 1024"),
        (
            {"layers": True},
            "jobs.decode_step.layers has true, which is not a whole number; write digits from 0 to 9, as in 16; it "
            "goes from 1 to 1024",
        ),
        ({"layers": [2, 2.0]}, "jobs.decode_step.layers has 2.0, which is not a whole number; write 2; it goes from 1 to 1024"),
        (
            {"layers": "2"},
            "jobs.decode_step.layers has 2, which is not a whole number but text; write 2; it goes from 1 to 1024",
        ),
        ({"layers": 1.5}, "jobs.decode_step.layers has 1.5, which is not a whole number; write digits"),
        (
            {"hidden_sizes": [None, 1e3]},
            "jobs.decode_step.hidden_sizes has 1000.0, which is not a whole number; write 1000; it goes",
        ),
        ({"layers": []}, "jobs.decode_step.layers is empty"),
        ({"hidden_sizes": 100}, "jobs.decode_step.hidden_sizes has 100; it goes from 16 to 65536 in steps of 16; write 96"),
        ({"intermediate_sizes": [96, 97]}, "has 97"),
        ({"vocabularies": 8}, "jobs.decode_step.vocabularies has 8"),
        ({"heads": "32"}, "jobs.decode_step.heads has 32, not HEADSxHEAD_DIM; write for instance 32x128 or 32/8x128"),
        ({"heads": [None, 3]}, "jobs.decode_step.heads has 3, not HEADSxHEAD_DIM; write for instance 32x128 or 32/8x128"),
        ({"heads": "32/0x128"}, "heads of K and V go from 1 to the 32 of Q; write 32/1x128"),
        (
            {"heads": "4x32/16"},
            "4x32/16: values of 16 columns beside keys of 32, as in MLA; here both have as many; write 4x32",
        ),
        ({"heads": "128/1x576/512"}, "as in MLA; here both have as many; write 128/1x576"),
        ({"heads": []}, "jobs.decode_step.heads is empty"),
        ({"implementations": ["tritn"]}, "did you mean 'triton'"),
        ({"distributions": ["constant"]}, "unknown distribution 'constant'"),
        ({"parts": ["weights"], "formats": ["w4a16"], "hidden_sizes": 4112}, "k=4112 is no multiple; pad K to 4224"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_remedy(settings, words):
    with pytest.raises(UsageError) as raised:
        JOB.check(replace(DecodeStepSettings(), **settings))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_model_with_biases_is_streamed():
    JOB.check(DecodeStepSettings(parts=["weights"], models=["qwen2.5-72b"]))


def test_tokens_are_those_of_all_sequences_per_second():
    step = result(job="decode_step", params=dict(only(batches=[8]).params), p50_s=0.004)
    assert step.tokens_s == 2000.0
    assert step.to_json()["tokens_s"] == 2000.0
    for other in (
        result(job="decode_step", params=dict(only(parts=["weights"]).params), p50_s=0.004),
        result(job="decode", params=dict(only(batches=[8]).params), p50_s=0.004),
        replace(step, p50_s=None),
    ):
        assert other.tokens_s is None
        assert other.to_json()["tokens_s"] is None


@pytest.mark.parametrize("count", [None, "many", [2], 10**400], ids=["null", "words", "list", "past a double"])
def test_counts_that_are_no_numbers_make_no_tokens(count: Any) -> None:
    step = result(job="decode_step", params=dict(only(batches=[8]).params), p50_s=0.004)
    assert replace(step, params={**step.params, "batch": count}).tokens_s is None


@pytest.mark.parametrize(
    ("rate", "words"),
    [(271.318, "271.3 tokens/s"), (12345.6, "12,350 tokens/s"), (999.99, "1,000 tokens/s"), (0.12345, "0.1235 tokens/s")],
)
def test_tokens_per_second_are_written_as_the_field_does(rate, words):
    assert tokens_rate(rate) == words


def test_a_step_is_planned_without_numpy():
    """Which the command line loads nowhere else."""
    program = (
        "import sys; from suite.jobs.decode_step import DecodeStepJob, DecodeStepSettings\n"
        "job = DecodeStepJob(); [(job.work(each), job.footprint(each)) for each in job.workloads(DecodeStepSettings())]\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
