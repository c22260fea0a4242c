"""The attention job on paper: axes, work, footprint, tolerance."""

from dataclasses import replace
from itertools import product

import pytest

from suite.case import Case, Regime, shape_label
from suite.errors import UsageError
from suite.jobs.attention import FORMATS, AttentionJob, AttentionSettings, sizes_of
from suite.jobs.attention.sizes import HEADS, visible_pairs

JOB = AttentionJob()


def only(**settings):
    (workload,) = JOB.workloads(AttentionSettings(**{"seq_lens": [1024], "masks": ["full"], **settings}))
    return workload


@pytest.mark.parametrize("bounds", [(None, None), (None, 0), (None, 9), (-6, 0), (-6, 3), (2, None), (None, -4)])
def test_pairs_are_counted_exactly(bounds):
    first, last = bounds
    for q_len, kv_len in ((1, 1), (17, 17), (13, 40), (40, 13)):
        seen = [
            (i, j)
            for i, j in product(range(q_len), range(kv_len))
            if (first is None or j - i >= first) and (last is None or j - i <= last)
        ]
        assert visible_pairs(q_len, kv_len, bounds) == len(seen)


def test_a_causal_mask_halves_the_work_and_a_window_bounds_it():
    full, causal = (JOB.work(only(masks=[mask])).flops for mask in ("full", "causal"))
    windowed = JOB.work(only(masks=["sliding_window"], windows=[256])).flops
    assert full == 4 * 16 * 16 * 1024 * 1024 * 128
    assert causal * 2 * 1024 == full * 1025
    assert windowed == 4 * 16 * 16 * (256 * 257 // 2 + (1024 - 256) * 256) * 128
    assert JOB.work(only(masks=["sliding_window"], windows=[4096])).flops == causal


def test_a_backward_pass_of_equal_heads_is_two_and_a_half_forward_passes():
    forward, backward = (JOB.work(only(directions=[direction])).flops for direction in ("forward", "backward"))
    assert 2 * backward == 5 * forward


def test_heads_of_mla_count_their_own_columns():
    forward = JOB.work(only(heads=["128x192/128"])).flops
    backward = JOB.work(only(heads=["128x192/128"], directions=["backward"])).flops
    pairs = 16 * 128 * 1024 * 1024
    assert (forward, backward) == (2 * pairs * (192 + 128), 2 * pairs * (3 * 192 + 2 * 128))


def test_every_operand_counts_once_and_a_head_of_keys_once_for_its_group():
    tokens = 16384
    gqa = JOB.work(only(heads=["32/8x128"]))
    assert gqa.compulsory_bytes == 2 * tokens * 128 * (32 + 8 + 8 + 32)
    backward = JOB.work(only(heads=["32/8x128"], directions=["backward"]))
    assert backward.compulsory_bytes == 2 * tokens * 128 * (2 * (32 + 8 + 8) + 2 * 32) + 4 * tokens * 32
    fp8 = {scaling: JOB.work(only(formats=["fp8_e4m3"], scaling=scaling)).compulsory_bytes for scaling in ("tensor", "head")}
    assert fp8["tensor"] == tokens * 2048 * (3 + 2) + 3 * 4
    assert fp8["head"] == tokens * 2048 * (3 + 2) + 4 * 16 * (16 + 2 * 16)


def test_prefill_is_bound_by_arithmetic():
    """Far above the ridge of any accelerator (an H200: 206 FLOP per byte)."""
    assert JOB.work(only(seq_lens=[4096])).arithmetic_intensity > 1000


def test_a_launch_touches_what_its_footprint_says():
    for settings in ({}, {"directions": ["backward"]}, {"formats": ["fp8_e4m3"]}):
        workload = only(**settings)
        footprint, work = JOB.footprint(workload), JOB.work(workload)
        assert footprint.set_bytes == work.compulsory_bytes
        assert footprint.rearranged_bytes >= footprint.output_bytes


@pytest.mark.parametrize("name", FORMATS)
def test_the_tolerance_is_some_roundoffs_wide(name):
    forward = JOB.tolerance(only(formats=[name], seq_lens=[16384]), ())
    fmt = FORMATS[name]
    assert 2 * fmt.roundoff + fmt.weight_roundoff < forward < 0.08
    if fmt.has_gradients and name != "fp32":
        assert forward < JOB.tolerance(only(formats=[name], directions=["backward"], seq_lens=[16384]), ()) < 2 * forward


def test_fp8_has_no_gradients_and_leaves_the_others_theirs():
    settings = AttentionSettings(
        directions=["forward", "backward"], formats=["bf16", "fp8_e4m3"], seq_lens=[1024], masks=["full"]
    )
    planned = [(sizes_of(each).direction, each.format) for each in JOB.workloads(settings)]
    assert planned == [("forward", "bf16"), ("forward", "fp8_e4m3"), ("backward", "bf16")]


def test_scaling_and_rotation_split_fp8_only():
    settings = AttentionSettings(
        formats=["bf16", "fp8_e4m3"], seq_lens=[1024], masks=["full"], scaling=["tensor", "head"], hadamard=[False, True]
    )
    labels = [each.format_label for each in JOB.workloads(settings)]
    assert labels == ["bf16", "fp8_e4m3", "fp8_e4m3 hadamard", "fp8_e4m3 head", "fp8_e4m3 head hadamard"]


def test_workloads_repeat_nothing_and_leave_out_sequences_longer_than_all_tokens():
    settings = AttentionSettings(heads=["16x128", "16x128"], tokens=[1024, 2048], seq_lens=[512, 2048], masks=["full", "full"])
    sizes = [(sizes_of(each).batch, sizes_of(each).q_len) for each in JOB.workloads(settings)]
    assert sizes == [(2, 512), (4, 512), (1, 2048)]


@pytest.mark.parametrize(
    ("text", "heads"),
    [("16x128", (16, 16, 128, 128)), ("32/8x128", (32, 8, 128, 128)), ("128x192/128", (128, 128, 192, 128))],
)
def test_heads_are_read_as_they_are_written(text, heads):
    assert HEADS.parse(text) == heads
    assert shape_label(only(heads=[text])) == f"forward {text} 16x1024 full"


def test_a_title_says_what_was_computed():
    workload = only(directions=["backward"], masks=["sliding_window"], windows=[256])
    case = Case(workload, "triton", "cuda", Regime("cold", "sustained", "device"))
    assert case.title == "attention backward 16x128 16x1024 sliding_window window=256 bf16 triton cold/sustained/device"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"heads": ["16"]}, "jobs.attention.heads has 16, not HEADSxHEAD_DIM; write for instance 16x128, 32/8x128 or "),
        ({"heads": ["16/6x128"]}, "16/6x128: 16 heads of Q are no multiple of the 6 of K and V; write 16/4x128"),
        ({"heads": ["8/16x128"]}, "8/16x128: heads of K and V go from 1 to the 8 of Q; write 8x128"),
        ({"heads": ["2000x128"]}, "2000x128: heads of Q go from 1 to 1024; write 1024x128"),
        ({"heads": ["16x100"]}, "16x100: columns of a head are a multiple of 8 from 8 to 512; write 16x96"),
        ({"heads": ["16x128/1000"]}, "16x128/1000: columns of a head are a multiple of 8 from 8 to 512; write 16x128/512"),
        ({"heads": ["16x128", None]}, "jobs.attention.heads has null, not HEADSxHEAD_DIM"),
        ({"heads": []}, "jobs.attention.heads is empty"),
        ({"masks": ["casual"]}, "did you mean 'causal'"),
        ({"directions": []}, "jobs.attention.directions is empty"),
        ({"implementations": ["library"]}, "unknown implementation 'library'"),
        (
            {"tokens": [10000]},
            "tokens=[10000] leaves nothing of seq_lens=[1024]: tokens are those of whole sequences; write tokens=[10240]",
        ),
        ({"tokens": [512]}, "write tokens=[1024]"),
        ({"seq_lens": [0]}, "jobs.attention.seq_lens has 0; it goes from 1 to 1048576; write 1"),
        ({"windows": []}, ""),
        ({"windows": [], "masks": ["sliding_window"]}, "jobs.attention.windows is empty"),
        ({"scaling": "row"}, "unknown scaling 'row'"),
        ({"scaling": {"a": None}}, "unknown scaling '{a:null}' in jobs.attention.scaling"),
        ({"scaling": []}, "jobs.attention.scaling is empty"),
        ({"hadamard": "yes"}, "jobs.attention.hadamard=yes is neither true nor false"),
        ({"hadamard": [[True]]}, "jobs.attention.hadamard=[true] is neither true nor false"),
        ({"hadamard": []}, "jobs.attention.hadamard is empty; leave it out for the default"),
        ({"directions": ["backward"], "formats": ["fp8_e4m3"]}, "has no gradients"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_remedy(settings, words):
    given = replace(AttentionSettings(seq_lens=[1024]), **settings)
    if not words:
        JOB.check(given)
        return
    with pytest.raises(UsageError) as raised:
        JOB.check(given)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
