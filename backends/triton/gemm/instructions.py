"""Which matrix instructions a compiled kernel has: what compiles for a format need not multiply in it."""

import re

# wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16, tcgen05.mma.cta_group::1.kind::f16, mma.sync.aligned.m16n8k32...
_PTX = re.compile(r"\b(?:wgmma\.mma_async|tcgen05\.mma|mma\.sync)\.[\w.:]+")
_AMD = re.compile(r"\bv_(?:mfma|wmma|smfmac)_\w+")

# What the name of an instruction that multiplies the format itself contains.  tcgen05 names a kind: f16 is bf16's too, f8f6f4
# that of any narrow format, as on AMD.
_NATIVE = {
    "tf32": r"tf32|_xf32",
    "bf16": r"bf16|kind::f16",
    "fp16": r"(?<!b)f16",
    "int8": r"\.s8\.s8|kind::i8|i8",
    "fp8_e4m3": r"e4m3\.e4m3|f8f6f4|_fp8_fp8",
}


def matrix_instructions(asm: str) -> list[str]:
    """Names in PTX or AMD's assembly, sorted, without repeats."""
    return sorted(set(_PTX.findall(asm)) | set(_AMD.findall(asm)))


def foreign(names: list[str], format_name: str) -> list[str]:
    """The instructions among ``names`` that multiply something else than the format's own numbers."""
    return [name for name in names if not re.search(_NATIVE[format_name], name)]
