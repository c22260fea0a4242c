"""Which numbers a CPU has no instructions to multiply, by its instruction-set flags: a library converts those first."""

from collections.abc import Mapping

# Of each format what is missing, and the flags of which one does.
NEEDED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "bf16": ("bf16", ("avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16", "svebf16")),
    "fp16": ("fp16", ("avx512_fp16", "amx_fp16", "fphp", "asimdhp")),
    "int8": ("int8 dot-product", ("avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8", "i8mm", "asimddp")),
}


def lacking(isa: tuple[str, ...]) -> dict[str, str]:
    """``the CPU has no bf16 arithmetic`` for each format of which that is so."""
    return {name: f"the CPU has no {words} arithmetic" for name, (words, flags) in NEEDED.items() if not {*flags} & {*isa}}
