"""Every program that is compiled: our kernels in Triton, and what XLA compiles for our jobs.

Names are what the command line takes: the kernel, then what tells its programs apart.  Sizes are those of large language
models, where they decide which configuration a kernel is given.  Nothing here loads a framework.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from suite.targets.names import TRITON, XLA

ROOMS = "backends/triton"
# What a room's programs depend on elsewhere: how operands are stored, and the sizes of a job.
BESIDE = {
    "quantised": ("backends/torch/gemm", "backends/torch/quantise", f"{ROOMS}/fp8_blocks"),
    "grouped": ("suite/jobs/grouped_gemm", f"{ROOMS}/fp8_blocks"),
    "xla_collective": ("suite/collectives", "suite/jobs/collective"),
    "xla_attention": ("suite/jobs/attention",),
    "xla_decode": ("suite/jobs/decode",),
}


@dataclass(frozen=True, slots=True)
class Program:
    """``make`` is ``module:function`` in this room; ``sources`` are the folders that its code comes from."""

    name: str
    make: str
    given: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    kind: str = TRITON

    @property
    def kernel(self) -> str:
        return self.name.partition(".")[0]


def programs() -> tuple[Program, ...]:
    """In the order in which the matrix shows them."""
    triton = (*_gemm(), *_quantised(), *_grouped(), *_attention(), *_decode(), *_streaming(), *_small())
    return (*triton, *_xla_gemm(), *_xla_attention(), *_xla_decode(), *_xla_calibration(), *_xla_collectives())


def _triton(name: str, make: str, **given: Any) -> Program:
    """Every room builds on ``gemm``, which has the tiles, the devices and the rules of fitting."""
    room = name.partition(".")[0]
    own = () if room in ("gemm", "clock", "read") else (f"{ROOMS}/{room}",)
    return Program(name, make, given, (f"{ROOMS}/gemm", *own, *BESIDE.get(room, ())))


def _gemm() -> Iterator[Program]:
    square = {"m": 8192, "n": 8192, "k": 8192, "layout": "nt"}
    for name in ("bf16", "fp16", "tf32", "int8"):
        yield _triton(f"gemm.{name}", "products:plain", format=name, **square)
    yield _triton("gemm.int8.row", "products:plain", format="int8", scaling="row", **square)
    fp8 = {"format": "fp8_e4m3", **square}
    yield _triton("gemm.fp8_e4m3", "products:plain", promoted=True, scaling="tensor", **fp8)
    yield _triton("gemm.fp8_e4m3.fast", "products:plain", promoted=False, scaling="tensor", **fp8)
    yield _triton("gemm.fp8_e4m3.row", "products:plain", promoted=True, scaling="row", **fp8)
    odd = {"m": 8191, "n": 8191, "k": 8191, "layout": "nt"}  # rows that no descriptor steps over
    yield _triton("gemm.bf16.odd", "products:plain", format="bf16", **odd)


def _quantised() -> Iterator[Program]:
    square, few = {"m": 4096, "n": 4096, "k": 4096}, {"m": 16, "n": 8192, "k": 8192}
    for name in ("w8a16", "w4a16", "mxfp4a16"):
        yield _triton(f"quantised.{name}", "products:quantised", format=name, **square)
        yield _triton(f"quantised.{name}.few", "products:quantised", format=name, **few)
    yield _triton("quantised.w4a16.row", "products:quantised", format="w4a16", m=1, n=8192, k=8192)
    yield _triton("quantised.w4a16.zero", "products:quantised", format="w4a16", zero_point=True, **square)
    blocks = {"format": "fp8_e4m3", "scaling": "block", **square}
    yield _triton("quantised.fp8_e4m3.block", "products:quantised", **blocks)
    yield _triton("quantised.fp8_e4m3.gluon", "products:quantised", by="gluon", **blocks)
    yield _triton("quantised.mxfp8_e4m3", "products:quantised", format="mxfp8_e4m3", **square)
    yield _triton("quantised.mxfp8_e4m3.to_bf16", "products:to_bf16", format="mxfp8_e4m3", **square)


def _grouped() -> Iterator[Program]:
    """A prefill of DeepSeek's experts, and a decoding step of few tokens over many of them."""
    prefill, step = (4, 32768, 6144, 7168), (256, 1024, 4096, 7168, "balanced", 8)
    yield _triton("grouped.bf16", "grouped:grouped", format="bf16", sizes=prefill)
    yield _triton("grouped.bf16.step", "grouped:grouped", format="bf16", sizes=step)
    fp8 = {"format": "fp8_e4m3", "sizes": prefill}
    yield _triton("grouped.fp8_e4m3.row", "grouped:grouped", scales="row", promoted=True, **fp8)
    yield _triton("grouped.fp8_e4m3.block", "grouped:grouped", scales="block", **fp8)
    yield _triton("grouped.fp8_e4m3.gluon", "grouped:grouped", scales="block", by="gluon", **fp8)
    yield _triton("grouped.schedule", "grouped:schedule", format="bf16", sizes=prefill)


def _attention() -> Iterator[Program]:
    heads = {"batch": 2, "q_heads": 32, "kv_heads": 8, "q_len": 4096, "kv_len": 4096}
    wide = {"qk_dim": 128, "v_dim": 128, **heads}
    latent = {"qk_dim": 192, "v_dim": 128, **heads, "kv_heads": 32}  # multi-head latent attention, prefill
    bf16 = {"format": "bf16", "is_causal": True}
    yield _triton("attention.forward.bf16", "attention:forward", **bf16, **wide)
    yield _triton("attention.forward.bf16.full", "attention:forward", format="bf16", **wide)
    yield _triton("attention.forward.bf16.mla", "attention:forward", **bf16, **latent)
    yield _triton("attention.forward.fp16", "attention:forward", format="fp16", is_causal=True, **wide)
    yield _triton("attention.forward.fp8_e4m3", "attention:forward", format="fp8_e4m3", is_causal=True, **wide)
    yield _triton("attention.gluon.bf16", "attention:gluon", **bf16, **wide)
    for name in ("prepare_blocks", "gradients", "round_sums"):
        yield _triton(f"attention.gluon.{name}.bf16", f"attention:gluon_{name}", **bf16, **wide)
    for name in ("row_products", "keys", "queries"):
        yield _triton(f"attention.{name}.bf16", f"attention:{name}", **bf16, **wide)


def _decode() -> Iterator[Program]:
    """Heads of Llama-3-8B, and DeepSeek's latent ones."""
    heads = {"q_heads": 32, "kv_heads": 8, "width": 128, "page_size": 16}
    for name in ("bf16", "fp16", "fp32"):
        yield _triton(f"decode.{name}", "decode:decode", format=name, **heads)
    for name in ("fp8_e4m3", "int8"):
        yield _triton(f"decode.{name}", "decode:decode", format=name, scales="token", **heads)
    latent = {"q_heads": 128, "kv_heads": 1, "width": 512, "tail": 64, "shared_values": True, "page_size": 64}
    yield _triton("decode.bf16.mla", "decode:decode", format="bf16", **latent)


def _streaming() -> Iterator[Program]:
    """Products of Llama-3-8B."""
    qkv = {"n": 6144, "k": 4096, "end": "rotated", "normed": True, "q_heads": 32, "kv_heads": 8, "head_dim": 128}
    yield _triton("streaming.bf16.qkv.1", "streaming:streamed", format="bf16", m=1, page_size=16, **qkv)
    yield _triton("streaming.bf16.qkv.staying", "streaming:staying", format="bf16", m=1, page_size=16, **qkv)
    yield _triton("streaming.bf16.o.8", "streaming:streamed", format="bf16", m=8, n=4096, k=4096, end="residual")
    up = {"n": 28672, "k": 4096, "end": "swiglu", "normed": True}
    yield _triton("streaming.bf16.gate_up.64", "streaming:streamed", format="bf16", m=64, **up)
    yield _triton("streaming.fp16.gate_up.8", "streaming:streamed", format="fp16", m=8, **up)
    yield _triton("streaming.fp32.gate_up.8", "streaming:streamed", format="fp32", m=8, **up)
    yield _triton("streaming.gathered", "streaming:gathered", rows=8, width=4096, kind="bf16")


def _small() -> Iterator[Program]:
    yield _triton("clock", "small:clock")
    yield _triton("read", "small:row_sums", rows=65536, columns=16384)


def _xla(name: str, make: str, **given: Any) -> Program:
    beside = BESIDE.get(name.partition(".")[0], ())
    return Program(name, make, given, ("backends/jax", "configs/hardware", *beside), XLA)


def _xla_gemm() -> Iterator[Program]:
    for name in ("bf16", "fp16", "fp32", "fp64", "tf32", "int8", "fp8_e4m3"):
        yield _xla(f"xla_gemm.{name}", "xla:gemm", format=name, side=8192 if name == "bf16" else 4096)


def _xla_attention() -> Iterator[Program]:
    """Heads of Llama-3-8B, of a model without groups, and DeepSeek's in a prefill."""
    grouped, equal, latent = "32/8x128", "32x128", "128x192/128"
    for name in ("bf16", "fp16", "fp32"):
        yield _xla(f"xla_attention.naive.{name}", "xla:attention", implementation="naive", format=name, heads=grouped)
    naive = {"implementation": "naive", "format": "bf16"}
    yield _xla("xla_attention.naive.bf16.mla", "xla:attention", **naive, heads=latent)
    yield _xla("xla_attention.naive.bf16.backward", "xla:attention", **naive, heads=grouped, direction="backward")
    math = {"implementation": "library_math", "format": "bf16", "heads": grouped}
    yield _xla("xla_attention.library_math.bf16", "xla:attention", **math)
    yield _xla("xla_attention.library_math.bf16.backward", "xla:attention", **math, direction="backward")
    flash = {"implementation": "library_flash", "format": "bf16", "heads": equal}
    yield _xla("xla_attention.library_flash.bf16", "xla:attention", **flash)


def _xla_decode() -> Iterator[Program]:
    """Heads of Llama-3-8B, and DeepSeek's latent ones."""
    pages = {"heads": "32/8x128", "page_size": 16}
    for name in ("bf16", "fp16", "fp32"):
        yield _xla(f"xla_decode.naive.{name}", "xla:decode", implementation="naive", format=name, **pages)
    for name in ("fp8_e4m3", "int8"):
        yield _xla(f"xla_decode.naive.{name}", "xla:decode", implementation="naive", format=name, scaling="token", **pages)
    latent = {"heads": "128/1x576/512", "page_size": 64}
    yield _xla("xla_decode.naive.bf16.mla", "xla:decode", implementation="naive", format="bf16", **latent)
    yield _xla("xla_decode.library_flash.bf16", "xla:decode", implementation="library_flash", format="bf16", **pages)


def _xla_calibration() -> Iterator[Program]:
    for name in ("read", "copy", "triad", "empty"):
        yield _xla(f"xla_calibration.{name}", "xla:calibration", op=name, size_bytes=8 if name == "empty" else 1 << 30)


def _xla_collectives() -> Iterator[Program]:
    for op in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"):
        yield _xla(f"xla_collective.{op}", "xla:collective", op=op, implementation="library")
    yield _xla("xla_collective.all_reduce.own", "xla:collective", op="all_reduce", implementation="own")
