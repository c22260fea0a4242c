"""The products of ``quantised_gemm``, those with the hardest limits first; each is made when its turn comes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.peers.quantised_gemm_scaled import fp8_in_blocks, mxfp8
from tests.peers.quantised_gemm_ways import Case, Limit, Shape
from tests.peers.quantised_gemm_weights import weight_only


def cases() -> Iterator[Callable[[], Case]]:
    """What a limit is given for first; each is made when its turn comes."""
    from backends.triton.quantised.weight_config import Config

    def few(shape: Shape) -> list[Any]:
        """Tiles of few rows of X; split along K into about as many programs as the device holds at once, fewer and more."""
        high = shape.n > 8192
        tiles: list[tuple[Config, tuple[int, ...]]] = [
            (Config(64, 16, 4, 4, 3), (1, 2) if high else (2,)),
            (Config(64, 16, 2, 4, 4), (1, 2) if high else (2, 3)),
            (Config(128, 16, 2, 4, 4), (1, 2) if high else (4,)),
            (Config(128, 16, 2, 8, 4), (1,) if high else (4,)),
            (Config(128, 16, 4, 8, 3), (2,)),
        ]
        if shape.m <= 8:  # beside the kernel of few rows
            return [Config(128, 16, 2, 4, 4, split=1 if high else 4), Config(64, 8, 2, 4, 4, split=1 if high else 4)]
        return [config._replace(split=split) for config, splits in tiles for split in splits]

    large = [
        Config(128, 256, 1, 8, 3),
        Config(256, 128, 1, 8, 3),
        Config(256, 128, 1, 8, 4),
        Config(128, 128, 1, 8, 3),
        Config(64, 256, 1, 4, 2),
        Config(128, 256, 1, 8, 3, group=16),
    ]
    square, wide = Shape(4096, 4096, 4096), Shape(4096, 8192, 8192)
    fused = "fused"
    for shape, least in (
        (Shape(1, 8192, 8192), 0.65),
        (Shape(16, 8192, 8192), 0.50),
        (Shape(1, 8192, 28672), 0.80),
        (Shape(16, 8192, 28672), 0.60),
    ):
        yield partial(weight_only, "w4a16", shape, "w4a16", "int4", few(shape), [Limit(fused, "", least)])
    yield partial(weight_only, "w4a16", square, "w4a16", "int4", large, [Limit(fused, "cuBLAS bf16", 0.88)])
    mxfp4_limits = [Limit(fused, "cuBLAS bf16", 0.85), Limit(fused, "dot_scaled", 1.8)]
    yield partial(weight_only, "mxfp4", square, "mxfp4", "mxfp4", large[:5], mxfp4_limits)
    # By what the suite takes; the same multiplied as fp8 stands beside it.
    mx_limits = [Limit("converted", "cuBLAS bf16", 0.80), Limit("converted", "dot_scaled", 1.8)]
    yield partial(mxfp8, square, mx_limits)
    yield partial(fp8_in_blocks, square, [Limit("blocks", "unchecked: _scaled_mm by rows, fast", 0.75)])
    for shape, least in ((Shape(1, 28672, 8192), 0.80), (Shape(16, 28672, 8192), 0.60)):
        yield partial(weight_only, "w4a16", shape, "w4a16", "int4", few(shape), [Limit(fused, "", least)])
    yield partial(fp8_in_blocks, Shape(8192, 8192, 8192), [Limit("blocks", "unchecked: _scaled_mm by rows, fast", 0.75)])
    yield partial(weight_only, "w4a16", wide, "w4a16", "int4", large[:3], [Limit(fused, "cuBLAS bf16", 0.88)])
    zero = [Config(128, 16, 2, 8, 4, split=4)]
    yield partial(weight_only, "w4a16 zero", Shape(1, 8192, 8192), "w4a16", "uint4", zero, ())
    yield partial(weight_only, "w4a16 zero", square, "w4a16", "uint4", large[:2], ())
    eight = [Config(128, 256, 2, 8, 3), Config(128, 128, 2, 4, 3), Config(256, 128, 2, 8, 3)]
    yield partial(weight_only, "w8a16", square, "w8a16", "int8", eight, [Limit(fused, "cuBLAS bf16", 0.88)])
    few_eight = [Config(64, 16, 4, 4, 4, split=3), Config(128, 16, 2, 8, 4, split=4), Config(32, 16, 4, 4, 4, split=1)]
    for m, least in ((1, 0.65), (16, 0.50)):
        yield partial(weight_only, "w8a16", Shape(m, 8192, 8192), "w8a16", "int8", few_eight, [Limit(fused, "", least)])
    some = Shape(16, 8192, 8192)
    yield partial(weight_only, "mxfp4", some, "mxfp4", "mxfp4", few(some)[:5], ())
    middle = [Config(64, 64, 2, 4, 3, split=4), Config(128, 64, 1, 4, 4, split=8), Config(64, 64, 1, 4, 4, split=4)]
    yield partial(weight_only, "w4a16", Shape(64, 8192, 8192), "w4a16", "int4", middle, ())
