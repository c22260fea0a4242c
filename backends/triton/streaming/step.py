"""A whole decode step by roofbench's own kernels: five launches a layer, and two more.

A launch that ends leaves the memory idle until the next one has begun and its first loads have come: one to three microseconds
each time, where streaming a layer's weights takes a hundred.  So what stands between two products goes into them: the
residual, rotation, appending to the cache or activation behind one, and a norm into both (see ``norm``).  That leaves q k v,
attention, output, gate and up, down.  On devices that have dependent launches a product may begin while the launch before it
ends; whether that is faster is tried.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import torch

from backends.torch.decode_step.kernel import fill
from backends.torch.decode_step.way import Task
from backends.torch.way import Made as MadeReady
from backends.triton.decode import port as decode_port
from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.dependent import has_dependent_launches
from backends.triton.gemm.device import Device
from backends.triton.gemm.fitting import told_by
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.made import Made, tuning_facts
from backends.triton.gemm.trials import Trial
from backends.triton.gemm.tuning import Refused, search
from backends.triton.streaming.call import gathered_call
from backends.triton.streaming.config import Config
from backends.triton.streaming.layers import Passed, attention_of, operands_of, passed_in, problems_of
from backends.triton.streaming.port import BUDGET_S, Maker, emulation, passing_bytes
from suite.jobs.decode.cache import NUMBER_BYTES
from suite.jobs.decode_step.work import activation_bytes
from suite.jobs.emulation import PASSING_BYTES

Launch = Callable[[], Any]


class Order(NamedTuple):
    """How launches follow each other: each waits for the one before it to end, or products only for what it wrote."""

    dependent: bool

    @property
    def label(self) -> str:
        return "dependent products" if self.dependent else "one launch after the other"


def make(name: str, task: Task, device: Device, loaded: Load = load, cuda: Any = torch.cuda) -> MadeReady:
    """Compile and load; launches write into the buffers of their set and allocate nothing."""
    tuned = name == "triton_tuned"
    passed = [passed_in(each) for each in task.buffers]
    if tuned:
        _filled(task)
    attention = decode_port.make(name, attention_of(task), device, loaded, cuda)
    if tuned:
        _filled(task)  # pages lie elsewhere now
        for each in passed:
            each.even()
    makers = {
        kind: Maker(problem, device, operands_of(kind, task.buffers, passed), loaded)
        for kind, problem in problems_of(task.workload).items()
    }
    chosen = {kind: maker.tuned(cuda) if tuned else maker.first() for kind, maker in makers.items()}
    for each in passed:
        each.clear()
    configs = {kind: config for kind, (config, _) in chosen.items()}
    step = Step(task, device, loaded, attention.launches, makers, configs, passed)
    made = step.tuned(cuda) if tuned else step.make(Order(dependent=False))
    told = [attention.emulation, *(emulation(each.facts, task.workload.format) for _, each in chosen.values())]
    facts = {
        "library": f"Triton {version('triton')}",
        "launches": step.launches,
        "products": {kind: each.facts for kind, (_, each) in chosen.items()},
        "attention": {key: value for key, value in attention.facts.items() if key != PASSING_BYTES},
        PASSING_BYTES: step.passing_bytes + task.sizes.layers * int(attention.facts.get(PASSING_BYTES, 0)),
        **made.facts,
    }
    return MadeReady(made.launches, facts, emulation=next(filter(None, told), ""))


class Step:
    """Puts the launches of a step in their order; ``configs`` are those of the products, by name."""

    def __init__(
        self,
        task: Task,
        device: Device,
        loaded: Load,
        attention: Sequence[Launch],
        makers: Mapping[str, Maker],
        configs: Mapping[str, Config],
        passed: Sequence[Passed],
    ) -> None:
        self._task, self._device, self._loaded = task, device, loaded
        self._attention, self._makers, self._configs, self._passed = attention, makers, configs, passed

    @property
    def launches(self) -> int:
        """Of one step."""
        return 5 * self._task.sizes.layers + 2

    @property
    def passing_bytes(self) -> int:
        """What launches of products pass to each other, but for few sums of squares, and programs of one."""
        sizes, workload = self._task.sizes, self._task.workload
        of_splits = sum(
            (1 if kind == "lm_head" else sizes.layers) * passing_bytes(maker.problem, self._configs[kind], self._device)
            for kind, maker in self._makers.items()
        )
        norms = 2 * sizes.layers + 1
        return activation_bytes(sizes, NUMBER_BYTES[workload.format]) + of_splits + norms * int(self._passed[0].scaled.nbytes)

    def make(self, order: Order) -> Made:
        """A launch for each input set, which is all of them."""
        launches = {
            kind: maker.make(self._configs[kind], dependent=order.dependent).launches for kind, maker in self._makers.items()
        }
        steps = []
        for number, (each, through) in enumerate(zip(self._task.buffers, self._passed, strict=True)):
            ready = (each.layers[0].attention_norm.data, through.scaled, through.of_embedding)
            gather = self._loaded(gathered_call(each.embedding.data, each.tokens.data, each.embedded, *ready))
            steps.append(_in_turn([gather.launch, *self._of_layers(number, launches), launches["lm_head"][number]]))
        return Made(tuple(steps), {"order": order.label})

    def tuned(self, cuda: Any) -> Made:
        """The faster of the orders that the device has, each held against the first one's logits."""
        orders = [Order(dependent=False), *([Order(dependent=True)] if has_dependent_launches(self._device) else [])]
        compared = Comparison(self.make, self._task.buffers[0].logits, cuda)

        def trial(order: Order) -> Trial:
            try:
                return compared(order)
            except RuntimeError as error:  # a driver that does not capture such launches
                if not order.dependent:
                    raise
                raise Refused(told_by(error)) from error

        found = search(orders, trial, BUDGET_S)
        return self.make(found.best).knowing({"order_tried": tuning_facts(found)})

    def _of_layers(self, set_index: int, launches: Mapping[str, Sequence[Launch]]) -> list[Launch]:
        layers = self._task.sizes.layers
        return [
            launch
            for index in range(set_index * layers, (set_index + 1) * layers)
            for launch in (
                launches["qkv"][index],
                self._attention[index],
                launches["o"][index],
                launches["gate_up"][index],
                launches["down"][index],
            )
        ]


def _in_turn(launches: Sequence[Launch]) -> Launch:
    calls = tuple(launches)

    def launch() -> None:
        for each in calls:
            each()

    return launch


def _filled(task: Task) -> None:
    """Numbers for trying: inputs as the case begins with, and something between the stages."""
    fill(task.buffers, task.workload.distribution, task.seed)
    for each in task.buffers:
        for tensor in each.left:
            tensor.normal_()
