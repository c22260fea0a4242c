"""The process that has a world's devices: ``python -m backends.jax.collective.devices``, started by a worker only."""

import argparse
import faulthandler
import os
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from backends.failures import classify
from backends.jax.collective.orders import (
    Broke,
    CountWrong,
    Done,
    Expect,
    Fill,
    Forget,
    Launch,
    Leave,
    Made,
    Make,
    Observe,
    Order,
    Row,
    Sample,
)
from backends.variables import FLAGS, with_flag
from suite.worker.lifeline import bind_to_parent, leave_no_core
from suite.worker.serve import caught

FORCED = "--xla_force_host_platform_device_count"


def start(ranks: int) -> list[Any]:
    """As many devices of this host as there are ranks; JAX reads how many when it is first asked for one."""
    os.environ[FLAGS] = with_flag(os.environ.get(FLAGS, ""), f"{FORCED}={ranks}")
    from backends.jax.platform import start as start_jax

    devices = list(start_jax("cpu"))
    assert len(devices) == ranks, "JAX was started before"
    return devices


class Devices:
    """Carries orders out on a mesh.  ``data`` is kept apart from what a launch in place consumes."""

    def __init__(self, devices: list[Any]) -> None:
        self._devices = devices
        self._task: Any = None
        self._program: Any = None
        self._inputs: Any = None
        self._data: Any = None
        self._result: Any = None

    def carry_out(self, order: Order) -> Any:
        """Carry out one order."""
        match order:
            case Make(task):
                return self._make(task)
            case Fill(kind, seed):
                return self._fill(kind, seed)
            case Forget():
                self._result = None
            case Launch():
                self._launch(self._ready())
            case Sample(iterations):
                return [self._timed() for _ in range(iterations)]
            case Observe(slices, seed):
                return self._observe(slices, seed)
            case Expect(slices, seed):
                return self._expect(slices, seed)
            case CountWrong():
                return self._count_wrong()
        return None

    def _make(self, task: Any) -> Made:
        import jax

        from backends.jax.analyses import cost_analysis, memory_analysis
        from backends.jax.collective.programs import compiled, permutes
        from backends.jax.hlo import parse

        self._task, self._data, self._result = task, None, None
        began_s = time.perf_counter()
        self._program = compiled(task, self._devices, self._dtype())
        taken_s = time.perf_counter() - began_s
        module = parse(self._program.text)
        opcodes = {each.opcode for instructions in module.computations.values() for each in instructions}
        known = tuple(sorted(name for name in opcodes if name.startswith(("all-", "reduce-scatter", "collective-"))))
        moved = permutes(self._program.text)
        library = f"XLA of JAX {jax.__version__}"
        costs, sizes_bytes = cost_analysis(self._program.run), memory_analysis(self._program.run)
        return Made(self._devices[0].platform, library, known, moved.elements, moved.messages, taken_s, costs, sizes_bytes)

    def _fill(self, kind: Any, seed: int) -> None:
        import jax

        from suite.collectives.data import Inputs
        from suite.collectives.part import Part

        message = self._task.message
        self._inputs, self._result = Inputs(message, kind, seed), None
        whole = Part(0, message.send_elements)
        shards = [
            jax.device_put(self._inputs.sent(rank, whole).astype(self._dtype()), device)
            for rank, device in enumerate(self._devices)
        ]
        shape = (self._task.ranks * message.send_elements,)
        self._data = jax.make_array_from_single_device_arrays(shape, self._program.sharding, shards)
        self._data.block_until_ready()

    def _ready(self) -> Any:
        """The data, or a copy of them where the program takes their memory for its result."""
        if not self._task.in_place:
            return self._data
        copied = self._data.copy()
        copied.block_until_ready()
        return copied

    def _launch(self, data: Any) -> None:
        self._result = self._program.run(data)
        self._result.block_until_ready()

    def _timed(self) -> int:
        data = self._ready()
        began_ns = time.perf_counter_ns()
        self._launch(data)
        return time.perf_counter_ns() - began_ns

    def _observe(self, slices: Any, seed: int) -> list[Row]:
        from backends.jax.collective.rows import observed

        return [observed(row, self._inputs, slices, seed) for row in self._rows()]

    def _expect(self, slices: Any, seed: int) -> list[Row]:
        from backends.jax.collective.rows import expected

        return [expected(self._inputs, rank, slices, seed) for rank in range(self._task.ranks)]

    def _count_wrong(self) -> list[int]:
        from backends.jax.collective.rows import count_wrong

        return [count_wrong(row, self._inputs, rank) for rank, row in enumerate(self._rows())]

    def _rows(self) -> list[Any]:
        import numpy as np

        if self._result is None:
            raise RuntimeError("nothing was launched since the result was dropped")
        shards = sorted(self._result.addressable_shards, key=lambda shard: shard.index[0].start or 0)
        return [np.asarray(shard.data) for shard in shards]

    def _dtype(self) -> Any:
        import jax.numpy as jnp

        names = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
                 "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}  # fmt: skip
        fmt = self._task.message.format
        return jnp.dtype(names.get(fmt, fmt))


def serve(connection: Connection, devices: Devices) -> None:
    """Answer until told to leave, or until the worker is gone."""
    with suppress(EOFError, ConnectionError):
        while not isinstance(order := connection.recv(), Leave):
            connection.send(_answer(devices, order))


def _answer(devices: Devices, order: Order) -> Done | Broke:
    values: list[Any] = []
    failure = caught(lambda: values.append(devices.carry_out(order)), classify)
    return Broke(failure.outcome, failure.reason) if failure else Done(values[0])


def main() -> int:
    """Bind to the worker first, then start JAX and serve."""
    parser = argparse.ArgumentParser(prog="python -m backends.jax.collective.devices")
    for name in ("fd", "parent", "ranks"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args()
    bind_to_parent(given.parent)
    leave_no_core()
    faulthandler.enable()
    os.set_inheritable(given.fd, False)
    serve(Connection(given.fd), Devices(start(given.ranks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
