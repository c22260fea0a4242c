"""The weights of a whole model streamed once: the products of all layers, then that of the vocabulary.

Each kind of matrix is a product of the gemm job with an input set for each layer; activations are every product's own.  Plain
numbers go through roofbench's streaming kernels where its own are asked for, others through those of the gemm job.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from backends.seeds import mixed_seed
from backends.torch import gemm
from backends.torch.data import Operand
from backends.torch.decode_step import own
from backends.torch.decode_step.changes import fingerprint
from backends.torch.decode_step.staged import StagedKernel
from backends.torch.decode_step.stages import Exact, Stage
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.precision import enforce
from backends.torch.refusals import no_own_kernels
from backends.torch.target import Target
from suite.case import Case
from suite.jobs.decode_step import Product, Sizes, sizes_of
from suite.jobs.decode_step.formats import PLAIN, as_gemm
from suite.jobs.decode_step.tolerance import stage_tolerances
from suite.jobs.decode_step.work import weights_bytes
from suite.jobs.emulation import EXECUTED_PIPE, PASSING_BYTES

BLOCK_NUMBERS = 1 << 23  # of weights that are converted to float64 at a time
SHARED = ("operand_dtype", "b_dtype", "emulation", EXECUTED_PIPE)
TOLD = ("call", "library", "configuration", "tiles", "kernel", "conversion", "chosen_by", "tuning_s", "tried", "compile_s")


class Streamed(NamedTuple):
    """All matrices of one kind: their kernel has for each input set of the step as many sets as there are layers."""

    product: Product
    kernel: TorchKernel

    def of_set(self, set_index: int) -> range:
        """Those of the kernel's input sets that are one of the step's."""
        return range(set_index * self.product.times, (set_index + 1) * self.product.times)

    def launch_of(self, set_index: int, layer: int) -> Callable[[], Any]:
        """What multiplies by the matrix of a layer."""
        return self.kernel.input_sets[self.of_set(set_index)[layer]].launch


class WeightsKernel(StagedKernel):
    """Launches go layer by layer; each product's result is a stage of its own."""

    def __init__(
        self, streamed: Sequence[Streamed], sets: int, tolerances: Mapping[str, float], case: Case, facts: Mapping[str, Any]
    ) -> None:
        emulated = any(each.kernel.execution == "emulated" for each in streamed)
        execution, set_bytes = "emulated" if emulated else "native", weights_bytes(case.workload)
        super().__init__(sets, set_bytes, execution, case.workload.distribution, facts)
        self.streamed, self._tolerances = tuple(streamed), tolerances
        # Of one format and without switches they all have the same, which is put in force once and not before each product.
        self._precision = self.streamed[0].kernel.precision
        assert all(each.kernel.precision == self._precision for each in self.streamed)
        self._launches = [tuple(self._in_order(index)) for index in range(sets)]

    def enqueue(self, set_index: int) -> None:
        enforce(self._precision)
        for launch in self._launches[set_index]:
            launch()

    def refill(self, seed: int) -> None:
        for number, each in enumerate(self.streamed):
            each.kernel.refill(mixed_seed(seed, number))
        self.refilled(seed)

    def poison(self) -> None:
        for each in self.streamed:
            each.kernel.poison()

    def stages(self, set_index: int) -> Sequence[Stage]:
        most = max(self._tolerances.values())
        return [
            Stage(
                each.product.name if each is self.streamed[-1] else f"layer {layer} {each.product.name}",
                each.kernel.input_sets[index].output,
                _exact_of(each.kernel.input_sets[index]),
                most / self._tolerances[each.product.name],
            )
            for each in self.streamed
            for layer, index in enumerate(each.of_set(set_index))
        ]

    def inputs(self, set_index: int) -> int:
        return fingerprint(
            tensor
            for each in self.streamed
            for index in each.of_set(set_index)
            for operand in each.kernel.input_sets[index].operands
            for tensor in operand.buffers
        )

    def describe(self) -> Mapping[str, Any]:
        described = {each.product.name: each.kernel.describe() for each in self.streamed}
        return {**super().describe(), **_joined(described, [each.product.times for each in self.streamed])}

    def close(self) -> None:
        super().close()
        for each in self.streamed:
            each.kernel.close()
        self.streamed, self._launches = (), []

    def _in_order(self, set_index: int) -> Iterator[Callable[[], Any]]:
        """Layer by layer, each product in its turn; then the vocabulary's."""
        *of_layers, vocabulary = self.streamed
        for layer in range(of_layers[0].product.times):
            yield from (each.launch_of(set_index, layer) for each in of_layers)
        yield vocabulary.launch_of(set_index, 0)


def _exact_of(each: InputSet) -> Exact:
    a, b = each.operands
    return partial(exact, a, b)


def exact(a: Operand, b: Operand, rows: slice, columns: slice, on: torch.device) -> torch.Tensor:
    """A part of A B^T in float64, both as they are stored; some rows of B are converted at a time."""
    first, last, _ = rows.indices(a.data.shape[0])
    start, stop, _ = columns.indices(b.data.shape[0])
    left = a.numbers(first, last).to(on)
    step = max(1, BLOCK_NUMBERS // left.shape[1])
    return torch.cat([left @ b.numbers(at, min(at + step, stop)).to(on).t() for at in range(start, stop, step)], 1)


def reason(case: Case, target: Target) -> str | None:
    """Why one of the products cannot run here; ``None`` when all can."""
    sizes = sizes_of(case.workload)
    if _is_ours(case):
        told = no_own_kernels(case.implementation, target)
        if told:
            return told
        from backends.triton.gemm.device import of_torch
        from backends.triton.streaming import products

        device = of_torch(target.device.index)
        told_of = (products.reason(case.workload.format, sizes.batch, each, device) for each in sizes.products)
    else:
        told_of = (gemm.reason(as_case(case, sizes, each), target) for each in sizes.products)
    return next((each for each in told_of if each is not None), None)


def prepare(case: Case, target: Target, sets: int, seed: int) -> WeightsKernel:
    """Every product's kernel, filled."""
    sizes = sizes_of(case.workload)
    make = _making(case, sizes, target, seed)
    streamed = [Streamed(each, make(each, sets * each.times)) for each in sizes.products]
    kernel = WeightsKernel(streamed, sets, stage_tolerances(case.workload), case, {"reference": "float64"})
    kernel.refill(seed)
    kernel.poison()
    return kernel


def as_case(case: Case, sizes: Sizes, product: Product) -> Case:
    """One product as a case of the gemm job."""
    return Case(as_gemm(case.workload, sizes, product), case.implementation, case.backend, case.regime)


def _is_ours(case: Case) -> bool:
    return case.implementation in own.NAMES and case.workload.format in PLAIN


def _making(case: Case, sizes: Sizes, target: Target, seed: int) -> Callable[[Product, int], TorchKernel]:
    if _is_ours(case):
        from backends.triton.gemm.device import of_torch
        from backends.triton.streaming import products

        return partial(products.prepare, case, of_torch(target.device.index), target.device, seed)
    return lambda product, sets: gemm.prepare(as_case(case, sizes, product), target, sets, seed)


def _joined(described: Mapping[str, Mapping[str, Any]], counts: Sequence[int]) -> dict[str, Any]:
    """What the products say, together: emulation and pipe, those of any, what passes between their launches, rounding."""
    first = next(iter(described.values()))
    found = {name: [each[name] for each in described.values() if name in each] for name in SHARED}
    shared = {name: next(filter(None, said), said[0]) for name, said in found.items() if said}
    passing = sum(count * int(each.get(PASSING_BYTES, 0)) for count, each in zip(counts, described.values(), strict=True))
    errors = [float(each["quantisation_error"]) for each in described.values() if "quantisation_error" in each]
    return {
        **shared,
        **({PASSING_BYTES: passing} if passing else {}),
        **({"quantisation_error": math.sqrt(sum(error**2 for error in errors) / len(errors))} if errors else {}),
        "precision": first["precision"],
        "products": {name: {key: each[key] for key in TOLD if key in each} for name, each in described.items()},
    }
