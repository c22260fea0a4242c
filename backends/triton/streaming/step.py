"""A whole decode step by roofbench's own kernels: five launches a layer, and two more.

A launch that ends leaves the memory idle until the next one has begun and its first loads have come: one to three microseconds
each time, where streaming a layer's weights takes a hundred.  So what stands between two products goes into them: the norm
before it and the residual, rotation, appending to the cache or activation behind it.  That leaves q k v, attention, output,
gate and up, down.  On devices that have dependent launches these may begin while those before them end, and bring near
what they stream first: products alone, or attention too, whose latency the weights behind it then fill.  What of this is
fastest is tried.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import torch

from backends.torch.decode_step.kernel import fill
from backends.torch.decode_step.way import Task
from backends.torch.way import Made as MadeReady
from backends.triton.decode import port as decode_port
from backends.triton.decode.config import Config as DecodeConfig
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
from backends.triton.streaming.layers import attention_of, operands_of, problems_of
from backends.triton.streaming.port import BUDGET_S, Maker, emulation, passing_bytes
from suite.jobs.decode.cache import NUMBER_BYTES
from suite.jobs.decode_step.work import activation_bytes
from suite.jobs.emulation import PASSING_BYTES

Launch = Callable[[], Any]


class Order(NamedTuple):
    """How launches follow each other.

    Each waits for the one before it to end; or ``products``, or ``attention`` as well, only for what it wrote, with the first
    ``near`` blocks of a product's weights on their way into the cache.
    """

    products: bool = False
    attention: bool = False
    near: int = 0

    @property
    def label(self) -> str:
        if not self.products:
            return "one launch after the other"
        return f"dependent {'launches' if self.attention else 'products'}, {self.near} blocks near"


ORDERS = (
    Order(products=True, near=2),
    Order(products=True, attention=True, near=2),
    Order(products=True, attention=True, near=4),
    Order(products=True, attention=True),
)


def make(name: str, task: Task, device: Device, loaded: Load = load, cuda: Any = torch.cuda) -> MadeReady:
    """Compile and load; launches write into the buffers of their set and allocate nothing."""
    tuned = name == "triton_tuned"
    if tuned:
        _filled(task)
    decoded = attention_of(task)
    decoder = decode_port.Maker(decoded, device, loaded)
    decoder_config, attended = decoder.chosen(name, cuda)
    attention = decode_port.as_made(decoded, attended)
    if tuned:
        _filled(task)  # pages lie elsewhere now
    makers = {
        kind: Maker(problem, device, operands_of(kind, task.buffers), loaded)
        for kind, problem in problems_of(task.workload).items()
    }
    chosen = {kind: maker.tuned(cuda) if tuned else maker.first() for kind, maker in makers.items()}
    configs = {kind: config for kind, (config, _) in chosen.items()}
    step = Step(task, device, loaded, (decoder, decoder_config), makers, configs)
    made = step.tuned(cuda) if tuned else step.make(Order())
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
    """Puts the launches of a step in their order; ``attention`` with its configuration, ``configs`` of the products by name."""

    def __init__(
        self,
        task: Task,
        device: Device,
        loaded: Load,
        attention: tuple[decode_port.Maker, DecodeConfig],
        makers: Mapping[str, Maker],
        configs: Mapping[str, Config],
    ) -> None:
        self._task, self._device, self._loaded = task, device, loaded
        self._attention, self._makers, self._configs = attention, makers, configs

    @property
    def launches(self) -> int:
        """Of one step."""
        return 5 * self._task.sizes.layers + 2

    @property
    def passing_bytes(self) -> int:
        """What launches of products pass to each other, and programs of one."""
        sizes, workload = self._task.sizes, self._task.workload
        of_splits = sum(
            (1 if kind == "lm_head" else sizes.layers) * passing_bytes(maker.problem, self._configs[kind], self._device)
            for kind, maker in self._makers.items()
        )
        return activation_bytes(sizes, NUMBER_BYTES[workload.format]) + of_splits

    def make(self, order: Order) -> Made:
        """A launch for each input set, which is all of them."""
        launches = {
            kind: maker.make(self._configs[kind], dependent=order.products, near=order.near).launches
            for kind, maker in self._makers.items()
        }
        maker, config = self._attention
        launches["attention"] = maker.make(config, dependent=order.attention).launches
        steps = []
        for number, each in enumerate(self._task.buffers):
            gather = self._loaded(gathered_call(each.embedding.data, each.tokens.data, each.embedded))
            steps.append(_in_turn([gather.launch, *self._of_layers(number, launches), launches["lm_head"][number]]))
        return Made(tuple(steps), {"order": order.label})

    def tuned(self, cuda: Any) -> Made:
        """The faster of the orders that the device has, each held against the first one's logits."""
        orders = [Order(), *(ORDERS if has_dependent_launches(self._device) else [])]
        compared = Comparison(self.make, self._task.buffers[0].logits, cuda)

        def trial(order: Order) -> Trial:
            try:
                return compared(order)
            except RuntimeError as error:  # a driver that does not capture such launches
                if not order.products:
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
                launches["attention"][index],
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
