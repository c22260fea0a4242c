"""A decode step token by token through the page table, in float64 between roundings, with a flaw in one layer where asked for.

Without a flaw it is another way than the library's, the kernels' and the reference's: heads one by one, positions by complex
numbers, pages by their definition.  ``FLAWS`` names what a check has to see; each is wrong in one layer alone, or in none.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from backends.torch.decode_step.kernel import StepKernel
from backends.torch.decode_step.operands import ROTATION_BASE, Layer, StepBuffers, allocate
from backends.torch.way import Made
from suite.case import Case
from suite.jobs.decode_step.tolerance import stage_tolerances
from suite.jobs.decode_step.work import step_bytes

EPSILON = 1e-5
# By the matrix or vector that a layer takes from the layer before it (the first from the last).
STALE = ("qkv", "o", "gate_up", "down", "attention_norm", "feed_norm")
IN_A_LAYER = (
    *(f"stale {name}" for name in STALE),
    "no residual behind attention",
    "no residual behind the feed-forward",
    "no norm before attention",
    "no norm before the feed-forward",
    "norm without its weights",
    "a position too far",
    "a position back",
    "keys not rotated",
    "pairs of neighbours rotated",
    "dropped head",
    "swapped heads",
    "keys of another head",
    "one key too few",
    "a stale page",
    "unscaled scores",
    "nothing appended",
    "appended a place before",
    "appended to the next sequence",
    "appended twice",
    "gate and up swapped",
    "activation left out",
    "last columns of the output matrix dropped",
    "last columns of the down matrix dropped",
    "skipped",
    "a weight overwritten",
)
AT_THE_ENDS = (
    "embedding of another token",
    "logits cut off",
    "last logits repeated",
    "no last norm",
    "logits of the next sequence",
    "NaN",
    "results of other data",
)


@dataclass
class Flawed:
    """Launches of one set; ``name`` is of ``IN_A_LAYER`` or ``AT_THE_ENDS``, or empty."""

    each: StepBuffers
    name: str = ""
    layer: int = 0
    kept: list[torch.Tensor] = field(default_factory=list)

    def __call__(self) -> None:
        each = self.each
        tokens = each.tokens.data.long()
        if self._is("embedding of another token"):
            tokens = (tokens + 1) % each.sizes.vocabulary
        each.embedded.copy_(each.embedding.data[tokens])
        stream = each.embedded
        for number in range(each.sizes.layers):
            self._of_layer(number, stream)
            stream = each.layers[number].out
        self._logits(stream)
        if self.name == "results of other data":
            self._stale_results()

    def _is(self, name: str, number: int | None = None) -> bool:
        return self.name == name and number in (None, self.layer)

    def _stored(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers.to(self.each.logits.dtype)

    def _taken(self, number: int) -> Layer:
        """The layer with what it takes from another."""
        layer, other = self.each.layers[number], self.each.layers[number - 1]
        name = self.name.removeprefix("stale ")
        return layer._replace(**{name: getattr(other, name)}) if name in STALE and number == self.layer else layer

    def _normed(
        self, stream: torch.Tensor, weights: torch.Tensor, plain: bool = False, unweighted: bool = False
    ) -> torch.Tensor:
        wide = stream.double()
        found = wide if plain else wide / (wide.square().mean(1, keepdim=True) + EPSILON).sqrt()
        return self._stored(found if unweighted else found * weights.double()).double()

    def _of_layer(self, number: int, stream: torch.Tensor) -> None:
        layer, sizes = self._taken(number), self.each.sizes
        normed = self._normed(
            stream,
            layer.attention_norm.data,
            plain=self._is("no norm before attention", number),
            unweighted=self._is("norm without its weights", number),
        )
        projected = self._stored(normed @ layer.qkv.data.double().t()).double()
        heads = projected.unflatten(1, (-1, sizes.head_dim))
        queries, keys, values = heads.split((sizes.num_q_heads, sizes.num_kv_heads, sizes.num_kv_heads), 1)
        queries, keys = self._rotated(queries, number), self._rotated(keys, number, is_key=True)
        layer.q[:, 0].copy_(self._stored(queries))
        self._append(layer, keys, values, number)
        layer.attended[:, 0].copy_(self._stored(self._attended(layer, number)))
        self._finish(layer, stream, number)
        if self._is("skipped", number):
            layer.out.copy_(stream)
        if self._is("a weight overwritten", number):
            layer.down.data[3, 5] += 1

    def _rotated(self, heads: torch.Tensor, number: int, is_key: bool = False) -> torch.Tensor:
        """Column i and column i + half a head are a complex number that turns."""
        if self._is("keys not rotated", number) and is_key:
            return heads
        shift = {"a position too far": 1, "a position back": -1}.get(self.name, 0) if number == self.layer else 0
        half = heads.shape[2] // 2
        angles = torch.tensor(
            [(self.each.sizes.kv_len - 1 + shift) * ROTATION_BASE ** (-i / half) for i in range(half)], dtype=torch.float64
        )
        turns = torch.polar(torch.ones(half, dtype=torch.float64), angles)
        if self._is("pairs of neighbours rotated", number):
            pairs = heads.unflatten(2, (half, 2)).contiguous()
            return torch.view_as_real(torch.view_as_complex(pairs) * turns).flatten(2)
        turned = torch.complex(heads[..., :half], heads[..., half:]) * turns
        return torch.cat((turned.real, turned.imag), 2)

    def _place(self, sequence: int, token: int) -> tuple[int, int]:
        table, size = self.each.table.data, self.each.table.sizes.page_size
        return int(table[sequence, token // size]), token % size

    def _append(self, layer: Layer, keys: torch.Tensor, values: torch.Tensor, number: int) -> None:
        last = self.each.sizes.kv_len - 1
        for sequence in range(self.each.sizes.batch):
            places = [(sequence, last)]
            if self._is("nothing appended", number):
                places = []
            elif self._is("appended a place before", number):
                places = [(sequence, last - 1)]
            elif self._is("appended to the next sequence", number):
                places = [((sequence + 1) % self.each.sizes.batch, last)]
            elif self._is("appended twice", number):
                places = [(sequence, 0), (sequence, last)]
            for owner, token in places:
                page, within = self._place(owner, token)
                layer.k.data[page, :, within] = self._stored(keys[sequence])
                layer.v.data[page, :, within] = self._stored(values[sequence])

    def _attended(self, layer: Layer, number: int) -> torch.Tensor:
        sizes = self.each.sizes
        found = torch.zeros(sizes.batch, sizes.num_q_heads, sizes.head_dim, dtype=torch.float64)
        seen = sizes.kv_len - self._is("one key too few", number)
        for sequence in range(sizes.batch):
            places = [self._place(sequence, token) for token in range(seen)]
            if self._is("a stale page", number):
                size = self.each.table.sizes.page_size
                places[:size] = [self._place(sequence - 1, token) for token in range(size)]
            pages, within = (torch.tensor(each) for each in zip(*places, strict=True))
            for head in range(sizes.num_q_heads):
                kv_head = head // sizes.group
                if self._is("keys of another head", number):
                    kv_head = (kv_head + 1) % sizes.num_kv_heads
                keys, values = (cache.data[pages, kv_head, within].double() for cache in (layer.k, layer.v))
                scores = keys @ layer.q[sequence, 0, head].double()
                scores = scores if self._is("unscaled scores", number) else scores / math.sqrt(sizes.head_dim)
                found[sequence, head] = scores.softmax(0) @ values
        if self._is("dropped head", number):
            found[:, -1] = 0
        if self._is("swapped heads", number):
            found[:, :2] = found[:, :2].flip(1)
        return found

    def _finish(self, layer: Layer, stream: torch.Tensor, number: int) -> None:
        output, down = layer.o.data.double(), layer.down.data.double()
        if self._is("last columns of the output matrix dropped", number):
            output = torch.cat((output[:, :-16], torch.zeros_like(output[:, -16:])), 1)
        if self._is("last columns of the down matrix dropped", number):
            down = torch.cat((down[:, :-16], torch.zeros_like(down[:, -16:])), 1)
        added = self._stored(layer.attended.flatten(1).double() @ output.t()).double()
        layer.mid.copy_(added if self._is("no residual behind attention", number) else stream.double() + added)
        normed = self._normed(layer.mid, layer.feed_norm.data, plain=self._is("no norm before the feed-forward", number))
        gate, up = (self._stored(each).double() for each in (normed @ layer.gate_up.data.double().t()).chunk(2, 1))
        if self._is("gate and up swapped", number):
            gate, up = up, gate
        layer.act.copy_(gate * up if self._is("activation left out", number) else gate * torch.sigmoid(gate) * up)
        added = self._stored(layer.act.double() @ down.t()).double()
        layer.out.copy_(added if self._is("no residual behind the feed-forward", number) else layer.mid.double() + added)

    def _logits(self, stream: torch.Tensor) -> None:
        each = self.each
        normed = self._normed(stream, each.final_norm.data, plain=self._is("no last norm"))
        logits = self._stored(normed @ each.lm_head.data.double().t())
        if self._is("logits of the next sequence"):
            logits = logits.roll(1, 0)
        if self._is("last logits repeated"):
            logits[:, -7:] = logits[:, -14:-7].clone()
        if self._is("NaN"):
            logits[0, 11] = float("nan")
        kept = each.sizes.vocabulary - 3 * self._is("logits cut off")
        each.logits[:, :kept].copy_(logits[:, :kept])

    def _stale_results(self) -> None:
        """The first launch's are given out ever after."""
        self.kept = self.kept or [tensor.clone() for tensor in self.each.left]
        for tensor, old in zip(self.each.left, self.kept, strict=True):
            tensor.copy_(old)


def flawed(case: Case, name: str = "", layer: int = 0) -> StepKernel:
    """A kernel on caches in pages whose launches have this flaw."""
    each = allocate(case.workload, torch.device("cpu"), paged=True)
    return kernel_of(case, [each], [Flawed(each, name, layer)])


def kernel_of(case: Case, buffers: Sequence[StepBuffers], launches: Sequence[Callable[[], None]]) -> StepKernel:
    """A kernel of the job with launches of one's own."""
    tolerances, moved = stage_tolerances(case.workload), step_bytes(case.workload).total
    kernel = StepKernel(buffers, Made(launches, {}), tolerances, moved, "native", case.workload.distribution, {})
    kernel.refill(3)
    kernel.poison()
    return kernel
