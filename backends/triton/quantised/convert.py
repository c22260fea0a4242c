"""Stored weights to bf16, in registers: a word of 16 bits holds one number of each of its planes.

A plane is what a dot takes: numbers of one place in their words, neighbours along K.  Bits become a number by standing in the
mantissa or the exponent of a bf16 with a fixed other part, which a subtraction or the scale takes out again; nothing is
converted by an instruction for it.  With ``ASM`` two numbers share every instruction (NVIDIA, bf16 only); without, the same is
said in Triton's words, for any ``DTYPE``.

int4    u = code ^ 8 is number + 8, and 0x4300 | u is 128 + u
uint4   0x4300 | code is 128 + code
int8    with its low seven bits b: (0x4300 | b) - (0x4300 | code & 0x80) is the number
mxfp4   sign, exponent and mantissa at their places in a bf16 whose other bits are 0: number * 2^-126, which one multiplication
        takes to 2^-64 of what it is worth, or two to what it is worth, whatever its scale
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, N803

_ONE, _MINUS_ONE, _MINUS_ZERO, _TWO_TO_126 = "0x3F803F80", "0xBF80BF80", "0x80008000", "0x7E807E80"


def _asm(*lines: str, registers: str = "") -> tl.constexpr:
    declared = f".reg .b32 {registers};\n" if registers else ""
    return tl.constexpr("{\n" + declared + "\n".join(f"{line};" for line in lines) + "\n}")


def _nibbles(offset: str, ones: str) -> tl.constexpr:
    """Four planes: (ones | nibble) + offset, times the scale, each rounded once.  Inputs are words, scale, offset."""
    word = "$4"
    shifted = [f"shr.b32 t{j}, {word}, {4 * j}" for j in (1, 2, 3)]
    taken = [f"lop3.b32 ${j}, {word if j == 0 else f't{j}'}, 0x000F000F, {ones}, 0x6A" for j in range(4)]
    moved = [f"fma.rn.bf16x2 ${j}, ${j}, one, off" for j in range(4)]
    scaled = [f"fma.rn.bf16x2 ${j}, ${j}, $5, minus" for j in range(4)]
    constants = [f"mov.b32 one, {_ONE}", f"mov.b32 minus, {_MINUS_ZERO}", f"mov.b32 off, {offset}"]
    return _asm(*constants, *shifted, *taken, *moved, *scaled, registers="one, minus, off, t1, t2, t3")


def _fp4(*, full: bool) -> tl.constexpr:
    """Four planes: sign and magnitude at their places, times 2^126 where ``full``, times the scale; see ``prepack.FP4``."""
    lines = [f"mov.b32 minus, {_MINUS_ZERO}", *([f"mov.b32 large, {_TWO_TO_126}"] if full else [])]
    lines.append("and.b32 $0, $4, 0x81C081C0")
    for j in (1, 2):
        lines += [f"shl.b32 t, $4, {3 * j}", f"and.b32 ${j}, t, 0x81C081C0"]
    lines += ["shl.b32 s, $4, 1", "shr.b32 t, $4, 5", "and.b32 t, t, 0x01400140", "lop3.b32 t, s, 0x80008000, t, 0xEA"]
    lines += ["shr.b32 s, $4, 3", "lop3.b32 $3, s, 0x00800080, t, 0xEA"]
    for j in range(4):
        if full:
            lines.append(f"fma.rn.bf16x2 ${j}, ${j}, large, minus")
        lines.append(f"fma.rn.bf16x2 ${j}, ${j}, ${5 + j}, minus")
    return _asm(*lines, registers="minus, large, s, t" if full else "minus, s, t")


def _codes(ones: str) -> tl.constexpr:
    """Four planes of ones | nibble, as ``_nibbles`` has them before anything is taken off."""
    shifted = [f"shr.b32 t{j}, $4, {4 * j}" for j in (1, 2, 3)]
    taken = [f"lop3.b32 ${j}, {'$4' if j == 0 else f't{j}'}, 0x000F000F, {ones}, 0x6A" for j in range(4)]
    return _asm(*shifted, *taken, registers="t1, t2, t3")


INT4_CODES_ASM = _codes("0x43084308")
UINT4_CODES_ASM = _codes("0x43004300")
INT4_ASM = _nibbles("0xC308C308", "0x43084308")  # -136
UINT4_ASM = _nibbles("$6", "0x43004300")
FP4_ASM = _fp4(full=False)
FP4_FULL_ASM = _fp4(full=True)
INT8_ASM = _asm(
    "shr.b32 t, $2, 8",
    "lop3.b32 $0, $2, 0x007F007F, 0x43004300, 0xEA",
    "lop3.b32 s, $2, 0x00800080, 0x43004300, 0xEA",
    "lop3.b32 $1, t, 0x007F007F, 0x43004300, 0xEA",
    "lop3.b32 t, t, 0x00800080, 0x43004300, 0xEA",
    f"mov.b32 u, {_MINUS_ONE}",
    "fma.rn.bf16x2 $0, s, u, $0",
    "fma.rn.bf16x2 $1, t, u, $1",
    registers="s, t, u",
)
_FOUR_OF_ONE = tl.constexpr("=&r,=&r,=&r,=&r,r")
_FOUR_OF_TWO = tl.constexpr("=&r,=&r,=&r,=&r,r,r")
_FOUR_OF_THREE = tl.constexpr("=&r,=&r,=&r,=&r,r,r,r")
_FOUR_OF_FIVE = tl.constexpr("=&r,=&r,=&r,=&r,r,r,r,r,r")
_TWO_OF_ONE = tl.constexpr("=&r,=&r,r")


@triton.jit
def _bf16(bits):
    """The number with these bits."""
    return bits.to(tl.int16).to(tl.bfloat16, bitcast=True)


@triton.jit
def _widened(bits):
    """The bf16 with these bits, in float32."""
    return (bits << 16).to(tl.float32, bitcast=True)


@triton.jit
def int4_codes(words, DTYPE: tl.constexpr, ASM: tl.constexpr):
    """Words (int16) of int4 to four planes of their numbers + 136."""
    if ASM:
        types: tl.constexpr = (tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16)
        return tl.inline_asm_elementwise(INT4_CODES_ASM, _FOUR_OF_ONE, [words], types, True, 2)
    bits = words.to(tl.int32) ^ 0x8888
    return _codes_of(bits, DTYPE)


@triton.jit
def uint4_codes(words, DTYPE: tl.constexpr, ASM: tl.constexpr):
    """Words (int16) of uint4 to four planes of their codes + 128."""
    if ASM:
        types: tl.constexpr = (tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16)
        return tl.inline_asm_elementwise(UINT4_CODES_ASM, _FOUR_OF_ONE, [words], types, True, 2)
    return _codes_of(words.to(tl.int32), DTYPE)


@triton.jit
def _codes_of(bits, DTYPE: tl.constexpr):
    c0 = ((bits & 0xF) + 128).to(DTYPE)
    c1 = (((bits >> 4) & 0xF) + 128).to(DTYPE)
    c2 = (((bits >> 8) & 0xF) + 128).to(DTYPE)
    c3 = (((bits >> 12) & 0xF) + 128).to(DTYPE)
    return c0, c1, c2, c3


@triton.jit
def int4_planes(words, scale, DTYPE: tl.constexpr, ASM: tl.constexpr):
    """Words (int16) of int4 to four planes of bf16, times ``scale`` (bf16, shaped to be broadcast)."""
    if ASM:
        types: tl.constexpr = (tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16)
        return tl.inline_asm_elementwise(INT4_ASM, _FOUR_OF_TWO, [words, scale], types, True, 2)
    bits, factor = words.to(tl.int32), scale.to(tl.float32)
    p0 = ((_widened((bits & 0xF) ^ 0x4308) - 136.0) * factor).to(DTYPE)
    p1 = ((_widened(((bits >> 4) & 0xF) ^ 0x4308) - 136.0) * factor).to(DTYPE)
    p2 = ((_widened(((bits >> 8) & 0xF) ^ 0x4308) - 136.0) * factor).to(DTYPE)
    p3 = ((_widened(((bits >> 12) & 0xF) ^ 0x4308) - 136.0) * factor).to(DTYPE)
    return p0, p1, p2, p3


@triton.jit
def uint4_planes(words, scale, zero, DTYPE: tl.constexpr, ASM: tl.constexpr):
    """As ``int4_planes``, with a zero point (int16, shaped to be broadcast) taken off the codes."""
    if ASM:
        offset = _bf16(zero.to(tl.int32) | 0xC300)  # -(128 + zero)
        types: tl.constexpr = (tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16)
        return tl.inline_asm_elementwise(UINT4_ASM, _FOUR_OF_THREE, [words, scale, offset], types, True, 2)
    bits, factor, taken = words.to(tl.int32), scale.to(tl.float32), zero.to(tl.float32) + 128.0
    p0 = ((_widened((bits & 0xF) | 0x4300) - taken) * factor).to(DTYPE)
    p1 = ((_widened(((bits >> 4) & 0xF) | 0x4300) - taken) * factor).to(DTYPE)
    p2 = ((_widened(((bits >> 8) & 0xF) | 0x4300) - taken) * factor).to(DTYPE)
    p3 = ((_widened(((bits >> 12) & 0xF) | 0x4300) - taken) * factor).to(DTYPE)
    return p0, p1, p2, p3


@triton.jit
def _light_factor(scale):
    """Bits in bf16 of 2^(scale - 127 + 126 - 64), of an E8M0 ``scale``."""
    return (scale + (126 - 64)) << 7


@triton.jit
def _own_factor(scale):
    """Bits in bf16 of what an E8M0 ``scale`` is worth, from 2^-126 on; 255 is NaN."""
    return tl.where(scale == 0xFF, 0x7FC0, scale << 7)


@triton.jit
def mxfp4_planes(words, scales, DTYPE: tl.constexpr, ASM: tl.constexpr, FULL: tl.constexpr):
    """Words of mxfp4 to four planes of bf16: its numbers where ``FULL``, else 2^-64 of them.

    ``scales`` (int32, shaped to be broadcast) has an E8M0 of each plane, the first in the low byte; see ``prepack`` for the
    ranges.
    """
    c0, c1, c2, c3 = scales & 0xFF, (scales >> 8) & 0xFF, (scales >> 16) & 0xFF, (scales >> 24) & 0xFF
    if FULL:
        s0, s1, s2, s3 = _own_factor(c0), _own_factor(c1), _own_factor(c2), _own_factor(c3)
    else:
        s0, s1, s2, s3 = _light_factor(c0), _light_factor(c1), _light_factor(c2), _light_factor(c3)
    if ASM:
        types: tl.constexpr = (tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16)
        text: tl.constexpr = FP4_FULL_ASM if FULL else FP4_ASM
        factors = [words, _bf16(s0), _bf16(s1), _bf16(s2), _bf16(s3)]
        return tl.inline_asm_elementwise(text, _FOUR_OF_FIVE, factors, types, True, 2)
    bits = words.to(tl.int32)
    large: tl.constexpr = 8.507059173023462e37 if FULL else 1.0  # 2^126
    fourth = ((bits << 1) & 0x8000) | ((bits >> 5) & 0x140) | ((bits >> 3) & 0x80)
    p0 = (_widened(bits & 0x81C0) * large * _widened(s0)).to(DTYPE)
    p1 = (_widened((bits << 3) & 0x81C0) * large * _widened(s1)).to(DTYPE)
    p2 = (_widened((bits << 6) & 0x81C0) * large * _widened(s2)).to(DTYPE)
    p3 = (_widened(fourth) * large * _widened(s3)).to(DTYPE)
    return p0, p1, p2, p3


@triton.jit
def int8_planes(words, DTYPE: tl.constexpr, ASM: tl.constexpr):
    """Words of int8 to two planes of bf16."""
    if ASM:
        types: tl.constexpr = (tl.bfloat16, tl.bfloat16)
        return tl.inline_asm_elementwise(INT8_ASM, _TWO_OF_ONE, [words], types, True, 2)
    bits = words.to(tl.int32)
    p0 = (_widened((bits & 0x7F) | 0x4300) - _widened((bits & 0x80) | 0x4300)).to(DTYPE)
    p1 = (_widened(((bits >> 8) & 0x7F) | 0x4300) - _widened(((bits >> 8) & 0x80) | 0x4300)).to(DTYPE)
    return p0, p1
