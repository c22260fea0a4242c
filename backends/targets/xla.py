"""What XLA compiles for our jobs, for TPUs that are not there (libtpu's topologies) and for the host's CPU.

``prepare`` has to run before JAX is loaded: it says where no TPU is to be looked for.  Of collectives four devices of the
topology are the ranks, or as many of the host.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from backends.targets.refused import Refused
from backends.variables import FLAGS, with_flag
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
    "JAX_ENABLE_COMPILATION_CACHE": "false",  # so that what is stored as compiled was
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
FORCED = f"--xla_force_host_platform_device_count={RANKS}"
MESSAGE_BYTES = 64 << 20
ATTENDED = 2048  # queries and keys of a sequence, whose scores a v5e has room for
SEQUENCES, CACHED = 32, 4096  # of a decoding step, tokens of each
COSTS = {"flops": "flops", "bytes accessed": "bytes_accessed", "optimal_seconds": "optimal_s"}
SIZES = {
    "generated_code_size_in_bytes": "code_bytes",
    "temp_size_in_bytes": "temporary_bytes",
    "peak_memory_in_bytes": "peak_bytes",
}


class Compiled(NamedTuple):
    """An executable, and the format that its products are to be in; ``None`` where it has none.

    ``kernel`` is the function whose own kernel has the products, where they stand in no HLO: it takes the format as it is.
    """

    executable: Any
    format: str | None = None
    kernel: str = ""


def prepare() -> None:
    """Set what JAX and libtpu read when they are loaded."""
    os.environ.update(SETTINGS)
    os.environ[FLAGS] = with_flag(os.environ.get(FLAGS, ""), FORCED)


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
    scales = ((), ()) if format == "fp8_e4m3" else ()
    return Compiled(_launch(plan_of(format, Sizes(side, side, side, "nt"), {}), devices[0], scales), format)


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


def attention(
    devices: Sequence[Any], target: str, implementation: str, format: str, heads: str, direction: str = "forward"
) -> Compiled:
    """Causal attention, or its gradients, over two sequences."""
    from backends.jax import attention
    from backends.jax.attention.preparing import plan_of
    from backends.jax.attention.ways import WAYS
    from backends.jax.target import Target
    from suite.case import Case, Regime, Workload
    from suite.jobs.attention.sizes import CAUSAL, HEADS, Sizes, params_of

    q_heads, kv_heads, head_dim, v_head_dim = HEADS.parse(heads)
    sizes = Sizes(direction, 2, q_heads, kv_heads, ATTENDED, ATTENDED, head_dim, v_head_dim, CAUSAL)
    case = Case(Workload("attention", format, params_of(sizes)), implementation, "xla", Regime("cold", "sustained", "device"))
    if reason := attention.reason(case, Target(_kind(target))):
        raise Refused(reason)
    kernel = "" if WAYS[implementation].products(sizes) else WAYS[implementation].call
    return Compiled(_launch(plan_of(implementation, format, sizes), devices[0]), format, kernel)


def decode(
    devices: Sequence[Any], target: str, implementation: str, format: str, heads: str, page_size: int, scaling: str = ""
) -> Compiled:
    """One new token of each of several sequences of one length, over a cache in pages."""
    from backends.jax import decode
    from backends.jax.decode.filling import scale_shape
    from backends.jax.decode.preparing import plan_of, step_of
    from backends.jax.decode.ways import WAYS
    from backends.jax.target import Target
    from suite.case import Case, Regime, Workload, items
    from suite.jobs.decode.sizes import HEADS, Sizes, params_of

    q_heads, kv_heads, head_dim, v_head_dim = HEADS.parse(heads)
    sizes = Sizes(SEQUENCES, q_heads, kv_heads, 1, CACHED, head_dim, v_head_dim, page_size)
    workload = Workload("decode", format, params_of(sizes), semantics=items({"scaling": scaling} if scaling else {}))
    if reason := decode.reason(
        Case(workload, implementation, "xla", Regime("cold", "sustained", "device")), Target(_kind(target))
    ):
        raise Refused(reason)
    step, way = step_of(implementation, workload), WAYS[implementation]
    shape = scale_shape(step)
    scales = () if shape is None else (shape,) * len(step.caches)
    return Compiled(
        _launch(plan_of(implementation, step), devices[0], scales), step.activation, "" if way.products else way.call
    )


def facts(compiled: Compiled, target: str) -> dict[str, Any]:
    """Of an executable: what XLA reckons it costs, what memory it takes, and what its products take."""
    analysis = compiled.executable.cost_analysis() or {}
    memory = compiled.executable.memory_analysis()
    # XLA counts what it does not know as -1.
    costs = {name: float(analysis[written]) for written, name in COSTS.items() if analysis.get(written, -1) >= 0}
    sizes = {name: int(getattr(memory, written)) for written, name in SIZES.items() if hasattr(memory, written)}
    if target == CPU and memory is not None:
        sizes["peak_bytes"] = _held_bytes(memory)
    return {**costs, **sizes, **_executed(compiled, target)}


def _held_bytes(memory: Any) -> int:
    """What a launch on a CPU holds: XLA's own peak leaves out temporaries there, all of which it holds for the whole launch."""
    operands = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    return int(operands + memory.temp_size_in_bytes)


def _executed(compiled: Compiled, target: str) -> dict[str, Any]:
    """By the operands of the products in the compiled HLO; of a TPU, what is below that shows in its sheet alone."""
    from backends.jax.hlo import parse, product_types
    from backends.jax.target import FORMATS

    if compiled.format is None:
        return {"instructions": [], "execution": "", "instead": ""}
    taken = sorted(product_types(parse(str(compiled.executable.as_text()))))
    if compiled.kernel and not taken:
        return {"instructions": [compiled.kernel.rpartition(".")[2]], "execution": "native", "instead": ""}
    told = {"instructions": [f"{name} operands in the HLO" for name in taken]}
    if taken != [FORMATS[compiled.format].xla]:
        return {**told, "execution": "upcast", "instead": f"XLA multiplies {', '.join(taken) or 'in a form that is not shown'}"}
    pipe = _pipe(compiled.format)
    if (named := BY_NAME[target].sheet) and (sheet := load(named)).peak_flop_s(pipe) is None:
        instead = (
            f"{sheet.name} has no {pipe} rate: its multiplier is given something else below the HLO, which still says {pipe}"
        )
        return {**told, "execution": "upcast", "instead": instead}
    return {**told, "execution": "native", "instead": ""}


def _launch(plan: Any, device: Any, scales: Sequence[tuple[int, ...]] = ()) -> Any:
    """One launch as the product compiles it, from shapes alone; ``scales`` are those of what the operands are multiplied by."""
    import jax
    from jax.sharding import SingleDeviceSharding

    from backends.jax.program import compile_launch

    def shape(sizes: tuple[int, ...], kind: Any) -> Any:
        return jax.ShapeDtypeStruct(sizes, kind, sharding=SingleDeviceSharding(device))

    beside = (*scales, *(() for _ in plan.scalars))
    operands = (*(shape(*each) for each in plan.operands), *(shape(sizes, "float32") for sizes in beside))
    return compile_launch(plan.compute, operands, shape(*plan.output)).run


def _kind(target: str) -> str:
    return CPU if target == CPU else "tpu"


def _pipe(format_name: str) -> str:
    return "fp8" if format_name.startswith("fp8") else format_name
