"""What the tools say of compiled kernels, on small texts as they wrote them."""

import pytest

pytest.importorskip("triton")

from backends.targets import amd, nvidia
from backends.triton.gemm.instructions import matrix_instructions

# cuobjdump 13.1 of kernels of this project for sm_90a; the second spills.
USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function read_nvidia:
  REG:12 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:552 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SPILLING = " Function streamed:\n  REG:255 STACK:192 SHARED:0 LOCAL:0 CONSTANT[0]:664 TEXTURE:0 SURFACE:0 SAMPLER:0\n"
SECTIONS = """
64bit elf: type=2, abi=7, sm=90a, toolkit=128, flags = 0x5a0d5a
Sections:
Index Offset   Size ES Align                      Type    Flags Link     Info Name
    3    398    108 18  8                       SYMTAB        0    2        9 .symtab
    7    5fe    40a  0  1                     PROGBITS        0    0        0 .nv_debug_ptx_txt
    d    af0     18 18  8                         RELA       40    3        4 .rela.debug_frame
    e    b80    200  0 80                     PROGBITS        6    3        9 .text.read_nvidia
    f    d80      0  0  1                       NOBITS        3    0        0 .nv.shared.reserved.0
   10    d80    228  0  4                     PROGBITS       42    0        e .nv.constant0.read_nvidia

.section .strtab
"""
PTX = """
.version 8.7
.target sm_90a
.visible .entry forward_on_hopper(
	.param .align 64 .b8 forward_on_hopper_param_0[128]
)
.reqntid 384
{
	wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1, %f2}, %rd1, %rd2, %p1, 1, 1, 0, 1;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %f1 }, { %r1 }, { %r2 }, { %f1 };
"""
BLACKWELL = "	@%p5 tcgen05.mma.cta_group::1.kind::f8f6f4 [ %r70 + 0 ], %rd9, %rd10, %r71, %p6;\n"
AMDGCN = """
	v_mfma_f32_32x32x8_bf16 v[0:15], v[100:101], v[116:117], v[0:15]
	v_wmma_f32_16x16x16_bf16 v[1:8], v[17:24], v[25:32], v[1:8]
; Kernel info:
; codeLenInByte = 6488
; TotalNumSgprs: 42
; NumVgprs: 182
; ScratchSize: 16
; Occupancy: 2
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     32
    .args:
      - .address_space:  global
        .offset:         0
    .group_segment_fixed_size: 0
    .max_flat_workgroup_size: 512
    .name:           gemm_by_pointers
    .private_segment_fixed_size: 16
    .sgpr_count:     42
    .sgpr_spill_count: 0
    .vgpr_count:     214
    .vgpr_spill_count: 4
    .wavefront_size: 64
"""
RDNA = AMDGCN.replace("  - .agpr_count:     32\n", "  -\n").replace(".wavefront_size: 64", ".wavefront_size: 32")


@pytest.mark.parametrize(("said", "registers", "spilled"), [(USAGE, 12, 0), (SPILLING, 255, 192)])
def test_registers_and_spills_of_nvidias_kernels(said: str, registers: int, spilled: int) -> None:
    assert nvidia.usage(said) == {"registers": registers, "spilled_bytes": spilled}


def test_code_is_the_section_of_instructions_alone() -> None:
    assert nvidia.code_bytes(SECTIONS) == 0x200


def test_warps_are_those_of_the_launch_with_all_roles() -> None:
    assert nvidia.warps(PTX) == 12


def test_a_text_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing of registers"):
        nvidia.usage("Resource usage:\n")
    with pytest.raises(ValueError, match="nothing of threads"):
        nvidia.warps(".version 8.7\n")
    with pytest.raises(ValueError, match="the assembly has no codeLenInByte"):
        amd.read(AMDGCN.replace("codeLenInByte", "codeLen"))


def test_amds_registers_are_of_both_kinds_together() -> None:
    assert amd.read(AMDGCN) == {
        "registers": 214,
        "scalar_registers": 42,
        "spilled_bytes": 16,
        "accumulation_registers": 32,
        "warps": 8,
        "code_bytes": 6488,
    }


def test_waves_have_the_width_that_is_written_and_chips_without_accumulation_registers_none() -> None:
    found = amd.read(RDNA)
    assert (found["warps"], found["accumulation_registers"]) == (16, 0)


def test_matrix_instructions_keep_their_types() -> None:
    assert matrix_instructions(PTX) == [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
    ]
    assert matrix_instructions(BLACKWELL) == ["tcgen05.mma.cta_group::1.kind::f8f6f4"]
    assert matrix_instructions(AMDGCN) == ["v_mfma_f32_32x32x8_bf16", "v_wmma_f32_16x16x16_bf16"]
