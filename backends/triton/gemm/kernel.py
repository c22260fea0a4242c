"""A product by the kernels here as a kernel of the suite: its buffers and its checks are those of every torch kernel."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from triton.errors import TritonError

from backends.torch import check
from backends.torch.data import Operand
from backends.torch.kernel import Formula, InputSet, TorchKernel
from backends.torch.precision import Precision
from backends.triton.gemm.call import Matrices
from backends.triton.gemm.config import Config
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.port import Made, emulation, make, make_default, make_tuned
from backends.triton.gemm.problem import Problem
from backends.triton.gemm.trials import SETS_AT_MOST, Trial
from backends.triton.gemm.tuning import Refused
from suite.reason import one_line

# Sums in another order differ by less than rounding; a tile or a block of K that is missing moves a result by more.
SAME_RESULT = 0.02


class Buffers(NamedTuple):
    """One input set before there is a launch for it."""

    a: Operand
    b: Operand
    output: torch.Tensor

    @property
    def matrices(self) -> Matrices:
        return Matrices(self.a.data, self.b.data, self.output, self.a.scale, self.b.scale)


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


class TritonKernel(TorchKernel):
    """A torch kernel whose launches are Triton's, and can be exchanged for those of another configuration."""

    def __init__(self, task: Task, shared: Shared, made: Made) -> None:
        formula, distribution, precision, description = shared
        super().__init__(_input_sets(task, made), formula, distribution, "native", precision, description)
        self.task = task
        self.adopt(made)

    def adopt(self, made: Made) -> None:
        """Launch by ``made`` from now on."""
        self.input_sets = _input_sets(self.task, made)
        self._launches = made.launches
        self._facts = made.facts
        self._emulation = emulation(made.facts, self.task.problem.format)
        self.execution = "emulated" if self._emulation else "native"

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), **self._facts, "emulation": self._emulation}

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


class Trials:
    """Makes configurations ready to be timed on filled buffers, and refuses one whose result is not the first one's."""

    def __init__(self, task: Task, loaded: Load = load, cuda: Any = torch.cuda) -> None:
        self._problem, self._device, self._loaded, self._cuda = task.problem, task.device, loaded, cuda
        self._sets = task.sets[:SETS_AT_MOST]
        self._signs = check.sign_vector(task.problem.n, 0, self._sets[0].c.device)
        self._expected: torch.Tensor | None = None

    def __call__(self, config: Config) -> Trial:
        try:
            made = make(self._problem, config, self._device, self._sets, self._loaded)
        except (TritonError, RuntimeError) as error:  # nothing was launched
            raise Refused(one_line((str(error).strip() or type(error).__name__).splitlines()[-1])) from error
        self._compare(made)
        return Trial(made.launches, self._cuda)

    def _compare(self, made: Made) -> None:
        """By a projection, which sees every element."""
        output = self._sets[0].c
        check.poison(output)
        made.launches[0]()
        found = check.project(output, self._signs)
        if self._expected is None:
            self._expected = found
        apart, size = float((found - self._expected).norm()), float(self._expected.norm())
        if not apart <= SAME_RESULT * size:  # written so that NaN fails
            raise Refused(f"its result is {apart / size if size else apart:.3g} away from that of the first configuration")


def _input_sets(task: Task, made: Made) -> tuple[InputSet, ...]:
    pairs = zip(task.buffers, made.launches, strict=True)
    return tuple(InputSet((each.a, each.b), each.output, launch) for each, launch in pairs)
