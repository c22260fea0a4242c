"""What is read from the text of compiled programs."""

from pathlib import Path

import pytest

from backends.jax.hlo import Array, audit, parse, product_types, targets

H200 = (Path(__file__).parents[2] / "data/hlo/h200_bf16_loop.txt").read_text()

SMALL = """
HloModule jit_f

%body (arg: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %arg = (s32[], f32[8,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %x = f32[8,8]{1,0} get-tuple-element(%arg), index=1
  %twin = f32[8,8]{1,0} copy(%x)
  %y = f32[8,8]{1,0} custom-call(%x, %twin), custom_call_target="__cublas$gemm", called_computations={}, attributes={a="b"}
  ROOT %t = (s32[], f32[8,8]{1,0}) tuple(%i, %y)
}

%cond (arg.1: (s32[], f32[8,8])) -> pred[] {
  %arg.1 = (s32[], f32[8,8]{1,0}) parameter(0)
  ROOT %less = pred[] constant(true)
}

%wrapped (p: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %p = (s32[], f32[8,8]{1,0}) parameter(0)
  ROOT %w = (s32[], f32[8,8]{1,0}) while(%p), condition=%cond, body=%body
}

ENTRY %main (a: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %early = f32[8,8]{1,0} fusion(%a), kind=kLoop, calls=%fused
  %t.1 = (s32[], f32[8,8]{1,0}) tuple(%zero, %early)
  %c = (s32[], f32[8,8]{1,0}) call(%t.1), to_apply=%wrapped, frontend_attributes={xla_cpu_small_call="true"}
  ROOT %out = f32[8,8]{1,0} get-tuple-element(%c), index=1
}

%fused (q: f32[8,8]) -> f32[8,8] {
  %q = f32[8,8]{1,0} parameter(0)
  ROOT %n = f32[8,8]{1,0} negate(%q)
}
"""


def test_a_real_loop_for_an_h200_does_its_work_every_turn() -> None:
    module = parse(H200)
    found = audit(module, 1024 * 1024)
    assert (found.loops, found.hoisted, found.copied_bytes, found.products) == (1, (), 0, 1)
    assert product_types(module) == {"bf16"}
    assert targets(module) == ()


def test_a_loop_behind_a_call_work_before_it_and_copies_within_are_seen() -> None:
    module = parse(SMALL)
    found = audit(module, 64)
    assert found.loops == 1
    assert found.hoisted == ("early",)
    assert found.copied_bytes == 256
    assert found.products == 1
    assert targets(module) == ("__cublas$gemm",)
    assert product_types(module) == {"f32"}


def test_small_arrays_are_no_work() -> None:
    found = audit(parse(SMALL), 65)
    assert found.hoisted == ()
    assert found.copied_bytes == 0


@pytest.mark.parametrize(
    ("array", "size"), [(Array("bf16", 6), 12), (Array("f8e4m3fn", 6), 6), (Array("pred", 6), 6), (Array("s4", 6), 3)]
)
def test_bytes_of_an_array(array: Array, size: int) -> None:
    assert array.size_bytes == size


# Of what libtpu 0.0.42 made of a bf16 product for a v5e.
V5E = """
HloModule jit_dot_general, is_scheduled=true

%fused_computation (param_0: bf16[1024,1024], param_1: bf16[1024,1024]) -> bf16[1024,1024] {
  %param_0 = bf16[1024,1024]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %param_1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %convolution.1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} convolution(%param_0, %param_1), dim_labels=bf_oi->bf
}

ENTRY %main.1 (lhs.1: bf16[1024,1024], rhs.1: bf16[1024,1024]) -> bf16[1024,1024] {
  %lhs.1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(0)
  %rhs.1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %fusion = bf16[1024,1024]{1,0:T(8,128)(2,1)} fusion(%lhs.1, %rhs.1), kind=kOutput, calls=%fused_computation
}
"""


def test_a_tpus_convolution_is_a_product_with_its_types() -> None:
    assert product_types(parse(V5E)) == {"bf16"}


def test_text_without_an_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="no entry computation"):
        parse("%f (a: f32[]) -> f32[] {\n}\n")
