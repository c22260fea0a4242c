"""The decode job on paper: axes, work, footprint, tolerance."""

import subprocess
import sys
from dataclasses import replace

import pytest

from suite.case import Case, Regime, shape_label
from suite.errors import UsageError
from suite.jobs.decode import FORMATS, DecodeJob, DecodeSettings, sizes_of
from suite.jobs.decode.cache import cache_bytes
from suite.jobs.decode.formats import scaling_of
from suite.jobs.decode.job import bytes_of, is_in_one_piece, separate_bytes_of
from suite.jobs.decode.sizes import HEADS

JOB = DecodeJob()
H200_RIDGE = 206  # FLOP per byte


def only(**settings):
    (workload,) = JOB.workloads(DecodeSettings(**settings))
    return workload


def test_bytes_of_llama_by_hand():
    """32 sequences of 4096 tokens; 8 KV heads of 128 columns; 256 pages each."""
    workload = only()
    found = bytes_of(workload)
    assert found.kv == 32 * 4096 * 8 * (128 + 128) * 2 == 536_870_912
    assert found.scales == 0
    assert found.table == 32 * 256 * 4 + 32 * 4 == 32_896
    assert found.queries == found.output == 32 * 32 * 128 * 2 == 262_144
    work = JOB.work(workload)
    assert work.compulsory_bytes == 536_870_912 + 32_896 + 2 * 262_144
    assert work.flops == 32 * 32 * 4096 * 2 * (128 + 128)
    assert work.pipe == "bf16"


@pytest.mark.parametrize(
    ("settings", "scale_bytes"),
    [
        ({"formats": ["int8"], "scaling": "token"}, 2 * 10 * 37 * 8 * 4),
        ({"formats": ["fp8_e4m3"], "scaling": "token"}, 2 * 10 * 37 * 8 * 4),
        ({"formats": ["fp8_e4m3"], "scaling": "tensor"}, 2 * 4),
        ({"formats": ["int8"]}, 2 * 4),
    ],
)
def test_eight_bits_count_their_scales_for_keys_and_for_values(settings, scale_bytes):
    workload = only(batches=[10], kv_lens=[37], **settings)
    numbers, table = 10 * 37 * 8 * 256, 10 * 3 * 4 + 10 * 4
    assert JOB.work(workload).compulsory_bytes == numbers + scale_bytes + table + 2 * 10 * 32 * 128 * 2


def test_mla_stores_a_token_once_for_keys_and_values():
    workload = only(heads=["128/1x576/512"], batches=[2], kv_lens=[1000], page_sizes=[64])
    queries, output = 2 * 128 * 576 * 2, 2 * 128 * 512 * 2
    assert JOB.work(workload).compulsory_bytes == 2 * 1000 * 576 * 2 + (2 * 16 + 2) * 4 + queries + output
    assert JOB.work(workload).flops == 2 * 128 * 1000 * 2 * (576 + 512)
    scaled = only(heads=["128/1x576/512"], batches=[2], kv_lens=[1000], page_sizes=[64], formats=["int8"], scaling="token")
    assert bytes_of(scaled).scales == 2 * 1000 * 4


def test_a_shared_prefix_counts_once_in_bytes_and_for_every_sequence_in_operations_and_in_the_table():
    alone, shared = (only(batches=[4], kv_lens=[100], shared_prefixes=[prefix]) for prefix in (0, 64))
    saved = 3 * 64 * 8 * 256 * 2
    assert JOB.work(alone).compulsory_bytes - JOB.work(shared).compulsory_bytes == saved
    assert JOB.work(alone).flops == JOB.work(shared).flops
    assert bytes_of(alone).table == bytes_of(shared).table
    assert separate_bytes_of(shared) == bytes_of(alone)


def test_several_new_tokens_read_the_cache_once_and_see_what_is_before_them():
    one, four = (only(batches=[1], kv_lens=[10], q_lens=[count]) for count in (1, 4))
    assert bytes_of(four).kv == bytes_of(one).kv
    assert bytes_of(four).queries == 4 * bytes_of(one).queries
    assert JOB.work(four).flops == 32 * (7 + 8 + 9 + 10) * 512


def test_smaller_pages_cost_table_and_waste_less():
    small, large = (only(batches=[3], kv_lens=[130], page_sizes=[size]) for size in (1, 128))
    assert (bytes_of(small).table, bytes_of(large).table) == (3 * 130 * 4 + 12, 3 * 2 * 4 + 12)
    assert sizes_of(small).paging.wasted == 0.0
    assert sizes_of(large).paging.wasted == pytest.approx(1 - 130 / 256)


def test_ragged_lengths_have_the_same_tokens_to_read():
    equal, skewed = (only(lengths=[spread]) for spread in ("equal", "skewed"))
    assert bytes_of(equal).kv == bytes_of(skewed).kv
    assert max(sizes_of(skewed).tokens) > 2 * 4096
    assert JOB.tolerance(skewed, ()) > JOB.tolerance(equal, ())


def test_decoding_is_bound_by_memory_and_mla_nearly_by_arithmetic():
    assert JOB.work(only()).arithmetic_intensity < 5
    assert JOB.work(only(heads=["128/1x576/512"])).arithmetic_intensity > H200_RIDGE


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"formats": ["int8"], "scaling": "token"},
        {"page_sizes": [128], "kv_lens": [130]},
        {"heads": ["128/1x576/512"], "shared_prefixes": [1024]},
        {"lengths": ["skewed"]},
    ],
)
def test_memory_is_what_a_launch_touches_and_what_stands_beside_it(settings):
    workload = only(**settings)
    footprint, work, sizes = JOB.footprint(workload), JOB.work(workload), sizes_of(workload)
    assert footprint.set_bytes == work.compulsory_bytes
    held = cache_bytes(sizes.heads, sizes.paging, workload.format, scaling_of(workload))
    assert footprint.input_bytes + footprint.rearranged_bytes >= held
    if workload.format == "bf16" and not sizes.is_ragged:  # a copy in one piece beside it
        assert footprint.rearranged_bytes >= separate_bytes_of(workload).kv


def test_only_one_new_token_a_sequence_is_copied_into_one_piece():
    """A library puts the first of several at the first key, and is not asked."""
    one, several = (only(q_lens=[count]) for count in (1, 2))
    assert is_in_one_piece(one)
    assert not is_in_one_piece(several)
    copy = separate_bytes_of(one).kv
    assert JOB.footprint(one).rearranged_bytes > copy > JOB.footprint(several).rearranged_bytes


@pytest.mark.parametrize("name", FORMATS)
def test_the_tolerance_is_that_of_the_queries_type(name):
    found = JOB.tolerance(only(formats=[name], kv_lens=[131072]), ())
    roundoff = {"fp32": 2.0**-24, "fp16": 2.0**-11}.get(name, 2.0**-8)
    assert 3 * roundoff < found < 3 * roundoff + 1e-4
    if FORMATS[name].is_quantised:
        assert JOB.tolerance(only(formats=[name], activation="fp16"), ()) < found / 4


def test_scaling_and_activation_split_caches_of_eight_bits_only():
    settings = DecodeSettings(formats=["bf16", "int8"], scaling=["tensor", "token"], activation=["bf16", "fp16"])
    found = [(each.format_label, dict(each.params).get("activation")) for each in JOB.workloads(settings)]
    assert found == [
        ("bf16", None),
        ("int8 tensor", "bf16"),
        ("int8 tensor", "fp16"),
        ("int8 token", "bf16"),
        ("int8 token", "fp16"),
    ]


def test_no_two_workloads_are_listed_alike():
    settings = DecodeSettings(
        formats=["bf16", "fp8_e4m3", "int8"],
        heads=["32/8x128", "128/1x576/512"],
        lengths=["equal", "skewed"],
        page_sizes=[1, 16],
        page_orders=["random", "contiguous"],
        shared_prefixes=[0, 256],
        scaling=["tensor", "token"],
        activation=["bf16", "fp16"],
    )
    found = list(JOB.workloads(settings))
    names = {f"{shape_label(each)} {each.format_label}" for each in found}
    assert len(names) == len({each.key for each in found}) == len(found) == 2 * 2 * 2 * 2 * 2 * 9


def test_a_prefix_leaves_out_batches_with_a_sequence_that_has_nothing_else():
    settings = DecodeSettings(kv_lens=[64, 128], shared_prefixes=[0, 64], page_sizes=[16])
    found = [(sizes_of(each).kv_len, sizes_of(each).shared_prefix) for each in JOB.workloads(settings)]
    assert found == [(64, 0), (128, 0), (128, 64)]


def test_repeated_values_of_an_axis_are_one():
    settings = DecodeSettings(heads=["32/8x128", "32/8x128"], batches=[1, 1], kv_lens=[64, 64], scaling=[None, "tensor"])
    assert len(list(JOB.workloads(settings))) == 1


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("32x128", (32, 32, 128, 128)),
        ("32/8x128", (32, 8, 128, 128)),
        ("32/1x128", (32, 1, 128, 128)),
        ("128/1x576/512", (128, 1, 576, 512)),
    ],
)
def test_heads_are_read_as_they_are_written(text, heads):
    assert HEADS.parse(text) == heads
    assert shape_label(only(heads=[text])).startswith(f"{text} 32x1/4096 ")


def test_a_title_says_what_was_computed():
    workload = only(formats=["int8"], scaling="token", shared_prefixes=[1024])
    case = Case(workload, "triton", "cuda", Regime("cold", "sustained", "device"))
    assert case.title == (
        "decode 32/8x128 32x1/4096 activation=bf16 lengths=equal page_order=random page_size=16 shared_prefix=1024 "
        "int8 token triton cold/sustained/device"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"formats": ["fp4"]}, "unknown format 'fp4' in jobs.decode.formats"),
        (
            {"heads": ["32"]},
            "jobs.decode.heads has 32, not HEADSxHEAD_DIM; write for instance 32x128, 32/8x128 or 128/1x576/512",
        ),
        ({"heads": ["4/3x32"]}, "4/3x32: 4 heads of Q are no multiple of the 3 of K and V; write 4/2x32"),
        ({"heads": ["8/32x128"]}, "8/32x128: heads of K and V go from 1 to the 8 of Q; write 8x128"),
        (
            {"heads": ["32/0x128"]},
            "32/0x128: heads of K and V go from 1 to the 32 of Q; write 32/1x128",
        ),  # 0 was taken as not given
        ({"heads": ["32/8x128/0"]}, "columns of a head are a multiple of 8 from 8 to 1024; write 32/8x128/8"),
        ({"heads": ["32x100"]}, "columns of a head are a multiple of 8 from 8 to 1024; write 32x96"),
        (
            {"heads": ["32x128/256"]},
            "values of 256 columns, more than the 128 of keys, whose first columns they are in MLA; write 32x128",
        ),
        ({"heads": ["9" * 5000 + "x128"]}, "not HEADSxHEAD_DIM"),
        ({"heads": []}, "jobs.decode.heads is empty"),
        ({"lengths": ["ragged"]}, "unknown spread of lengths 'ragged'"),
        ({"page_orders": ["randm"]}, "did you mean 'random'"),
        ({"implementations": ["tritn"]}, "did you mean 'triton'"),
        ({"page_sizes": [0]}, "jobs.decode.page_sizes has 0; it goes from 1 to 128; write 1"),
        ({"page_sizes": [256]}, "goes from 1 to 128; write 128"),
        (
            {"page_sizes": [16.0]},
            "jobs.decode.page_sizes has 16.0, which is not a whole number; write 16; it goes from 1 to 128",
        ),
        ({"batches": [0]}, "goes from 1 to 4096"),
        ({"kv_lens": []}, "jobs.decode.kv_lens is empty"),
        ({"q_lens": [9]}, "goes from 1 to 8"),
        (
            {"q_lens": [4], "kv_lens": [2]},
            "leaves nothing: q_lens=4 of kv_lens=2, lengths=equal: some sequence has fewer tokens; "
            "write q_lens=[2], or longer kv_lens",
        ),
        ({"shared_prefixes": [100]}, "write shared_prefixes=[112]"),
        ({"shared_prefixes": [65], "kv_lens": [64]}, "write shared_prefixes=[48]"),
        ({"shared_prefixes": [64], "page_sizes": [128], "kv_lens": [65]}, "write shared_prefixes=[0]"),
        ({"shared_prefixes": [4096]}, "some sequence is no longer than that; write shared_prefixes=[4080], or longer kv_lens"),
        ({"scaling": "row"}, "unknown scaling 'row'"),
        ({"scaling": []}, "jobs.decode.scaling is empty"),
        ({"activation": "fp32"}, "unknown activation 'fp32'"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_remedy(settings, words):
    with pytest.raises(UsageError) as raised:
        JOB.check(replace(DecodeSettings(), **settings))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_sequences_of_one_length_are_planned_without_numpy():
    """Which the command line loads nowhere else."""
    program = (
        "import sys; from suite.jobs.decode import DecodeJob, DecodeSettings\n"
        "job = DecodeJob(); [job.work(each) for each in job.workloads(DecodeSettings(shared_prefixes=[0, 1024]))]\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
