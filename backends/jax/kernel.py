"""A case made ready on XLA: rotating input sets, a compiled launch, and programs that repeat it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from backends.host import cgroup
from backends.host.cpuinfo import memory_available_bytes
from backends.jax import check
from backends.jax.analyses import cost_analysis, memory_analysis
from backends.jax.data import Operand, drawn, give_back
from backends.jax.hlo import parse, targets
from backends.jax.program import Compute, Loop, Operands, compile_launch, compile_loop, temporary_bytes
from backends.seeds import mixed_seed
from suite.backend import FEW_ELEMENTS, Observed, Probe, Reference
from suite.gigabytes import gigabytes


class Formula(Protocol):
    """What the output should be, in float64 on the host, from one set's operands as they are stored."""

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        """A part of the output (rows x columns)."""
        ...

    def project(self, operands: Sequence[Operand], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """The whole output (rows x columns) times a vector (columns): one value a row."""
        ...

    def expected_size(self, operands: Sequence[Operand], rows: int, columns: int) -> float:
        """Root mean square of the elements of the whole output (rows x columns) over all signs of the terms that make them.

        It is asked of outputs of few elements only; 0 of those that are never all near 0 by chance.
        """
        return 0.0


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
        self._scalars = tuple(jax.numpy.asarray(value, jax.numpy.float32) for value in plan.scalars)
        self.inputs: list[tuple[Operand, ...]] = [() for _ in range(sets)]
        self._arguments: list[Operands] = [() for _ in range(sets)]  # made once: a launch should cost the host a call
        self.refill(seed)
        shape, dtype = plan.output
        self.outputs = jax.block_until_ready([check.poisoned(shape, dtype) for _ in range(sets)])
        self._spares: list[list[jax.Array]] = []
        self._latest = 0
        self._launch = compile_launch(plan.compute, self._arguments[0], self.outputs[0])
        if all(device.platform == "cpu" for device in self.outputs[0].devices()):
            _refuse_without_room(temporary_bytes(self._launch))
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
        self.outputs[set_index] = self._launch.run(self._arguments[set_index], self.outputs[set_index])
        self._latest = set_index

    def loop(self, turns: int, rotations: int = 1) -> Loop:
        """Compile a program of ``turns`` turns, each of ``rotations`` over every set."""
        shape, dtype = self._plan.output
        while len(self._spares) < rotations - 1:
            self._spares.append([check.poisoned(shape, dtype) for _ in range(self.sets)])
        slots, products = self._slots(rotations), self._plan.products
        return compile_loop(self._plan.compute, self._arguments, slots, turns, products, self._launch)

    def run(self, loop: Loop, rotations: int = 1) -> None:
        """Run a loop's program to its end, in the kernel's buffers."""
        # A program takes over what it is given; scalars serve every set, so it gets copies.
        data = len(self._plan.operands) + sum(operand.scale is not None for operand in self.inputs[0])
        arguments = tuple((*each[:data], *(scalar.copy() for scalar in self._scalars)) for each in self._arguments)
        operands, slots = loop.program.run(arguments, self._slots(rotations))
        self.outputs = list(slots[0])
        self._spares[: rotations - 1] = [list(slot) for slot in slots[1:]]
        for index, arrays in enumerate(operands):
            self._keep(index, self._with(index, arrays))
        self.wait()

    def wait(self) -> None:
        """Return when everything enqueued has finished."""
        jax.block_until_ready((self.outputs, self.inputs))

    def wait_for_latest(self) -> None:
        """Return when the latest launch has: asking one array costs the host a fraction of a microsecond."""
        jax.block_until_ready(self.outputs[self._latest])

    def refill(self, seed: int) -> None:
        for index in range(self.sets):
            self._keep(index, ())  # its memory is free for the next
            fresh = (
                drawn(shape, dtype, self.distribution, mixed_seed(seed, index, number))
                for number, (shape, dtype) in enumerate(self._plan.operands)
            )
            self._keep(index, tuple(fresh))
        jax.block_until_ready(self.inputs)  # a draw that has no room fails behind the call: it is told here

    def poison(self) -> None:
        shape, dtype = self._plan.output
        for index in range(self.sets):
            self.outputs[index].delete()  # its memory is free for the next
            self.outputs[index] = check.poisoned(shape, dtype)

    def observe(self, probe: Probe) -> Observed:
        return check.observe(self.outputs[probe.set_index], probe)

    def reference(self, probe: Probe) -> Reference:
        operands = self.inputs[probe.set_index]
        tiles = tuple(self._plan.formula.tile(operands, *tile) for tile in probe.tiles)
        signs = check.sign_vector(self.output_shape[1], probe.seed)
        rows, columns = self.output_shape
        few = rows * columns < FEW_ELEMENTS
        expected = self._plan.formula.expected_size(operands, rows, columns) if few else 0.0
        return Reference(tiles, self._plan.formula.project(operands, signs), expected_size=expected)

    def describe(self) -> Mapping[str, Any]:
        return {
            **self._description,
            "library": "XLA",
            "custom_calls": list(targets(parse(self._launch.text))),
            "compile_s": self._launch.compile_s,
            "cost_analysis": cost_analysis(self._launch.run),
            "memory_analysis": memory_analysis(self._launch.run),
            "distribution": self.distribution,
            "reference": "float64",
        }

    def close(self) -> None:
        """Drop the buffers."""
        self.inputs, self.outputs, self._arguments, self._spares = [], [], [], []
        give_back()

    def _slots(self, rotations: int) -> tuple[tuple[jax.Array, ...], ...]:
        """Outputs of every set for each rotation of a turn: the kernel's own first."""
        return tuple(tuple(each) for each in (self.outputs, *self._spares[: rotations - 1]))

    def _keep(self, index: int, operands: tuple[Operand, ...]) -> None:
        scales = tuple(each.scale for each in operands if each.scale is not None)
        self.inputs[index] = operands
        self._arguments[index] = (*(each.data for each in operands), *scales, *self._scalars)

    def _with(self, index: int, arrays: Sequence[jax.Array]) -> tuple[Operand, ...]:
        """Operands of a set in the buffers that a program handed back."""
        old = self.inputs[index]
        scales = iter(arrays[len(old) :])
        return tuple(
            Operand(data, None if operand.scale is None else next(scales)) for operand, data in zip(old, arrays, strict=False)
        )


def _refuse_without_room(needed: int) -> None:
    """A host gives out memory that it does not have, and ends whoever then uses it."""
    left, free = cgroup.memory_left_bytes(), memory_available_bytes()
    free = free if left is None else min(free, left)
    if needed > free:
        raise MemoryError(
            f"XLA's program needs {gigabytes(needed)} beside its operands and output; {gigabytes(free)} are available; "
            "take a smaller case"
        )
