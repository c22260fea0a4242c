"""Words of four 8-bit numbers of a KV cache to the operands of a product: pairs of fp16 in the order of its registers.

Neighbours along the axis that a product sums over share a register.  For scores that is the width of a head, in which a word's
numbers are neighbours already; for the output it is the tokens, so that the words of two tokens are taken apart and put
together by pairs.  fp16 holds e4m3 and int8 exactly:

fp8     one instruction converts two (sm_89 on)
int8    0x6400 | u is 1024 + u in fp16 for a byte u = number + 128, from which 1152 is taken

With ``ASM`` this is said in PTX; without, in Triton's words.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, N803, RET505  # a constant condition needs its else: code after a return is compiled too


def _asm(*lines: str, registers: str) -> tl.constexpr:
    return tl.constexpr("{\n" + f".reg {registers};\n" + "\n".join(f"{line};" for line in lines) + "\n}")


def _from_fp8(target: str, word: str) -> list[str]:
    """Two registers of pairs, from the low and the high half of a word."""
    low, high = (f"cvt.rn.f16x2.e4m3x2 ${int(target) + place}, {half}" for place, half in enumerate(("a", "b")))
    return [f"mov.b32 {{a, b}}, {word}", low, high]


def _from_int8(target: str, word: str) -> list[str]:
    """The same; the word's signs are turned already."""
    pairs = []
    for place, taken in enumerate(("0x4140", "0x4342")):
        register = f"${int(target) + place}"
        pairs += [f"prmt.b32 {register}, {word}, ones, {taken}", f"sub.f16x2 {register}, {register}, off"]
    return pairs


_INT8_CONSTANTS = ("mov.b32 ones, 0x64646464", "mov.b32 off, 0x64806480")
_TURN = "xor.b32 {0}, {1}, 0x80808080"
FP8_ASM = _asm(*_from_fp8("0", "$2"), registers=".b16 a, b")
INT8_ASM = _asm(*_INT8_CONSTANTS, _TURN.format("w", "$2"), *_from_int8("0", "w"), registers=".b32 ones, off, w")
_ZIPPED = ("prmt.b32 l, $4, $5, 0x5140", "prmt.b32 h, $4, $5, 0x7362")
ZIPPED_FP8_ASM = _asm(*_ZIPPED, *_from_fp8("0", "l"), *_from_fp8("2", "h"), registers=".b16 a, b;\n.reg .b32 l, h")
ZIPPED_INT8_ASM = _asm(
    *_INT8_CONSTANTS,
    *_ZIPPED,
    _TURN.format("l", "l"),
    _TURN.format("h", "h"),
    *_from_int8("0", "l"),
    *_from_int8("2", "h"),
    registers=".b32 ones, off, l, h",
)
_TWO_OF_ONE = tl.constexpr("=&r,=&r,r")
_FOUR_OF_TWO = tl.constexpr("=&r,=&r,=&r,=&r,r,r")


@triton.jit
def _fp16(bits):
    """The numbers of 16 bits in the low halves."""
    return bits.to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def _both(pairs):
    """The halves of words of two numbers, on a new last axis."""
    return tl.join(_fp16(pairs), _fp16(pairs >> 16))


@triton.jit
def _byte(words, place: tl.constexpr, FORMAT: tl.constexpr):
    """One number of each word."""
    bits = (words >> (8 * place)).to(tl.int8)
    if FORMAT == "fp8_e4m3":
        return bits.to(tl.float8e4nv, bitcast=True).to(tl.float16)
    else:
        return bits.to(tl.float16)


@triton.jit
def along_words(words, FORMAT: tl.constexpr, ASM: tl.constexpr):
    """The numbers of words (six axes), in their order on a new last axis."""
    if ASM:
        types: tl.constexpr = (tl.int32, tl.int32)
        text: tl.constexpr = FP8_ASM if FORMAT == "fp8_e4m3" else INT8_ASM
        p0, p1 = tl.inline_asm_elementwise(text, _TWO_OF_ONE, [words], types, True, 1)
        numbers = tl.join(_both(p0), _both(p1)).permute(0, 1, 2, 3, 4, 5, 7, 6)
    else:
        even = tl.join(_byte(words, 0, FORMAT), _byte(words, 2, FORMAT))
        odd = tl.join(_byte(words, 1, FORMAT), _byte(words, 3, FORMAT))
        numbers = tl.join(even, odd)
    outer: tl.constexpr = words.shape
    return numbers.reshape(outer[0], outer[1], outer[2], outer[3], outer[4], outer[5], 4)


@triton.jit
def across_words(even, odd, FORMAT: tl.constexpr, ASM: tl.constexpr):
    """The numbers of the words of two tokens on three new last axes: which token, and their places by two bits, low first."""
    if ASM:
        types: tl.constexpr = (tl.int32, tl.int32, tl.int32, tl.int32)
        text: tl.constexpr = ZIPPED_FP8_ASM if FORMAT == "fp8_e4m3" else ZIPPED_INT8_ASM
        p0, p1, p2, p3 = tl.inline_asm_elementwise(text, _FOUR_OF_TWO, [even, odd], types, True, 1)
        low = tl.join(_both(p0), _both(p1))
        high = tl.join(_both(p2), _both(p3))
    else:
        b0 = tl.join(_byte(even, 0, FORMAT), _byte(odd, 0, FORMAT))
        b1 = tl.join(_byte(even, 1, FORMAT), _byte(odd, 1, FORMAT))
        b2 = tl.join(_byte(even, 2, FORMAT), _byte(odd, 2, FORMAT))
        b3 = tl.join(_byte(even, 3, FORMAT), _byte(odd, 3, FORMAT))
        low = tl.join(b0, b1)
        high = tl.join(b2, b3)
    return tl.join(low, high)
