import pytest

from suite.errors import UsageError
from suite.jobs.gemm import FORMATS, GemmJob, GemmSettings
from suite.jobs.shapes import MODEL_PROJECTIONS, model_shapes, parse_shape

JOB = GemmJob()


def only(**settings):
    (workload,) = JOB.workloads(GemmSettings(**settings))
    return workload


def test_work_counts_each_operand_once():
    work = JOB.work(only(formats=["bf16"], shapes=["4096x8192x1024"]))
    assert work.flops == 2 * 4096 * 8192 * 1024
    assert work.compulsory_bytes == 2 * (4096 * 1024 + 1024 * 8192 + 4096 * 8192)


def test_formats_read_and_write_their_own_sizes():
    int8 = JOB.work(only(formats=["int8"], shapes=["64x64x64"]))
    fp8 = JOB.work(only(formats=["fp8_e4m3"], shapes=["64x64x64"]))
    assert int8.compulsory_bytes == 2 * 64 * 64 + 4 * 64 * 64
    assert fp8.compulsory_bytes == 2 * 64 * 64 + 2 * 64 * 64 + 8
    assert (int8.pipe, fp8.pipe) == ("int8", "fp8")


def test_intensity_rises_from_decode_to_prefill():
    decode = JOB.work(only(formats=["bf16"], shapes=["1x8192x8192"]))
    prefill = JOB.work(only(formats=["bf16"], shapes=["8192x8192x8192"]))
    assert decode.arithmetic_intensity == pytest.approx(1.0, rel=1e-3)
    assert prefill.arithmetic_intensity == pytest.approx(8192 / 3, rel=1e-6)


def test_llama_70b_projections_hold_its_parameters():
    """80 layers of qkv, output, gate-up and down, with embedding and head, are the 70.6 billion on the model's card."""
    per_layer = sum(k * n for k, n in MODEL_PROJECTIONS["llama-3.3-70b"][:4])
    assert 80 * per_layer + 2 * 8192 * 128256 == pytest.approx(70.6e9, rel=5e-3)


def test_models_expand_with_tokens_and_repeat_nothing():
    settings = GemmSettings(formats=["bf16"], shapes=["16x6144x4096"], models=["llama-3-8b"], m=[16, 16])
    sizes = [tuple(w.param(p) for p in "mnk") for w in JOB.workloads(settings)]
    assert len(sizes) == len(set(sizes)) == 5
    assert sizes[0] == (16, 6144, 4096)


def test_fp32_tolerance_refuses_tf32_and_bf16_arithmetic():
    fp32 = only(formats=["fp32"], shapes=["8192x8192x8192"])
    tolerance = JOB.tolerance(fp32, JOB.switches(GemmSettings(), fp32))
    assert tolerance < 1e-4 < 3e-4  # 3e-4 is what TF32 rounding of the operands gives


def test_tolerances_stay_far_from_a_truncated_sum():
    """Dropping a sixteenth of K moves a normal product by a quarter: every tolerance must be well under that."""
    for name in FORMATS:
        workload = only(formats=[name], shapes=["4096x4096x16384"])
        assert JOB.tolerance(workload, JOB.switches(GemmSettings(), workload)) < 0.1


def test_integer_products_are_exact():
    workload = only(formats=["int8"], shapes=["64x64x64"])
    assert JOB.tolerance(workload, ()) == 0.0


def test_switches_are_part_of_the_case_where_they_matter():
    settings = GemmSettings(fp8_fast_accum=False, reduced_precision_reduction=False)
    switches = {name: dict(JOB.switches(settings, only(formats=[name], shapes=["64x64x64"]))) for name in FORMATS}
    assert switches["fp32"] == {"tf32": False}
    assert switches["tf32"] == {"tf32": True}
    assert switches["bf16"] == {"reduced_precision_reduction": False}
    assert switches["fp8_e4m3"] == {"fp8_fast_accum": False}
    assert switches["fp64"] == switches["int8"] == {}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"formats": ["bf61"]}, ("bf61", "bf16")),
        ({"implementations": ["libary"]}, ("libary", "library")),
        ({"layouts": []}, ("layouts", "empty")),
        ({"shapes": []}, ("neither shapes nor models",)),
        ({"shapes": ["0x4x4"]}, ("m=0", "1 to")),
        ({"shapes": ["-1x4x4"]}, ("m=-1",)),
        ({"shapes": ["4x4"]}, ("4x4", "MxNxK")),
        ({"shapes": ["4096x4096x99999999999"]}, ("k=99999999999",)),
        ({"models": ["llama-3-8"]}, ("llama-3-8b",)),
        ({"models": ["llama-3-8b"], "m": [0]}, ("has 0",)),
    ],
)
def test_bad_settings_are_named_with_their_limit(settings, names):
    with pytest.raises(UsageError) as error:
        JOB.check(GemmSettings(**settings))
    assert all(name in str(error.value) for name in names), str(error.value)
    assert "\n" not in str(error.value)


def test_a_single_number_is_a_square():
    assert parse_shape("512") == parse_shape("512x512x512")


def test_deepseek_shapes_are_named_n_by_k_in_its_papers_and_k_by_n_here():
    assert model_shapes("deepseek-v3", 64)[0] == (64, 2112, 7168)
