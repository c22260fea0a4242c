"""The words of tables and reports, each in one sentence, for a reader who has never used roofbench."""

import textwrap
from collections.abc import Iterator
from typing import NamedTuple


class Term(NamedTuple):
    """One word, or words that are told apart, and what they mean; ``brief`` is enough beside a table."""

    name: str
    brief: str
    more: str = ""

    @property
    def text(self) -> str:
        return f"{self.brief}. {self.more}".rstrip()


GLOSSARY = (
    Term("cold, warm", "the last-level cache was emptied before each sample, or may still hold the data"),
    Term("burst, sustained", "short windows after idle time, or sampling once clock and power are steady"),
    Term("device, call", "the time on the device with the launch hidden, or what a caller waits, launch included"),
    Term(
        "bound",
        "the largest of a case's floors: compute, memory, link between ranks, or launch for under three empty kernels",
        "A floor is the shortest time that one limit allows: operations over peak, bytes over bandwidth. Cache: memory would "
        "be the largest, but the data stay in the last-level cache; no sheet gives its bandwidth, so there is no fraction.",
    ),
    Term(
        "bound unknown",
        "no peak is known for this device and format, so that there is no floor of arithmetic",
        "The device was matched to no spec sheet, or the sheet does not give the rate.",
    ),
    Term("of spec", "share of the roof at this intensity by the vendor's dense figures, of a CPU by a derived peak"),
    Term(
        "above the derived peak",
        "a share of 100 to 102 % of a peak that no maker declared: an estimate from cores, clock and vector width",
        "Readings of clocks are good to about 2 %, and a share within that is told; a rate further above shows that the "
        "estimate is wrong, and has no share.",
    ),
    Term("of boost", "the same with the peak at the device's maximum clock"),
    Term("at clock", "the same with the peak at the clock that the device counted while the case ran"),
    Term(
        "device clock, sm clock",
        "the clock that is counted on the device, and the one that the driver reports; fractions use the counted one",
        "They may differ: by 10 % on an H200 under its power limit.",
    ),
    Term(
        "empirical",
        "the same by the best verified rate of the same load on this device, and by its fastest read, copy or triad",
        "Of what the store has. It moves as results are added; a case at 100 % is itself the best. What was contended, or has "
        "an interval wider than twice its median, sets no such roof.",
    ),
    Term(
        "±",
        "half the width of the 95 % interval of the median",
        "Not resolved: the interval is wider than twice the median, which then says little more than the order of magnitude.",
    ),
    Term(
        "one sample, no interval",
        "too few fitted into the time allowed, one or so many as it says: nothing tells how far the next would differ",
        "Such a result has no interval, and heads no format that has one with an interval.",
    ),
    Term(
        "library",
        "the implementation by the runtime's own library, such as cuBLAS or oneDNN; others are kernels of roofbench",
    ),
    Term(
        "layout nt, nn, tn",
        "how a product's operands are stored: nt has B as n x k, as a linear layer's weights are, nn as k x n",
        "With tn A is transposed as well.",
    ),
    Term("slot", "the number of a device within a run, from 0"),
    Term(
        "pipe",
        "the unit of the device that multiplies, by whose peak a result is judged",
        "A format that has no unit of its own names the one that stands in for it.",
    ),
    Term(
        "compulsory bytes",
        "what must be moved at least: each operand read once and the result written once",
        "Bandwidth and intensity are by these, not by the traffic that a kernel really makes.",
    ),
    Term(
        "traffic",
        "what a kernel is known to move where that is more than the compulsory bytes, as scores that are written to memory",
        "`roofbench show RUN CASE` and the data say it. MBU, the share of bandwidth that decoding is judged by, is of the "
        "compulsory bytes: it is the fraction of a result that memory bounds.",
    ),
    Term("wasted page memory", "the share of a paged cache in which no token lies: what is left of each sequence's last page"),
    Term(
        "busbw",
        "what a collective moves over each link per second, by the factor of the tests of NCCL: for all_reduce 2(n-1)/n",
        "Times the message over the time, among n ranks. It compares with one direction of a link, whatever algorithm ran.",
    ),
    Term(
        "tensor, row, block",
        "what shares one scale in a quantised format; zero point: one operand's zero may be any of its codes",
        "Block: 1x128 numbers of A and 128x128 of B. A format that does not say has the scaling that its name implies.",
    ),
    Term(
        "quantisation error",
        "norm of what rounding the data to the format changes in the exact product, over the norm of that product",
        "It is of the data and not of the arithmetic: computed in float64 on a sample of the product, from the numbers as "
        "drawn and as stored. Nothing is rounded in fp64, in fp32 and in integers that are multiplied as they are.",
    ),
    Term("converged", "the interval became as narrow as was asked before the time was up; not converged: it did not"),
    Term(
        "in cycles ±",
        "times step to and fro with the clock, as under a limit of power; the median is known better in cycles of it",
        "Behind it stands half the width of the 95 % interval of the median in cycles. It converged in these, and how far the "
        "time wanders is the time's own interval.",
    ),
    Term("steady", "clock and power had settled before sampling; not steady: they had not; a burst has no such state"),
    Term(
        "contended",
        "processes outside the run used the device meanwhile; without the mark none did, or it is not known",
        "Short bursts are over before it can be told, and some drivers do not list the processes of others.",
    ),
    Term(
        "throttled",
        "why the driver held the clock down, and in which share of the readings",
        "sw_power_cap is the limit of power, and xcd_power that of one die; sw_thermal, hw_thermal, socket_thermal, "
        "vr_thermal, hbm_thermal, xcd_thermal and prochot are temperature; hw_power_brake is a brake from outside, "
        "hw_slowdown the hardware's own, and sync_boost holds devices to one clock.",
    ),
    Term(
        "emulated",
        "the device has no unit for the format and computes it with another",
        "Low-precision inputs are converted first, so that the rate is not that of the format in hardware.",
    ),
    Term(
        "simulated, imported",
        "made up by a replay or a planted fault, or from the log of another program: not measured here",
        "It is never compared with what was measured.",
    ),
    Term(
        "bf16x9, int8x28",
        "fp32 or fp64 by so many bf16 or int8 products for each: floors and fractions are of the peak over that number",
        "Rates count the operations asked for, not those of the products. cuBLAS takes nine for fp32, and for fp64 from 28 to "
        "55 by the bits that the data need.",
    ),
    Term(
        "memory",
        "as the runtime shows it, in GB of 10^9 bytes",
        "That can be more than the capacity on a spec sheet: makers write GB for units of 2^30 bytes too.",
    ),
)


def glossary_lines(width: int) -> Iterator[str]:
    """The brief form, names aligned, no line wider than ``width``; only what a table in a terminal shows."""
    shown = [term for term in GLOSSARY if term.name != "memory"]
    edge = max(len(term.name) for term in shown)
    for term in shown:
        first, *rest = textwrap.wrap(term.brief, width - edge - 4)
        yield f"  {term.name:<{edge}}  {first}"
        yield from (f"  {'':<{edge}}  {line}" for line in rest)
