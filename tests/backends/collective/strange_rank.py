"""A rank with planted faults: ``ROOFBENCH_PLANTED`` holds a list of them in JSON.

``{"fault": "kill", "rank": 1, "bytes": 4096, "at": "Sample"}`` strikes when that rank is given that order for a message of that
size.  ``late`` comes to one ``iteration`` of it, the first where none is given, once there is the file ``until``.
``log`` has every launch of such messages logged as NCCL does, with the algorithm and protocol in ``ran``.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from backends.torch.collective.orders import Launch, Make, OpenGroup, Order, Sample
from backends.torch.collective.rank import Rank, main

PLANTED = {each["bytes"]: each for each in json.loads(os.environ.get("ROOFBENCH_PLANTED", "[]"))}
HEAD = "host:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
LINE = "host:7:7 [0] NCCL INFO AllReduce: {} Bytes -> Algo {} channel{{Lo..Hi}}={{0..3}}\n"


class StrangeRank(Rank):
    def __init__(self, *given: Any) -> None:
        self._own_number, self._text = given[0], ""
        self._faults: dict[int, dict[str, Any]] = {}  # by ticket
        super().__init__(given[0], given[1], self._planted_text, *given[3:])
        self._late_until, self._late_at = "", 0

    def carry_out(self, order: Order) -> Any:
        if isinstance(order, Make):
            self.enter = partial(self._enter_late, self.enter)
            self._faults[order.ticket] = PLANTED.get(order.task.message.message_bytes, {})
        if isinstance(order, OpenGroup):
            self._text = HEAD
        fault = self._faults.get(getattr(order, "ticket", -1), {})
        kind, struck = fault.get("fault"), fault.get("rank") == self._own_number
        if kind == "log" and isinstance(order, Launch):
            self._text = LINE.format(fault["bytes"], fault["ran"])
        if struck and type(order).__name__ == fault.get("at"):
            strike(kind)
            self._late_until, self._late_at = fault.get("until", ""), fault.get("iteration", 0)
        value = super().carry_out(order)
        if struck and kind == "wrong" and isinstance(order, Launch | Sample):
            self._shares[order.ticket]._buffers.received[-1] += 1
        return value

    def _enter_late(self, enter: Callable[[int], None], iteration: int) -> None:
        if self._late_until and iteration == self._late_at:
            while not Path(self._late_until).exists():
                time.sleep(0.01)
            self._late_until = ""
        enter(iteration)

    def _planted_text(self) -> str:
        text, self._text = self._text, ""
        return text


def strike(kind: str | None) -> None:
    match kind:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(3)
        case "hang":
            while True:
                time.sleep(1)
        case "raise":
            raise NotImplementedError("planted: this rank does not offer it")


if __name__ == "__main__":
    sys.exit(main(StrangeRank))
