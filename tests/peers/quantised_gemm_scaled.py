"""Products of ``quantised_gemm`` with both operands in eight bits: mxfp8, and fp8 in scaled blocks."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from tests.peers.quantised_gemm_ways import (
    DEVICE,
    Case,
    Limit,
    Reference,
    Shape,
    Way,
    bf16_mm,
    copied,
    copies_of,
    double,
    quantised_of,
    ready,
)


def mxfp8(shape: Shape, limits: Sequence[Limit]) -> Case:
    from backends.triton.gemm import config as plain
    from backends.triton.gemm.call import Matrices
    from backends.triton.gemm.call import call as plain_call
    from backends.triton.gemm.device import of_torch
    from backends.triton.gemm.problem import Problem
    from backends.triton.quantised.prepack import by_blocks, e8m0_words
    from backends.triton.quantised.scaled import Operand, mxfp8_as_it_is, to_bf16
    from backends.triton.quantised.scaled_config import Config

    m, n, k = shape
    a, b = quantised_of("mxfp8_e4m3", m, k), quantised_of("mxfp8_e4m3", n, k)
    a64, b64 = double(a), double(b)
    output = torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16)
    reference = Reference(a64, b64)
    bf16_sets = copied([a64.to(torch.bfloat16), b64.to(torch.bfloat16)], 3)
    del a64, b64
    copies = copies_of(a.data.nbytes + b.data.nbytes + output.nbytes)
    parts = [a.data.view(torch.uint8), a.scales.view(torch.uint8), b.data.view(torch.uint8), b.scales.view(torch.uint8)]
    sets = copied(parts, copies)
    wide = [torch.empty(rows, k, device=DEVICE, dtype=torch.bfloat16) for rows in (m, n)]

    def as_it_is(config: Any) -> Way:
        calls = []
        for a_data, a_scales, b_data, b_scales in sets:
            a_, b_ = (
                Operand(data.view(torch.float8_e4m3fn), by_blocks(e8m0_words(scales)))
                for data, scales in ((a_data, a_scales), (b_data, b_scales))
            )
            calls.append(mxfp8_as_it_is(config, a_, b_, output))
        return ready(f"fp8, scaled sums {config.label}", calls, output)

    def converted(config: Any) -> Way:
        problem, device = Problem("bf16", m, n, k, "nt"), of_torch(0)
        product = plain_call(problem, config or plain.default(problem, device), device, Matrices(wide[0], wide[1], output))
        calls = []
        for a_data, a_scales, b_data, b_scales in sets:
            passes = [
                to_bf16(data.view(torch.float8_e4m3fn), scales, out)
                for data, scales, out in ((a_data, a_scales, wide[0]), (b_data, b_scales, wide[1]))
            ]
            calls.append([*passes, product])
        return ready("converted, then multiplied in bf16", calls, output)

    def ways() -> Iterator[Callable[[], Way]]:
        yield lambda: bf16_mm("cuBLAS bf16", bf16_sets, output)
        yield lambda: converted(None)
        for config in (Config(128, 128, 8, 6), Config(128, 64, 4, 6), Config(64, 128, 4, 6)):
            yield partial(as_it_is, config)
        for tiles in ((128, 128, 128, 8, 3, 0), (128, 256, 128, 8, 2, 0), (128, 128, 64, 8, 4, 1)):
            yield partial(_dot_scaled, sets, output, tiles)

    return Case(f"mxfp8 {shape.title}", shape, 0, copies, reference, ways, limits)


def fp8_in_blocks(shape: Shape, limits: Sequence[Limit]) -> Case:
    from backends.triton.fp8_blocks.hopper_call import Tensors
    from backends.triton.gemm.device import of_torch
    from backends.triton.quantised import on_hopper, scaled
    from backends.triton.quantised.prepack import by_blocks
    from backends.triton.quantised.problem import Problem
    from backends.triton.quantised.scaled_config import Config

    m, n, k = shape
    a, b = quantised_of("fp8_e4m3", m, k, "1x128"), quantised_of("fp8_e4m3", n, k, "128x128")
    output = torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16)
    reference = Reference(double(a), double(b))
    copies = copies_of(a.data.nbytes + b.data.nbytes + output.nbytes)
    parts = [a.data.view(torch.uint8), by_blocks(a.scales), b.data.view(torch.uint8), b.scales]
    sets = copied(parts, copies)
    fp8 = torch.float8_e4m3fn

    def ours(config: Any) -> Way:
        calls = []
        for a_data, a_scales, b_data, b_scales in sets:
            operands = scaled.Operand(a_data.view(fp8), a_scales), scaled.Operand(b_data.view(fp8), b_scales)
            calls.append(scaled.fp8_in_blocks(config, *operands, output))
        return ready(f"blocks {config.label}", calls, output)

    def gluon(config: Any) -> Way:
        calls = []
        for a_data, a_scales, b_data, b_scales in sets:
            tensors = Tensors(a_data.view(fp8), b_data.view(fp8), output, a_scales, b_scales)
            calls.append(on_hopper.call(config, of_torch(0), tensors))
        return ready(f"blocks gluon {config.label}", calls, output)

    def row_scaled(fast: bool) -> Way:
        """Other numbers than the reference's: timed, not checked."""
        ones = torch.ones(m, 1, device=DEVICE), torch.ones(1, n, device=DEVICE)
        other = torch.empty_like(output)
        launches = [
            partial(
                torch._scaled_mm,
                a_data.view(fp8),
                b_data.view(fp8).t(),
                scale_a=ones[0],
                scale_b=ones[1],
                out_dtype=torch.bfloat16,
                use_fast_accum=fast,
                out=other,
            )
            for a_data, _, b_data, _ in sets
        ]
        return Way(f"unchecked: _scaled_mm by rows, {'fast' if fast else 'promoted'} sums", launches, other)

    def library_blocks() -> Way:
        def launch(a_data: torch.Tensor, a_scales: torch.Tensor, b_data: torch.Tensor, b_scales: torch.Tensor) -> None:
            torch._scaled_mm(
                a_data.view(fp8),
                b_data.view(fp8).t(),
                scale_a=a_scales[:, :m].t(),
                scale_b=b_scales.t(),
                out_dtype=torch.bfloat16,
                out=output,
            )

        return Way("_scaled_mm in blocks", [partial(launch, *each) for each in sets], output)

    def ways() -> Iterator[Callable[[], Way]]:
        yield partial(row_scaled, True)
        yield partial(row_scaled, False)
        for config in (
            Config(128, 128, 8, 4),
            Config(64, 128, 4, 4),
            Config(64, 128, 4, 3),
            Config(128, 128, 8, 3, registers=128),
            Config(128, 64, 4, 4),
        ):
            yield partial(ours, config)
        problem = Problem("fp8_e4m3", m, n, k)
        if on_hopper.reason(problem, of_torch(0)) is None:
            for hopper_config in on_hopper.candidates(problem, of_torch(0)):
                yield partial(gluon, hopper_config)
        yield library_blocks

    return Case(f"fp8 blocks {shape.title}", shape, 0, copies, reference, ways, limits)


def _dot_scaled(sets: Any, output: torch.Tensor, tiles: tuple[int, ...]) -> Way:
    from tests.peers.dot_scaled import label, mxfp8_call

    calls = [mxfp8_call(a, a_scales, b, b_scales, output, tiles) for a, a_scales, b, b_scales in sets]
    return ready(label(tiles), calls, output)
