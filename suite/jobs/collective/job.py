"""What the collective job measures: its axes, the bytes that cross a link, and the memory of all ranks."""

from collections.abc import Hashable, Iterator
from itertools import product

from suite.case import Case, Items, Regime, Workload, items
from suite.collectives.bandwidth import busbw_factor
from suite.collectives.choice import Choice
from suite.collectives.message import messages
from suite.collectives.names import Op
from suite.collectives.number_format import NUMBER_FORMATS
from suite.collectives.tolerance import tolerance
from suite.collectives.transport import Transport
from suite.jobs.collective.memory import process_bytes, xla_bytes
from suite.jobs.collective.settings import IMPLEMENTATIONS, CollectiveSettings, check_settings
from suite.jobs.collective.sizes import parse_size
from suite.jobs.collective.task import OWN, XLA, Task, forms, message_of, misfit
from suite.work import Footprint, Work

# Time from a barrier to the end of the slowest rank, launch included: what a caller waits.
USUAL_REGIMES = (Regime("warm", "sustained", "call"),)


class CollectiveJob:
    """See ``suite.jobs.job.Job``."""

    name = "collective"
    method_version = 2  # 2: data of sums in place are written again before they leave the format
    settings_type = CollectiveSettings
    formats = tuple(NUMBER_FORMATS)
    implementations = IMPLEMENTATIONS
    usual_regimes = USUAL_REGIMES

    def check(self, settings: CollectiveSettings) -> None:
        """See ``check_settings``."""
        check_settings(settings)

    def workloads(self, settings: CollectiveSettings) -> Iterator[Workload]:
        """World sizes outermost: ranks are started once for each."""
        sizes = sorted(map(parse_size, settings.sizes))
        names = dict.fromkeys(product(settings.formats, settings.ops))
        for ranks, (fmt, op) in product(dict.fromkeys(settings.world_sizes), names):
            for each in messages(Op(op), fmt, ranks, sizes):
                params = items({"op": op, "message_bytes": each.message_bytes, "world_size": ranks})
                yield Workload("collective", fmt, params)

    def switches(self, settings: CollectiveSettings, workload: Workload) -> tuple[Items, ...]:
        """Every algorithm, protocol and form, on processors and on devices; of these a backend has some (see ``misfit``).

        Ranks that are to share a GPU are not asked of processors.
        """
        transports = (Transport.SHARED_GPU,) if settings.share_device else (Transport.HOST, Transport.DEVICE_LINK)
        in_place = forms(Op(workload.param("op")), settings.in_place)
        axes = (settings.algos, settings.protos, in_place, transports)
        names = ("algo", "proto", "in_place", "transport")
        found = (dict(zip(names, map(_plain, values), strict=True)) for values in product(*axes))
        # Ranks that somebody else started may be anywhere: what they measure is no case of ranks that this run starts.
        joined: dict[str, str | bool] = {"joined": True} if settings.joined else {}
        return tuple(dict.fromkeys(items({**each, **joined}) for each in found))

    def made_for(self, case: Case) -> Hashable:
        """A process group: of one world, and where an algorithm or protocol is forced, of that alone."""
        task = Task.of(case)
        forced = task.implementation != OWN and task.choice != Choice()
        return (task.ranks, task.op, task.choice) if forced else task.ranks

    def misfit(self, case: Case) -> str | None:
        """Why nobody has this algorithm and protocol for the operation on the case's backend."""
        found = misfit(case)
        if found == "" and Task.of(case).transport is Transport.SHARED_GPU:
            return (
                "jobs.collective.share_device=true has all ranks share one GPU, and the ranks of this backend are of the host"
            )
        return found

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """No arithmetic; ``compulsory_bytes`` are those of busbw, which is then their rate: what a ring moves over each link.

        Over a shared device none are counted, as nothing crosses a link; ``pipe`` is the transport.
        """
        given, transport = message_of(workload), Transport(str(dict(switches).get("transport", Transport.DEVICE_LINK)))
        over_link = round(given.message_bytes * busbw_factor(given.op, given.ranks)) if transport.has_bandwidth else 0
        return Work(flops=0, compulsory_bytes=over_link, pipe=transport.value)

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """Buffers of all the ranks that take their memory from the device, and what they need beside these."""
        task = Task.read(workload, OWN, switches)
        given = task.message
        ranks = given.ranks if task.transport.together else 1
        received = given.receive_elements * given.itemsize
        return Footprint(
            input_bytes=ranks * (given.buffer_bytes(task.in_place) - received),
            output_bytes=ranks * received,
            scratch_bytes=process_bytes(task),
            scratch_of_backend=((XLA, xla_bytes(task)),) if task.transport is Transport.HOST else (),
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """Of random data, whose sums round; exact integers are compared beside and have none."""
        given = message_of(workload)
        return tolerance(given.op, given.format, given.ranks)


def _plain(value: object) -> str | bool:
    return value if isinstance(value, bool) else str(value)
