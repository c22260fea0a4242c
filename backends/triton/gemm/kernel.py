"""A product by the kernels here as a kernel of the suite: its buffers and its checks are those of every torch kernel."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.kernel import Formula, InputSet, TorchKernel
from backends.torch.precision import Precision
from backends.triton.gemm.call import Matrices
from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.made import Made
from backends.triton.gemm.port import emulation, make, make_default, make_tuned
from backends.triton.gemm.problem import Problem
from backends.triton.gemm.trials import SETS_AT_MOST


class Buffers(NamedTuple):
    """One input set before there is a launch for it."""

    a: Operand
    b: Operand
    output: torch.Tensor

    @property
    def matrices(self) -> Matrices:
        return Matrices(self.a.data, self.b.data, self.output, _scales(self.a), _scales(self.b))


def _scales(operand: Operand) -> torch.Tensor | None:
    return operand.quantised.scales if isinstance(operand, QuantisedOperand) else operand.scale


class Task(NamedTuple):
    """What is to be computed, where, and in which buffers."""

    problem: Problem
    device: Device
    buffers: Sequence[Buffers]

    @property
    def sets(self) -> list[Matrices]:
        return [each.matrices for each in self.buffers]


class Shared(NamedTuple):
    """What a kernel has in common with the library's on the same buffers."""

    formula: Formula
    distribution: str
    precision: Precision
    description: Mapping[str, Any]


class LaunchedKernel(TorchKernel):
    """A torch kernel whose launches are Triton's, and can be exchanged for those of another configuration.

    ``emulation`` says from a kernel's facts what it multiplies in place of the format's own numbers; empty where it does not.
    """

    def __init__(
        self, buffers: Sequence[Buffers], shared: Shared, made: Made, emulation: Callable[[Mapping[str, Any]], str]
    ) -> None:
        formula, distribution, precision, description = shared
        super().__init__(_input_sets(buffers, made), formula, distribution, "native", precision, description)
        self.buffers, self._emulation_of = tuple(buffers), emulation
        self.adopt(made)

    def adopt(self, made: Made) -> None:
        """Launch by ``made`` from now on."""
        self.input_sets = _input_sets(self.buffers, made)
        self._launches = made.launches
        self._facts = made.facts
        self._emulation = self._emulation_of(made.facts)
        self.execution = "emulated" if self._emulation else "native"

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), **self._facts, "emulation": self._emulation}

    def close(self) -> None:
        super().close()
        self.buffers = ()


class TritonKernel(LaunchedKernel):
    """A product of the kernels here, which its task can be made again from."""

    def __init__(self, task: Task, shared: Shared, made: Made) -> None:
        super().__init__(task.buffers, shared, made, partial(emulation, format_name=task.problem.format))
        self.task = task

    def close(self) -> None:
        super().close()
        self.task = self.task._replace(buffers=())


def prepare(task: Task, shared: Shared, seed: int, *, tuned: bool, loaded: Load = load, cuda: Any = torch.cuda) -> TritonKernel:
    """Load a kernel; with ``tuned``, fill the buffers, try configurations on that data, and load the fastest."""
    problem, device, sets = task.problem, task.device, task.sets
    kernel = TritonKernel(task, shared, make_default(problem, device, sets, loaded))
    if tuned:
        kernel.refill(seed)
        kernel.adopt(make_tuned(problem, device, sets, Trials(task, loaded, cuda), loaded))
    return kernel


class Trials(Comparison):
    """Makes configurations of a task ready to be timed on its filled buffers."""

    def __init__(self, task: Task, loaded: Load = load, cuda: Any = torch.cuda) -> None:
        sets = task.sets[:SETS_AT_MOST]
        super().__init__(lambda config: make(task.problem, config, task.device, sets, loaded), task.buffers[0].output, cuda)


def _input_sets(buffers: Sequence[Buffers], made: Made) -> tuple[InputSet, ...]:
    pairs = zip(buffers, made.launches, strict=True)
    return tuple(InputSet((each.a, each.b), each.output, launch) for each, launch in pairs)
