"""What the kernels of quantised operands compute, on the host, from the buffers that a launch is given."""

from typing import Any

import torch

from backends.triton.quantised.prepack import FP4, INT4, INT8, from_words
from tests.backends.triton.fake_driver import Launch, compute
from tests.backends.triton.few_rows.codes import codes_in, of_rows

E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=torch.float64)


def compute_rung(launch: Launch) -> None:
    """Write the product that the arguments name, or the bf16 copy of an operand."""
    given = launch.arguments
    if "words_ptr" in given:
        _few_rows(launch)
    elif "x_ptr" in given:
        rows = given["x_ptr"].shape[0]
        given["out_ptr"].copy_(
            (given["x_ptr"].double().view(rows, -1, 32) * _powers(given["scale_ptr"])[..., None]).view(rows, -1)
        )
    elif "FORMAT" in launch.constants:
        x, w = _tensor(given["x"]).double(), _weights(launch)
        given["c_ptr"].copy_(x @ w.t())
    elif "a_scales" in given:
        a, b = _tensor(given["a"]).double(), _tensor(given["b"]).double()
        (m, k), n = a.shape, b.shape[0]
        a_scales, b_scales = _tensor(given["a_scales"])[:, :m].t(), given["b_scale_ptr"].repeat_interleave(128, 0)[:n]
        wide = [each * scales.double().repeat_interleave(128, 1)[:, :k] for each, scales in ((a, a_scales), (b, b_scales))]
        given["c_ptr"].copy_(wide[0] @ wide[1].t())
    else:
        compute(launch)


def _few_rows(launch: Launch) -> None:
    given, is_unsigned = launch.arguments, launch.constants["FORMAT"] == "uint4"
    m, n = given["c_ptr"].shape
    x = given["x_ptr"].view(torch.bfloat16).double()
    codes = codes_in(given["words_ptr"], n, x.shape[1]).long()
    groups = x.shape[1] // 128
    zeros = of_rows(given["zeros_ptr"].view(torch.int16), n, groups).long().repeat_interleave(128, 1) if is_unsigned else 0
    signed = codes - zeros if is_unsigned else torch.where(codes > 7, codes - 16, codes)
    scales = of_rows(given["scales_ptr"].view(torch.bfloat16), n, groups).double().repeat_interleave(128, 1)
    given["c_ptr"].copy_(x[:m] @ (signed * scales).t())


def _weights(launch: Launch) -> torch.Tensor:
    given, kind = launch.arguments, launch.constants["FORMAT"]
    words = _tensor(given["w"])
    places = INT8 if kind == "int8" else FP4 if kind in ("mxfp4", "mxfp4_full") else INT4
    codes = from_words(words, places).long()
    n = len(codes)
    if kind == "int8":
        return torch.where(codes > 127, codes - 256, codes) * given["scale_ptr"].double()[0, :n, None]
    turned = _tensor(given["scales"])[:, :n].t()
    scales = torch.empty(turned.shape, dtype=turned.dtype).copy_(turned)
    if kind in ("mxfp4", "mxfp4_full"):
        values = torch.where(codes > 7, -E2M1[codes & 7], E2M1[codes & 7])
        return values * _powers(scales.view(torch.uint8)).repeat_interleave(32, 1)
    zeros = _tensor(given["zeros"])[:, :n].t().long().repeat_interleave(128, 1) if kind == "uint4" else 0
    signed = codes - zeros if kind == "uint4" else torch.where(codes > 7, codes - 16, codes)
    return signed * scales.double().repeat_interleave(128, 1)


def _powers(codes: torch.Tensor) -> torch.Tensor:
    worth = torch.exp2(codes.double() - 127)
    return worth.masked_fill(codes == 255, float("nan"))


def _tensor(given: Any) -> torch.Tensor:
    """A matrix, whether it is given by a descriptor or by a pointer."""
    found: torch.Tensor = getattr(given, "base", given)
    return found
