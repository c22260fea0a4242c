"""Products of ``quantised_gemm`` with weights of four and eight bits: fused, dequantised first, torch's own, and in bf16."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
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
    normal,
    quantised_of,
    ready,
)


def weight_only(title: str, shape: Shape, format_name: str, kind: str, configs: Sequence[Any], limits: Sequence[Limit]) -> Case:
    """Ways of one shape; the configuration that the model of the device would take is among ``configs`` or beside them."""
    from backends.triton.gemm.device import of_torch
    from backends.triton.quantised.few_rows import config as few_rows
    from backends.triton.quantised.few_rows.order import Ordered
    from backends.triton.quantised.few_rows.product import call as few_call
    from backends.triton.quantised.few_rows.product import scratch
    from backends.triton.quantised.prepack import prepacked
    from backends.triton.quantised.problem import Problem
    from backends.triton.quantised.weight_config import candidates
    from backends.triton.quantised.weights import Conversion, Scratch, call

    m, n, k = shape
    torch.manual_seed(0)
    x = normal(m, k).to(torch.bfloat16)
    quantised = quantised_of(format_name, n, k, zero_point=kind == "uint4")
    wide = double(quantised)
    packed = prepacked(quantised)
    weight_bytes = quantised.stored_bytes.total
    output = torch.empty(m, n, device=DEVICE, dtype=torch.bfloat16)
    copies = copies_of(weight_bytes + x.nbytes + output.nbytes)
    sets = copied([x, packed.words, packed.scales, packed.zero_points], copies)
    bf16_sets = copied([x, wide.to(torch.bfloat16)], copies_of(wide.nbytes / 4))
    reference = Reference(x.to(torch.float64), wide)
    del wide

    problem = Problem("mxfp4a16" if format_name == "mxfp4" else format_name, m, n, k, zero_point=kind == "uint4")
    device = of_torch(0)
    is_few = few_rows.reason(problem, device) is None
    of_few = few_rows.candidates(problem, device)[:8] if format_name == "w4a16" and m <= 2 * few_rows.COLUMNS else []
    default = [*(of_few if is_few else []), *candidates(problem, device)][0]

    def ours(config: Any) -> Way:
        held, how = Scratch.of(problem, config, output.device), Conversion(kind, asm=True, described=True)
        calls = [
            call(problem, how, config, x_, replace(packed, words=words, scales=scales, zero_points=zeros), output, held)
            for x_, words, scales, zeros in sets
        ]
        return ready(f"fused {config.label}{', the default' if config == default else ''}", calls, output)

    def ours_of_few(config: Any) -> Way:
        ordered = Ordered.empty(quantised)
        ordered.fill()
        held = scratch(problem, config, output.device)
        few = copied([x, ordered.words, ordered.scales, ordered.zero_points], copies)
        calls = [
            few_call(problem, config, x_, replace(ordered, words=words, scales=scales, zero_points=zeros), output, held)
            for x_, words, scales, zeros in few
        ]
        return ready(f"fused few {config.label}{', the default' if config == default else ''}", calls, output)

    def ways() -> Iterator[Callable[[], Way]]:
        yield lambda: bf16_mm("cuBLAS bf16", bf16_sets, output)
        for config in of_few:
            yield partial(ours_of_few, config)
        for config in dict.fromkeys([*([] if is_few else [default]), *configs]):
            yield partial(ours, config)
        if kind == "mxfp4" and m >= 128:
            stored = copied([x, quantised.data.view(torch.uint8), quantised.scales.view(torch.uint8)], copies)
            for tiles in (
                (128, 128, 128, 8, 3, 0),
                (128, 256, 128, 8, 3, 0),
                (128, 256, 128, 8, 3, 1),
                (128, 128, 128, 4, 3, 1),
            ):
                yield partial(_dot_scaled, stored, output, tiles)
        if kind in ("int4", "mxfp4", "int8"):
            yield lambda: _dequantised_first(quantised, kind, x, output)
        if kind == "int4":
            yield lambda: _int4pack(quantised, x, output, copies)

    return Case(f"{title} {shape.title}", shape, weight_bytes, copies, reference, ways, limits)


E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def _dequantised_first(quantised: Any, kind: str, x: torch.Tensor, output: torch.Tensor) -> Way:
    """By torch's elementwise kernels, then cuBLAS: what a user does who has no fused kernel."""
    n, k = quantised.shape
    magnitudes = torch.tensor([*E2M1, *(-each for each in E2M1)], device=DEVICE, dtype=torch.bfloat16)
    data = quantised.data.view(torch.uint8)
    scales = quantised.scales if kind != "mxfp4" else torch.exp2(quantised.scales.view(torch.uint8).float() - 127).bfloat16()
    block = k // scales.shape[1]
    sets = copied([x, data, scales], copies_of(data.nbytes + n * k * 2))

    def launch(x_: torch.Tensor, data_: torch.Tensor, scales_: torch.Tensor) -> None:
        if kind == "int8":
            codes = data_.view(torch.int8).to(torch.bfloat16)
        else:
            nibbles = torch.stack((data_ & 0xF, data_ >> 4), dim=-1).view(n, k)
            codes = magnitudes[nibbles.int()] if kind == "mxfp4" else ((nibbles ^ 8).to(torch.bfloat16) - 8)
        weights = (codes.view(n, -1, block) * scales_[:, :, None]).view(n, k)
        torch.mm(x_, weights.t(), out=output)

    return Way("torch: dequantise, then cuBLAS", [partial(launch, *each) for each in sets], output)


def _int4pack(quantised: Any, x: torch.Tensor, output: torch.Tensor, copies: int) -> Way:
    """torch._weight_int4pack_mm: groups of 128, in its own order of weights."""
    data = quantised.data
    swapped = ((data & 0xF) << 4 | data >> 4) ^ 0x88  # even numbers in the high half there, codes from 0
    packed = torch.ops.aten._convert_weight_to_int4pack(swapped.contiguous(), 8)
    pairs = torch.stack((quantised.scales, torch.zeros_like(quantised.scales)), dim=-1).transpose(0, 1).contiguous()
    sets = copied([x, packed, pairs], copies)

    def launch(x_: torch.Tensor, packed_: torch.Tensor, pairs_: torch.Tensor) -> None:
        output.copy_(torch.ops.aten._weight_int4pack_mm(x_, packed_, 128, pairs_))

    return Way("torch._weight_int4pack_mm", [partial(launch, *each) for each in sets], output)


def _dot_scaled(sets: Any, output: torch.Tensor, tiles: tuple[int, ...]) -> Way:
    from tests.peers.dot_scaled import label, mxfp4_call

    return ready(label(tiles), [mxfp4_call(x, w, scales, output, tiles) for x, w, scales in sets], output)
