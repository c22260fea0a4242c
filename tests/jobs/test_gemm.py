from dataclasses import replace

import numpy as np
import pytest

from suite.errors import UsageError
from suite.jobs.emulation import as_executed, slice_products, workspace_bytes
from suite.jobs.gemm import FORMATS, IMPLEMENTATIONS, GemmJob, GemmSettings
from suite.jobs.shapes import MODEL_PROJECTIONS, model_shapes, parse_shape

JOB = GemmJob()


def only(**settings):
    (workload,) = JOB.workloads(GemmSettings(**settings))
    return workload


def switches(name, **settings):
    """What a format is measured with."""
    return [dict(each) for each in JOB.switches(GemmSettings(**settings), only(formats=[name], shapes=["64x64x64"]))]


def tolerance(name, k=16384, **settings):
    workload = only(formats=[name], shapes=[f"4096x4096x{k}"])
    (chosen,) = JOB.switches(GemmSettings(**settings), workload)
    return JOB.tolerance(workload, chosen)


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
    assert tolerance("fp32", 8192) < 1e-4 < 3e-4  # 3e-4 is what TF32 rounding of the operands gives


def test_tolerances_stay_far_from_a_truncated_sum():
    """Dropping a sixteenth of K moves a normal product by a quarter: every tolerance must be well under that."""
    assert all(tolerance(name) < 0.1 for name in FORMATS)
    assert tolerance("fp16", fp16_accumulation=True) < 0.1


def test_the_tolerance_follows_the_switch():
    assert tolerance("fp8_e4m3", fp8_fast_accum=False) < 0.6 * tolerance("fp8_e4m3", fp8_fast_accum=True)
    assert tolerance("bf16", reduced_precision_reduction=False) < tolerance("bf16", reduced_precision_reduction=True)
    assert tolerance("fp16", fp16_accumulation=True) > 10 * tolerance("fp16", fp16_accumulation=False)


def test_fp16_sums_stay_within_their_tolerance():
    """Summed with a rounding after each term, which is more often than any tensor core rounds."""
    rng = np.random.default_rng(5)
    for k in (64, 1024, 8192):
        terms = rng.normal(size=(k, 256)).astype(np.float16).astype(np.float64) * rng.normal(size=(k, 256)).astype(np.float16)
        total = np.zeros(256, np.float16)
        for row in terms:
            total = (total.astype(np.float64) + row).astype(np.float16)
        error = np.linalg.norm(total - terms.sum(axis=0)) / np.linalg.norm(terms.sum(axis=0))
        allowed = tolerance("fp16", k, fp16_accumulation=True)
        assert 0.2 * allowed < error < allowed  # neither refused nor so wide that anything passes


@pytest.mark.parametrize(("name", "emulation"), [("fp32", "bf16x9"), ("fp64", "int8")])
def test_an_emulation_is_held_to_the_accuracy_of_its_format(name, emulation):
    assert tolerance(name, emulation=emulation) == tolerance(name)


@pytest.mark.parametrize(("name", "emulation", "pipe"), [("fp32", "bf16x9", "bf16x9"), ("fp64", "int8", "int8x28")])
def test_an_emulation_is_judged_by_the_unit_that_multiplies_as_often_as_it_does(name, emulation, pipe):
    workload = only(formats=[name], shapes=["512"])
    native, emulated = JOB.switches(GemmSettings(emulation=["none", emulation]), workload)
    assert (JOB.work(workload, native).pipe, JOB.work(workload, emulated).pipe) == (name, pipe)
    assert replace(JOB.work(workload, emulated), pipe=name) == JOB.work(workload, native)
    extra = JOB.footprint(workload, emulated).scratch_bytes - JOB.footprint(workload, native).scratch_bytes
    assert extra == workspace_bytes(emulation, 512, 512, 512)


def test_integer_products_are_exact():
    workload = only(formats=["int8"], shapes=["64x64x64"])
    assert JOB.tolerance(workload, ()) == 0.0


def test_switches_are_part_of_the_case_where_they_matter():
    chosen = {name: switches(name, fp8_fast_accum=False, reduced_precision_reduction=False) for name in FORMATS}
    assert chosen["fp32"] == [{"tf32": False}]
    assert chosen["tf32"] == [{"tf32": True}]
    assert chosen["bf16"] == chosen["fp16"] == [{"reduced_precision_reduction": False}]
    assert chosen["fp8_e4m3"] == [{"fp8_fast_accum": False}]
    assert chosen["fp64"] == chosen["int8"] == [{}]


EVERYTHING = {
    "fp8_fast_accum": [True, False],
    "reduced_precision_reduction": [True, False],
    "fp16_accumulation": [False, True],
    "emulation": ["none", "bf16x9", "int8"],
    "tunable_op": [False, True],
    "workspace_mib": [None, 64],
}


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("fp64", {"emulation", "tunable_op", "workspace_mib"}),
        ("fp32", {"emulation", "tunable_op", "workspace_mib"}),
        ("tf32", {"tunable_op", "workspace_mib"}),
        ("bf16", {"reduced_precision_reduction", "tunable_op", "workspace_mib"}),
        ("fp16", {"reduced_precision_reduction", "fp16_accumulation", "tunable_op", "workspace_mib"}),
        ("int8", {"workspace_mib"}),
        ("fp8_e4m3", {"fp8_fast_accum", "tunable_op", "workspace_mib"}),
    ],
)
def test_each_axis_splits_the_formats_that_it_can_change(name, splits):
    """Turned one at a time from the defaults, an axis either gives two sets of switches or changes nothing."""
    default = switches(name)
    for axis, values in EVERYTHING.items():
        chosen = switches(name, **{axis: values})
        assert (len(chosen) == 2) is (axis in splits), (axis, chosen)
        assert chosen[0] == default[0]
        assert axis in splits or chosen == default


def test_axes_multiply_and_repeat_nothing():
    chosen = switches("fp16", reduced_precision_reduction=[True, False, True], fp16_accumulation=[False, True])
    assert chosen == [
        {"reduced_precision_reduction": True},
        {"reduced_precision_reduction": True, "fp16_accumulation": True},
        {"reduced_precision_reduction": False},
        {"reduced_precision_reduction": False, "fp16_accumulation": True},
    ]


def test_an_emulated_product_has_none_of_torchs_switches():
    """It does not go through torch: cases that differ in nothing that runs would be measured twice."""
    emulated = [each for each in switches("fp64", **EVERYTHING) if "emulation" in each]
    assert emulated == [{"emulation": "int8"}]


def test_an_emulation_of_another_format_leaves_this_one_as_it_is():
    assert switches("fp32", emulation="int8") == switches("fp32")
    assert switches("bf16", emulation=["bf16x9"]) == switches("bf16")
    assert switches("fp64", emulation=["int8"]) == [{"emulation": "int8"}]


def test_an_implementation_says_which_formats_it_takes():
    assert tuple(IMPLEMENTATIONS["library"]) == tuple(FORMATS)
    assert JOB.implementations == tuple(IMPLEMENTATIONS)
    for name, formats in IMPLEMENTATIONS.items():
        assert formats
        assert set(formats) <= set(FORMATS), name
    assert IMPLEMENTATIONS["triton"] == IMPLEMENTATIONS["triton_tuned"]  # one kernel, cut in other ways


def test_a_sweep_without_a_word_about_implementations_is_the_librarys():
    assert GemmSettings().implementations == ["library"]


def test_implementations_share_workloads_and_switches():
    """What a format is measured with does not depend on who computes: the pairs of a comparison are of one workload."""
    JOB.check(GemmSettings(implementations=list(IMPLEMENTATIONS)))
    alone, beside = GemmSettings(), GemmSettings(implementations=list(IMPLEMENTATIONS))
    assert list(JOB.workloads(alone)) == list(JOB.workloads(beside))
    for workload in JOB.workloads(alone):
        assert JOB.switches(alone, workload) == JOB.switches(beside, workload)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"formats": ["bf61"]}, ("bf61", "bf16")),
        ({"implementations": ["libary"]}, ("libary", "library")),
        ({"implementations": ["library", "triton_tunned"]}, ("triton_tunned", "did you mean 'triton_tuned'")),
        ({"layouts": []}, ("layouts", "empty")),
        ({"shapes": []}, ("neither shapes nor models",)),
        ({"shapes": ["0x4x4"]}, ("m=0", "1 to")),
        ({"shapes": ["-1x4x4"]}, ("m=-1",)),
        ({"shapes": ["4x4"]}, ("4x4", "MxNxK")),
        ({"shapes": ["4096x4096x99999999999"]}, ("k=99999999999",)),
        ({"models": ["llama-3-8"]}, ("llama-3-8b",)),
        ({"models": ["llama-3-8b"], "m": [0]}, ("has 0",)),
        ({"fp8_fast_accum": "yes"}, ("jobs.gemm.fp8_fast_accum=yes", "neither true nor false")),
        ({"tunable_op": [True, 1]}, ("jobs.gemm.tunable_op=1", "neither true nor false")),
        ({"reduced_precision_reduction": []}, ("jobs.gemm.reduced_precision_reduction is empty",)),
        ({"fp16_accumulation": None}, ("jobs.gemm.fp16_accumulation=null",)),
        ({"emulation": "int9"}, ("unknown emulation 'int9'", "did you mean 'int8'")),
        ({"emulation": ["none", None]}, ("unknown emulation 'null'",)),
        ({"workspace_mib": [0]}, ("jobs.gemm.workspace_mib=0", "MiB from 1 to")),
        ({"workspace_mib": True}, ("jobs.gemm.workspace_mib=true",)),
        ({"workspace_mib": 2.5}, ("jobs.gemm.workspace_mib=2.5",)),
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


def test_sums_in_fp16_name_their_own_rate():
    workload = only(formats=["fp16"], shapes=["512"])
    off, on = JOB.switches(GemmSettings(fp16_accumulation=[False, True]), workload)
    assert (JOB.work(workload, off).pipe, JOB.work(workload, on).pipe) == ("fp16", "fp16_acc_fp16")


@pytest.mark.parametrize(("bits", "products"), [(53, 28), (55, 28), (56, 36), (63, 36), (71, 45), (72, 55), (79, 55)])
def test_slices_are_multiplied_in_the_pairs_that_reach_the_bits_kept(bits, products):
    assert slice_products(bits) == products
    planned = JOB.work(only(formats=["fp64"], shapes=["64"]), (("emulation", "int8"),))
    executed = as_executed(planned, {"retained_mantissa_bits": bits})
    assert executed == replace(planned, pipe=f"int8x{products}")


@pytest.mark.parametrize("description", [{}, {"retained_mantissa_bits": -1}, {"retained_mantissa_bits": "79"}])
def test_an_emulation_that_does_not_say_how_many_bits_it_kept_is_taken_as_planned(description):
    planned = JOB.work(only(formats=["fp64"], shapes=["64"]), (("emulation", "int8"),))
    assert as_executed(planned, description) == planned
    native = JOB.work(only(formats=["int8"], shapes=["64"]))
    assert as_executed(native, {"retained_mantissa_bits": 79}) == native
