"""A case made ready on XLA: rotating input sets, a compiled launch, and programs that repeat it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from backends.jax import check
from backends.jax.data import Operand, drawn
from backends.jax.hlo import parse, targets
from backends.jax.program import Compute, Loop, Operands, compile_launch, compile_loop
from backends.seeds import mixed_seed
from suite.backend import Observed, Probe, Reference


class Formula(Protocol):
    """What the output should be, in float64 on the host, from one set's operands as they are stored."""

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        """A part of the output (rows x columns)."""
        ...

    def project(self, operands: Sequence[Operand], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """The whole output (rows x columns) times a vector (columns): one value a row."""
        ...


class Plan(NamedTuple):
    """What a job asks for: shapes and types of one set's operands and output, the computation and its formula.

    ``scalars`` are float32 arguments that follow the operands; ``products`` is how many matrix products the computation has.
    """

    operands: tuple[tuple[tuple[int, ...], Any], ...]
    output: tuple[tuple[int, int], Any]
    compute: Compute
    formula: Formula
    scalars: tuple[float, ...] = ()
    products: int = 0


class XlaKernel:
    """The contract ``suite.backend.Kernel`` over JAX arrays.

    Every program is given the buffers it writes and hands them back, so that launches hold no more memory than the sets.
    """

    def __init__(
        self, plan: Plan, sets: int, seed: int, distribution: str, describe: Callable[[str], Mapping[str, Any]]
    ) -> None:
        self._plan = plan
        self.sets = sets
        self.distribution = distribution
        self.inputs: list[tuple[Operand, ...]] = []
        self.refill(seed)
        shape, dtype = plan.output
        self.outputs = [check.poisoned(shape, dtype) for _ in range(sets)]
        self._launch = compile_launch(plan.compute, self._arguments(0), self.outputs[0])
        self._description = dict(describe(self._launch.text))
        self.execution: str = self._description.pop("execution")

    @property
    def output_shape(self) -> tuple[int, int]:
        return self._plan.output[0]

    @property
    def set_bytes(self) -> int:
        """Bytes that one launch touches: operands and output of one set."""
        return int(sum(each.data.nbytes for each in self.inputs[0]) + self.outputs[0].nbytes)

    def enqueue(self, set_index: int) -> None:
        self.outputs[set_index] = self._launch.run(self._arguments(set_index), self.outputs[set_index])

    def loop(self, turns: int) -> Loop:
        """Compile a program of ``turns`` turns over every set."""
        arguments = [self._arguments(index) for index in range(self.sets)]
        return compile_loop(self._plan.compute, arguments, self.outputs, turns, self._plan.products)

    def run(self, loop: Loop) -> None:
        """Run a loop's program to its end, in the kernel's buffers."""
        arguments = tuple(self._arguments(index) for index in range(self.sets))
        operands, outputs = loop.program.run(arguments, tuple(self.outputs))
        self.outputs = list(outputs)
        self.inputs = [self._with(index, arrays) for index, arrays in enumerate(operands)]
        self.wait()

    def wait(self) -> None:
        """Return when everything enqueued has finished."""
        jax.block_until_ready((self.outputs, self.inputs))

    def refill(self, seed: int) -> None:
        self.inputs = [
            tuple(
                drawn(shape, dtype, self.distribution, mixed_seed(seed, index, number))
                for number, (shape, dtype) in enumerate(self._plan.operands)
            )
            for index in range(self.sets)
        ]

    def poison(self) -> None:
        shape, dtype = self._plan.output
        self.outputs = [check.poisoned(shape, dtype) for _ in range(self.sets)]

    def observe(self, probe: Probe) -> Observed:
        return check.observe(self.outputs[probe.set_index], probe)

    def reference(self, probe: Probe) -> Reference:
        operands = self.inputs[probe.set_index]
        tiles = tuple(self._plan.formula.tile(operands, *tile) for tile in probe.tiles)
        signs = check.sign_vector(self.output_shape[1], probe.seed)
        return Reference(tiles, self._plan.formula.project(operands, signs))

    def describe(self) -> Mapping[str, Any]:
        executable = self._launch.run
        memory = executable.memory_analysis()
        return {
            **self._description,
            "library": "XLA",
            "custom_calls": list(targets(parse(self._launch.text))),
            "compile_s": self._launch.compile_s,
            "cost_analysis": _numbers(executable.cost_analysis() or {}, ("flops", "bytes accessed", "optimal_seconds")),
            "temporary_bytes": int(getattr(memory, "temp_size_in_bytes", 0)),
            "distribution": self.distribution,
            "reference": "float64",
        }

    def close(self) -> None:
        """Drop the buffers."""
        self.inputs, self.outputs = [], []

    def _arguments(self, index: int) -> Operands:
        scales = tuple(each.scale for each in self.inputs[index] if each.scale is not None)
        constants = tuple(np.float32(value) for value in self._plan.scalars)
        return (*(each.data for each in self.inputs[index]), *scales, *map(jax.numpy.asarray, constants))

    def _with(self, index: int, arrays: Sequence[jax.Array]) -> tuple[Operand, ...]:
        """Operands of a set in the buffers that a program handed back."""
        old = self.inputs[index]
        scales = iter(arrays[len(old) :])
        return tuple(
            Operand(data, None if operand.scale is None else next(scales)) for operand, data in zip(old, arrays, strict=False)
        )


def _numbers(analysis: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    return {name.replace(" ", "_"): float(analysis[name]) for name in names if name in analysis}
