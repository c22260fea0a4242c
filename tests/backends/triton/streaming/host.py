"""Launches of a step computed on the host from what they are given, on a device whose clock is a script.

It stands in for compiling and loading: the port, its trials and its checks are the real ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from backends.triton.gemm.call import Call
from backends.triton.gemm.launch import Loaded
from backends.triton.streaming.gather import gathered
from backends.triton.streaming.kernel import streamed
from backends.triton.streaming.norm import EPSILON
from backends.triton.streaming.resident import resident
from tests.backends.fake_cuda import FakeCuda

FACTS = {"kernel": "scripted", "registers": 64, "spilled_words": 0, "shared_bytes": 0, "instructions": []}
BY_NAME = {streamed: "streamed", resident: "streamed", gathered: "gathered"}


@dataclass
class Host:
    """``seconds(call)`` is how long a launch takes; ``facts(call)`` more of what is known of it.

    ``wrong`` says of which calls the result is not right, ``uncaptured`` which cannot stand in a graph.
    """

    seconds: Callable[[Call], float] = lambda call: 1e-3
    facts: Callable[[Call], dict[str, Any]] = lambda call: {}
    wrong: Callable[[Call], bool] = lambda call: False
    uncaptured: Callable[[Call], bool] = lambda call: False
    cuda: FakeCuda = field(default_factory=FakeCuda)
    loaded: list[Call] = field(default_factory=list)

    def load(self, call: Call) -> Loaded:
        self.loaded.append(call)
        return Loaded(lambda: self._launch(call), {**FACTS, **self.facts(call)})

    def _launch(self, call: Call) -> None:
        if self.cuda.capturing is not None and self.uncaptured(call):
            raise RuntimeError("operation not permitted when stream is capturing")

        def work() -> None:
            compute(call)
            if self.wrong(call):
                call.arguments[3].mul_(1.5)
            self.cuda.device_s += self.seconds(call)

        self.cuda.run(work)


def compute(call: Call) -> None:
    """What the kernel of a call writes."""
    {"streamed": _streamed, "gathered": _gathered}.get(BY_NAME.get(call.kernel, ""), _decoded)(call)


def named(call: Call) -> dict[str, Any]:
    """Arguments by the names of the kernel's parameters."""
    return dict(zip(call.kernel.arg_names, call.arguments, strict=False))


def _gathered(call: Call) -> None:
    given = named(call)
    given["y_ptr"].copy_(given["embedding_ptr"][given["tokens_ptr"].long()])
    _made_ready(given)


def _made_ready(given: dict[str, Any]) -> None:
    """For the norm behind, with all squares of a row in its first slot."""
    y = given["y_ptr"].double()
    given["scaled_ptr"].copy_(y * given["norm_ptr"].double())
    given["left_ptr"].zero_()[0] = y.square().sum(1)


def _streamed(call: Call) -> None:
    given, constants = named(call), call.constants
    x = given["x_ptr"].view(constants["M"], -1).double()
    if constants["NORMED"]:
        x = x * (given["squares_ptr"].double().sum(0)[:, None] / x.shape[1] + EPSILON).rsqrt()
    sums, y = x @ given["w_ptr"].double().t(), given["y_ptr"]
    if constants["END"] == "plain":
        y.copy_(sums.view(y.shape))
    elif constants["END"] == "residual":
        y.copy_(given["residual_ptr"].double() + sums)
        _made_ready(given)
    elif constants["END"] == "swiglu":
        gate, up = sums.chunk(2, 1)
        y.copy_(torch.nn.functional.silu(gate) * up)
    else:
        _rotated(sums, given, constants)


def _rotated(sums: torch.Tensor, given: dict[str, Any], constants: Any) -> None:
    half, positions = constants["PAIRS_OF"], given["positions_ptr"].long()
    heads = sums.unflatten(1, (-1, 2 * half))
    turns = given["rotation_ptr"].double()[positions][:, None]
    low, high = heads.chunk(2, 2)
    cosine, sine = turns.chunk(2, 2)
    turned = torch.cat((low * cosine - high * sine, high * cosine + low * sine), 2)
    q_heads, kv_heads = constants["Q_HEADS"], constants["KV_HEADS"]
    given["y_ptr"].copy_(turned[:, :q_heads].view(given["y_ptr"].shape))
    pages = given["table_ptr"][torch.arange(len(positions)), positions // constants["PAGE"]].long()
    within = positions % constants["PAGE"]
    for name, numbers in (("k_ptr", turned[:, q_heads : q_heads + kv_heads]), ("v_ptr", heads[:, q_heads + kv_heads :])):
        given[name][pages, :, within] = numbers.to(given[name].dtype)


def _decoded(call: Call) -> None:
    given = named(call)
    q, o, table = given["q_ptr"], given["o_ptr"], given["table_ptr"]
    lengths = {int(item[0]): int(item[5]) for item in given["items_ptr"].tolist()}
    group = q.shape[2] // given["k_ptr"].shape[1]
    for sequence, length in lengths.items():
        pages = table[sequence, : -(-length // given["k_ptr"].shape[2])].long()
        keys, values = (
            given[name][pages].transpose(0, 1).flatten(1, 2)[:, :length].double().repeat_interleave(group, 0)
            for name in ("k_ptr", "v_ptr")
        )
        scores = torch.einsum("hd,htd->ht", q[sequence, 0].double(), keys) * q.shape[3] ** -0.5
        o[sequence, 0] = torch.einsum("ht,htd->hd", scores.softmax(1), values).to(o.dtype)
