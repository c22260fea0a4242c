"""The grouped_gemm job on paper: axes, rows of groups, work, footprint, tolerance."""

import pytest

from suite import case
from suite.case import Case, Regime, shape_label
from suite.errors import UsageError
from suite.jobs.gemm import GemmJob
from suite.jobs.grouped_gemm import FORMATS, GroupedGemmJob, GroupedGemmSettings, Sizes, sizes_of
from suite.jobs.grouped_gemm.rows import Drawn
from suite.jobs.grouped_gemm.sizes import LARGEST_SIDE, Experts, params_of, parse_experts
from suite.jobs.grouped_gemm.work import bytes_of, idle_bytes, stored_bytes_of
from tests.backends.cases import gemm_case

JOB = GroupedGemmJob()
H200_RIDGE = 206  # FLOP per byte of bf16


def only(**settings):
    (workload,) = JOB.workloads(GroupedGemmSettings(**settings))
    return workload


def expert(**settings):
    return only(groups=[], shapes=[], moe=["256/8x7168x2048"], products=["gate_up"], **settings)


def test_bytes_and_operations_of_deepseeks_by_hand():
    """Four groups of 8192 rows, each times 6144 x 7168 in bf16."""
    workload = only(groups=["4x8192"], shapes=["6144x7168"])
    work, found = JOB.work(workload), bytes_of(workload)
    assert found.a == 32768 * 7168 * 2 == 469_762_048
    assert found.b == 4 * 6144 * 7168 * 2 == 352_321_536
    assert found.ends == 16
    assert found.output == 32768 * 6144 * 2 == 402_653_184
    assert work.compulsory_bytes == 469_762_048 + 352_321_536 + 16 + 402_653_184
    assert work.flops == 2 * 32768 * 6144 * 7168 == 2_886_218_022_912
    assert (work.pipe, work.traffic_bytes) == ("bf16", None)
    assert work.arithmetic_intensity == pytest.approx(2_886_218_022_912 / 1_224_736_784)


def test_the_number_of_groups_is_a_size_that_every_title_has() -> None:
    workload = only(groups=["4x64"], shapes=["256x512"])
    sizes, rest = case.sizes_of(dict(workload.params))
    assert sizes == "256x256x512 groups=4"
    assert "groups" not in rest
    assert shape_label(workload).startswith(f"{sizes} ")


def test_one_group_is_a_plain_product_with_a_place_where_it_ends():
    grouped, plain = (
        JOB.work(only(groups=["1x512"], shapes=["256x128"])),
        GemmJob().work(gemm_case("bf16", 512, 256, 128).workload),
    )
    assert (grouped.flops, grouped.compulsory_bytes) == (plain.flops, plain.compulsory_bytes + 4)


@pytest.mark.parametrize(
    ("settings", "a_bytes", "b_bytes"),
    [
        ({"formats": ["fp8_e4m3"]}, 200 * 256 + 200 * 4, 2 * (384 * 256 + 384 * 4)),
        ({"formats": ["fp8_e4m3"], "scaling": "block"}, 200 * 256 + 200 * 2 * 4, 2 * (384 * 256 + 3 * 2 * 4)),
        ({"formats": ["fp32"]}, 200 * 256 * 4, 2 * 384 * 256 * 4),
    ],
)
def test_scales_count_with_the_numbers_that_carry_them(settings, a_bytes, b_bytes):
    found = bytes_of(only(groups=["2x100"], shapes=["384x256"], **settings))
    assert (found.a, found.b) == (a_bytes, b_bytes)
    assert found.output == 200 * 384 * (4 if settings["formats"] == ["fp32"] else 2)


def test_an_experts_products_are_hidden_to_twice_the_intermediate_and_back():
    found = JOB.workloads(GroupedGemmSettings(groups=[], shapes=[], moe=["256/8x7168x2048"], tokens=[64, 4096]))
    sizes = [sizes_of(workload)[:4] for workload in found]
    assert sizes == [(256, rows, n, k) for rows in (512, 32768) for n, k in ((4096, 7168), (7168, 2048))]
    assert parse_experts("256/8x7168x2048") == Experts(256, 8, 7168, 2048)


def test_only_the_b_of_groups_that_have_rows_is_read():
    """Sixteen tokens take eight experts each: 128 choices leave many of 256 without a row."""
    workload = expert(tokens=[16], spreads=["balanced"])
    sizes = sizes_of(workload)
    busy = sum(count > 0 for count in sizes.rows)
    assert 90 < busy < 120
    assert bytes_of(workload).b == busy * 4096 * 7168 * 2
    assert idle_bytes(workload) == (256 - busy) * 4096 * 7168 * 2
    assert JOB.work(workload).flops == 2 * 128 * 4096 * 7168
    assert JOB.work(workload).arithmetic_intensity < 2


def test_an_experts_step_is_bound_by_memory_and_its_prefill_by_arithmetic():
    assert JOB.work(expert(tokens=[64])).arithmetic_intensity < 3
    assert JOB.work(only(groups=["4x8192"], shapes=["6144x7168"])).arithmetic_intensity > 10 * H200_RIDGE


@pytest.mark.parametrize("spread", ["uniform", "balanced", "skewed"])
@pytest.mark.parametrize(("groups", "tokens", "top_k"), [(4, 1000, 1), (256, 4096, 8), (256, 16, 8), (8, 50, 8), (1, 7, 1)])
def test_rows_add_up_and_no_group_has_more_than_there_are_tokens(spread, groups, tokens, top_k):
    rows = Sizes(groups, tokens * top_k, 1, 1, spread, top_k).rows
    assert (len(rows), sum(rows)) == (groups, tokens * top_k)
    assert 0 <= min(rows) <= max(rows) <= tokens


def test_uniform_rows_differ_by_one_at_most():
    assert Sizes(4, 32768, 1, 1).rows == (8192,) * 4
    assert Sizes(5, 13, 1, 1).rows == (3, 3, 3, 2, 2)


def test_a_balanced_router_spreads_as_chance_does_and_a_skewed_one_by_popularity():
    """4096 tokens take 8 of 256: 128 each in the mean, with a standard deviation of sqrt(128 (1 - 8 / 256)) = 11.1."""
    balanced, skewed = (Sizes(256, 32768, 1, 1, spread, top_k=8).rows for spread in ("balanced", "skewed"))
    deviation = (sum((count - 128) ** 2 for count in balanced) / 256) ** 0.5
    assert 11.1 * 0.85 < deviation < 11.1 * 1.15
    assert max(balanced) < 128 + 5 * 11.1
    ranked = sorted(skewed)
    assert 55 < ranked[128] < 115  # the median of a log-normal of sigma 1 is exp(-1/2) of its mean: 78
    assert 6 < max(skewed) / 128 < 25
    assert ranked[-26:] != ranked[:26]
    assert skewed.index(max(skewed)) not in (0, 255)


def test_rows_are_the_same_wherever_they_are_asked_for():
    """What a router chose is part of the workload."""
    assert Sizes(8, 48, 1, 1, "skewed", top_k=2).rows == (0, 8, 1, 1, 12, 17, 2, 7)
    assert Sizes(8, 48, 1, 1, "balanced", top_k=2).rows == (7, 6, 3, 6, 5, 10, 6, 5)
    assert Sizes(16, 12, 1, 1, "skewed").rows == (0, 0, 1, 0, 4, 3, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0)


def test_the_bits_that_they_are_drawn_from_are_those_of_a_published_generator():
    """PCG64 seeded with 0, as NumPy's tests pin it (numpy/random/tests/data/pcg64-testset-2.csv)."""
    first = int(Drawn(0).uniform(1)[0] * 2**53)
    assert first == 0xA30FEBCFD9C2825F >> 11


def test_rows_that_fill_a_group_up_are_stored_and_count_for_nothing():
    plain, filled = (only(groups=["3x100"], shapes=["256x128"], alignments=[multiple]) for multiple in (1, 128))
    assert JOB.work(plain) == JOB.work(filled)
    assert sizes_of(filled).stored_rows == (128, 128, 128)
    assert sizes_of(filled).ends == (128, 256, 384)
    more = 3 * 28
    assert stored_bytes_of(filled).total - bytes_of(filled).total == more * (128 + 256) * 2
    empty = sizes_of(expert(tokens=[2], spreads=["balanced"], alignments=[128]))
    assert {stored for count, stored in zip(empty.rows, empty.stored_rows, strict=True) if not count} == {0}
    assert (
        Case(plain, "loop", "cpu", Regime("cold", "sustained", "device")).key
        != Case(filled, "loop", "cpu", Regime("cold", "sustained", "device")).key
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"groups": ["4x8192"], "shapes": ["6144x7168"]},
        {"groups": [], "shapes": [], "moe": ["256/8x7168x2048"], "tokens": [16], "products": ["down"], "spreads": ["skewed"]},
        {"groups": ["4x100"], "shapes": ["256x512"], "formats": ["fp8_e4m3"], "scaling": "block", "alignments": [128]},
    ],
)
def test_memory_is_what_a_launch_touches_and_what_stands_beside_it(settings):
    workload = only(**settings)
    footprint, sizes = JOB.footprint(workload), sizes_of(workload)
    assert footprint.set_bytes == JOB.work(workload).compulsory_bytes
    width = 1 if workload.format == "fp8_e4m3" else 2
    held = (sizes.height + sizes.groups * sizes.n) * sizes.k * width + sizes.height * sizes.n * 2
    assert footprint.set_bytes + footprint.rearranged_bytes >= held
    returned = sizes.height * sizes.n * 2
    assert footprint.total_bytes(3, implementation="library") - footprint.total_bytes(3) == 3 * returned


def test_numbers_of_8_bits_are_converted_where_nothing_takes_them_a_whole_and_one_b():
    by_row, blocks, plain = (
        JOB.footprint(only(groups=["4x100"], shapes=["256x512"], formats=[name], scaling=scaling))
        for name, scaling in (("fp8_e4m3", "row"), ("fp8_e4m3", "block"), ("bf16", None))
    )
    assert by_row.rearranged_bytes >= 4 * 400  # scales of A, each group's at a multiple of 16 bytes
    wide = 2 * (400 + 256) * 512
    assert (by_row.emulation_bytes, blocks.emulation_bytes, plain.emulation_bytes) == (wide, 0, 0)
    assert blocks.scratch_bytes - plain.scratch_bytes == wide


@pytest.mark.parametrize("name", FORMATS)
def test_the_tolerance_is_that_of_a_plain_product_of_the_same_depth(name):
    workload = only(groups=["2x64"], shapes=["128x1024"], formats=[name])
    (switches, *_) = JOB.switches(GroupedGemmSettings(), workload)
    semantics = {"scaling": "row"} if name == "fp8_e4m3" else {}
    plain = gemm_case(name, 64, 128, 1024, semantics=semantics)
    assert JOB.tolerance(workload, switches) == GemmJob().tolerance(plain.workload, switches)


def test_constant_data_add_up_to_what_every_output_holds():
    """A quarter for each term, in fp16, whose largest number is 65504."""
    assert LARGEST_SIDE / 4 < 65504


def test_switches_are_of_scales_of_rows_alone():
    settings = GroupedGemmSettings(
        formats=["bf16", "fp8_e4m3"], shapes=["128x128"], scaling=["row", "block"], fp8_fast_accum=[True, False]
    )
    found = {workload.format_label: JOB.switches(settings, workload) for workload in JOB.workloads(settings)}
    both = ((("fp8_fast_accum", True),), (("fp8_fast_accum", False),))
    assert found == {"bf16": ((),), "fp8_e4m3 row": both, "fp8_e4m3 block": ((),)}


def test_what_is_asked_for_twice_is_measured_once_and_everything_has_a_title_of_its_own():
    settings = GroupedGemmSettings(
        groups=["4x8192", "4x8192", "8x4096"], shapes=["4096x4096"], moe=["8/1x4096x2048"], tokens=[32768],
        products=["gate_up", "down"], spreads=["uniform", "skewed"], alignments=[1, 128],
    )  # fmt: skip
    found = list(JOB.workloads(settings))
    titles = [shape_label(workload) for workload in found]
    assert len(found) == len(set(titles)) == len({workload.key for workload in found}) == 3 * 4
    assert titles[0] == "32768x4096x4096 groups=4 spread=uniform"
    assert titles[-1] == "32768x4096x2048 groups=8 alignment=128 spread=skewed"  # gate_up of one expert a token is 8x4096


@pytest.mark.parametrize("sizes", [Sizes(4, 32, 8, 16), Sizes(4, 32, 8, 16, "skewed", top_k=2, alignment=64)])
def test_parameters_are_read_back_as_they_were(sizes):
    workload = only(groups=["4x8192"], shapes=["6144x7168"])
    assert sizes_of(type(workload)("grouped_gemm", "bf16", params_of(sizes))) == sizes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"formats": ["bf61"]}, "unknown format 'bf61' in jobs.grouped_gemm.formats; did you mean 'bf16'?"),
        ({"formats": []}, "jobs.grouped_gemm.formats is empty; name at least one of bf16, fp16, fp32, fp8_e4m3"),
        ({"spreads": ["skew"]}, "unknown spread 'skew' in jobs.grouped_gemm.spreads; did you mean 'skewed'?"),
        ({"groups": ["4"]}, "groups '4' is not GROUPSxROWS; write for instance 4x8192"),
        ({"groups": ["4000x2"]}, "groups '4000x2' has 4000 groups; it goes from 1 to 1024"),
        ({"groups": ["1024x2048"]}, "groups '1024x2048' has 2097152 rows together; it goes from 1 to 1048576"),
        ({"groups": []}, "jobs.grouped_gemm has shapes and no groups: each of one is taken with each of the other"),
        ({"groups": [], "shapes": []}, "jobs.grouped_gemm has neither groups nor moe"),
        ({"shapes": ["128x0"]}, "shape '128x0' has 0 as k; it goes from 1 to 131072"),
        ({"moe": ["8x4x4"]}, "mixture '8x4x4' is not EXPERTS/TOP_KxHIDDENxINTERMEDIATE"),
        ({"moe": ["8/9x4x4"]}, "mixture '8/9x4x4' has 9 experts for each token; it goes from 1 to 8"),
        ({"tokens": [0]}, "jobs.grouped_gemm.tokens has 0; it goes from 1 to 32768"),
        ({"alignments": []}, "jobs.grouped_gemm.alignments is empty"),
        ({"groups": ["1024x1000"], "alignments": [1, 128]}, "1024000 rows in 1024 groups, each filled up to a multiple of 128"),
        ({"moe": ["64/64x64x64"], "tokens": [32768]}, "2097152 rows in 64 groups, each filled up to a multiple of 1"),
        ({"scaling": "tensor"}, "unknown scaling 'tensor' in jobs.grouped_gemm.scaling"),
        ({"scaling": []}, "jobs.grouped_gemm.scaling is empty; leave it out for the default"),
        ({"fp8_fast_accum": "yes"}, "jobs.grouped_gemm.fp8_fast_accum=yes is neither true nor false"),
        (
            {"formats": ["fp8_e4m3"], "scaling": "block", "shapes": ["192x256"]},
            "fp8_e4m3 in blocks has one scale for every 128 rows of B: with n=192 the last rows of a group would share theirs "
            "with the first of the next; pad N to 256",
        ),
        ({"formats": ["fp8_e4m3"], "scaling": "block", "shapes": ["128x192"]}, "and k=192 is no multiple; pad K to 256"),
    ],
)
def test_what_names_nothing_measurable_is_refused_with_the_remedy(settings, said):
    with pytest.raises(UsageError) as refused:
        JOB.check(GroupedGemmSettings(**settings))
    assert said in str(refused.value)


def test_one_group_in_blocks_may_end_within_one():
    JOB.check(GroupedGemmSettings(groups=["1x64"], shapes=["192x256"], formats=["fp8_e4m3"], scaling="block"))


# Of the first of the default shapes, by the library, cold on CUDA: what was measured once must be found again.
KEYS = {
    ("bf16", None): ("57ad1cb59e5855ba", "21252019f0efea10"),
    ("fp8_e4m3", "row"): ("d822e79a1e7b24d4", "eb17b6405973bd00"),
    ("fp8_e4m3", "block"): ("821dc044967e5c8f", "c152490b49499471"),
}


@pytest.mark.parametrize(("name", "scaling"), KEYS)
def test_keys_stay_what_they_are(name, scaling):
    settings = GroupedGemmSettings(formats=[name], scaling=scaling)
    workload = next(iter(JOB.workloads(settings)))
    (switches,) = JOB.switches(settings, workload)
    case = Case(workload, "library", "cuda", Regime("cold", "sustained", "device"), switches, JOB.method_version)
    assert (workload.key, case.key) == KEYS[name, scaling]
