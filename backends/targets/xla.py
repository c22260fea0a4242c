"""What XLA compiles for our jobs, for TPUs that are not there (libtpu's topologies) and for the host's CPU.

``prepare`` has to run before JAX is loaded: it says where no TPU is to be looked for.  Of collectives four devices of the
topology are the ranks, or as many of the host.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from backends.targets.made import Refused
from suite.hardware.catalogue import load
from suite.targets.names import BY_NAME

TOPOLOGIES = {"v5e": "v5e:2x2", "v5p": "v5p:2x2x1", "v6e": "v6e:2x2", "tpu7x": "tpu7x:2x2x1"}
CPU = "cpu"
CHIPS = 4  # of each topology
RANKS = 4
# Nothing may ask a cloud's metadata server for a TPU, nor a running process for the chip's lock: there is no chip.
SETTINGS = {
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
FLAGS, FORCED = "XLA_FLAGS", f"--xla_force_host_platform_device_count={RANKS}"
MESSAGE_BYTES = 64 << 20
COSTS = {"flops": "flops", "bytes accessed": "bytes_accessed", "optimal_seconds": "optimal_s"}
SIZES = {
    "generated_code_size_in_bytes": "code_bytes",
    "temp_size_in_bytes": "temporary_bytes",
    "peak_memory_in_bytes": "peak_bytes",
}


class Compiled(NamedTuple):
    """An executable, and the format that its products are to be in; ``None`` where it has none."""

    executable: Any
    format: str | None = None


def prepare() -> None:
    """Set what JAX and libtpu read when they are loaded."""
    os.environ.update(SETTINGS)
    os.environ[FLAGS] = f"{os.environ.get(FLAGS, '')} {FORCED}".strip()


def became(make: Callable[..., Compiled], target: str, given: dict[str, Any]) -> dict[str, Any]:
    """The facts of one program; raises ``Refused`` for what the product does not offer there."""
    import jax

    jax.config.update("jax_enable_x64", True)
    devices = devices_of(target)
    began_s = time.monotonic()
    compiled = make(devices[:RANKS], target, **given)
    seconds = time.monotonic() - began_s
    of_chip = {"devices_of_chip": len(devices) // CHIPS} if target != CPU else {}
    return {"configuration": "XLA's own choice", "facts": {**facts(compiled, target), **of_chip}, "seconds": seconds}


def devices_of(target: str) -> Sequence[Any]:
    """Those of the topology, of which a chip may have several; of the host as many as there are ranks."""
    import jax

    if target == CPU:
        return list(jax.local_devices(backend="cpu"))
    from jax.experimental import topologies

    return list(topologies.get_topology_desc(topology_name=TOPOLOGIES[target], platform="tpu").devices)


def gemm(devices: Sequence[Any], target: str, format: str, side: int) -> Compiled:
    """A large square, both operands with K contiguous."""
    from backends.jax.gemm import Sizes, plan_of
    from backends.jax.target import Target

    if reason := Target(_kind(target)).missing(format):
        raise Refused(reason)
    return Compiled(
        _launch(plan_of(format, Sizes(side, side, side, "nt"), {}), devices[0], scaled=format == "fp8_e4m3"), format
    )


def calibration(devices: Sequence[Any], target: str, op: str, size_bytes: int) -> Compiled:
    """A read, copy or triad over one working set, or the least that a program can do."""
    from backends.jax.calibration import plan_of

    return Compiled(_launch(plan_of(op, size_bytes), devices[0]))


def collective(devices: Sequence[Any], target: str, op: str, implementation: str) -> Compiled:
    """A collective of fp32 over the ranks, out of place where there is a choice."""
    import jax
    import jax.numpy as jnp

    from backends.jax.collective.port import misfit
    from backends.jax.collective.programs import compiled
    from suite.collectives.choice import Choice
    from suite.collectives.message import message
    from suite.collectives.names import Algo, Op
    from suite.collectives.transport import Transport
    from suite.jobs.collective import Task

    choice = Choice(Algo.RING) if implementation == "own" else Choice()
    task = Task(message(Op(op), "fp32", len(devices), MESSAGE_BYTES), implementation, choice, False, Transport.HOST)
    if task.op is Op.BROADCAST and target != CPU:
        raise Refused(
            f"JAX {jax.__version__} does not lower its broadcast for a TPU: its own rule names an axis that it does not bind"
        )
    if target == CPU and (reason := misfit(task)):
        raise Refused(reason)
    return Compiled(compiled(task, list(devices), jnp.dtype(jnp.float32)).run)


def facts(compiled: Compiled, target: str) -> dict[str, Any]:
    """Of an executable: what XLA reckons it costs, what memory it takes, and what its products take."""
    analysis = compiled.executable.cost_analysis() or {}
    memory = compiled.executable.memory_analysis()
    # XLA counts what it does not know as -1.
    costs = {name: float(analysis[written]) for written, name in COSTS.items() if analysis.get(written, -1) >= 0}
    sizes = {name: int(getattr(memory, written)) for written, name in SIZES.items() if hasattr(memory, written)}
    return {**costs, **sizes, **_executed(compiled, target)}


def _executed(compiled: Compiled, target: str) -> dict[str, Any]:
    """By the operands of the products in the compiled HLO; of a TPU, what is below that shows in its sheet alone."""
    from backends.jax.hlo import parse, product_types
    from backends.jax.target import FORMATS

    if compiled.format is None:
        return {"instructions": [], "execution": "", "instead": ""}
    taken = sorted(product_types(parse(str(compiled.executable.as_text()))))
    told = {"instructions": [f"{name} operands in the HLO" for name in taken]}
    if FORMATS[compiled.format].xla not in taken:
        return {**told, "execution": "upcast", "instead": f"XLA multiplies {', '.join(taken) or 'in a form that is not shown'}"}
    pipe = _pipe(compiled.format)
    if (named := BY_NAME[target].sheet) and (sheet := load(named)).peak_flop_s(pipe) is None:
        instead = (
            f"{sheet.name} has no {pipe} rate: its multiplier is given something else below the HLO, which still says {pipe}"
        )
        return {**told, "execution": "upcast", "instead": instead}
    return {**told, "execution": "native", "instead": ""}


def _launch(plan: Any, device: Any, *, scaled: bool = False) -> Any:
    """One launch as the product compiles it, from shapes alone."""
    import jax
    from jax.sharding import SingleDeviceSharding

    from backends.jax.program import compile_launch

    def shape(sizes: tuple[int, ...], kind: Any) -> Any:
        return jax.ShapeDtypeStruct(sizes, kind, sharding=SingleDeviceSharding(device))

    scalars = len(plan.scalars) + (len(plan.operands) if scaled else 0)
    operands = (*(shape(*each) for each in plan.operands), *(shape((), "float32") for _ in range(scalars)))
    return compile_launch(plan.compute, operands, shape(*plan.output)).run


def _kind(target: str) -> str:
    return CPU if target == CPU else "tpu"


def _pipe(format_name: str) -> str:
    return "fp8" if format_name.startswith("fp8") else format_name
