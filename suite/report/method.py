"""How the numbers of a report were made, for a reader who has never used roofbench."""

from typing import NamedTuple


class Topic(NamedTuple):
    """A term or rule and its explanation, one paragraph of plain text."""

    name: str
    text: str


METHOD = (
    Topic(
        "Regime",
        "The same kernel has several honest times, so every number names the conditions it was taken under, as "
        "cache/load/dispatch. Numbers of different regimes are never joined or averaged.",
    ),
    Topic(
        "Cache: cold or warm",
        "Cold: before each sample the last-level cache is flushed, or the inputs rotate over at least three times its size. "
        "Warm: the inputs may still lie in the cache from the launch before. Flushing is never inside the timed region.",
    ),
    Topic(
        "Place in memory",
        "Which pages of memory a buffer has shows in the time of what reads it, by more than an interval of one place says. "
        "Through torch on a GPU, graphs therefore use sixteen sets of buffers (fewer where they would take more than 4 GiB or "
        "an eighth of its memory): cold launches rotate over them, and warm ones stay with one set in each sample. Each case "
        "says how many sets it had.",
    ),
    Topic(
        "Load: burst or sustained",
        "Burst: short windows after idle time, before power and temperature pull the clock down. Sustained: sampling "
        "starts once clock and power (or, where neither can be read, the time itself) have settled; a result that did "
        "not settle is marked not steady.",
    ),
    Topic(
        "Dispatch: device or call",
        "Device: the time on the device with the launch hidden. Call: what a caller waits, launch included.",
    ),
    Topic(
        "When sampling stops",
        "Samples are taken until the 95 % confidence interval of the median, computed from batches because neighbouring "
        "samples are correlated, is within measure.target of it on either side (0.5 % unless the configuration says "
        "otherwise), with a minimum number of samples (measure.min_batches) and a maximum time. A result that reached the "
        "maximum first keeps its interval and is marked not converged. Times are medians (p50) of one launch; rates "
        "derive from times.",
    ),
    Topic(
        "Verification",
        "Outputs are poisoned, computed on fresh random inputs and compared with a float64 reference, before timing and "
        "again after it; products of fp64 with one by other loops on the host, in long double on x86. The error is "
        "norm(output - reference) / norm(reference); the tolerance follows from the format, the accumulation and the "
        "length of the sums. A failed check is stored as incorrect, never as a time.",
    ),
    Topic(
        "Physical-limit gate",
        "A result faster than the device can be, beyond a margin of 2 %, is refused as impossible: above the declared peak at "
        "the clock it ran at (or at the maximum clock), or moving compulsory bytes from a cold cache above the declared "
        "bandwidth. A CPU declares neither: its peak is derived from cores, clock and vector width, in a virtual machine from "
        "a nominal clock. No result is refused for passing a derived peak: within the same margin it has its fraction, "
        "marked as above the derived peak, beyond it the rate alone.",
    ),
    Topic(
        "Work and intensity",
        "Operations and bytes are counted from the definition of the problem: a matrix product of m, n, k has 2mnk "
        "operations, and compulsory bytes count each operand once. Attention has 2(d_qk + d_v) for each pair of query and key "
        "that its mask leaves, its gradients 2(3 d_qk + 2 d_v), scores that are computed again among them. Decoding counts "
        "keys and values once for each token and KV head, a prefix that all sequences share once for all. Arithmetic "
        "intensity is their quotient. Throughput is operations per second (a fused multiply-add is two), "
        "bandwidth is compulsory bytes per second.",
    ),
    Topic(
        "Fractions",
        "Achieved rate over the roof at the same intensity, min(peak, intensity x bandwidth). Spec: the vendor's dense "
        "peak and bandwidth. Boost: the peak at the device's maximum clock. At clock: the peak at the clock that the device "
        "counted while the case ran, which may differ from the one that its driver reports. Empirical: the best verified rate "
        "of the same load that is stored for the device and pipe, and its fastest read, copy or triad; what was contended or "
        "is not resolved sets no such roof. Warm data that fits in the last-level cache has no memory roof: its fractions are "
        "of the peak alone where "
        "compute bounds it and not given where the cache does, and its points may lie above the memory line.",
    ),
    Topic(
        "Bound",
        "What limits a case: compute or memory, whichever floor is the larger, or launch when the case takes less than "
        "three times what an empty kernel takes. Cache, where memory would be it but the data stay in the last-level cache.",
    ),
    Topic(
        "Other work",
        "A result is marked contended where processes outside the run used the device while it was sampled. Without the mark "
        "that was either looked for and not seen, or not known: short bursts are over before it can be told, and some drivers "
        "do not list the processes of others. `roofbench show RUN CASE` and the data say which (null is not known).",
    ),
    Topic(
        "Evidence",
        "Numbers are measured unless marked. Declared figures come from spec sheets, simulated ones from scripted devices; "
        "they are drawn differently and never compared with measured ones.",
    ),
)

OUTCOMES = {
    "ok": "verified and timed",
    "incorrect": "the output differs from the reference by more than the tolerance",
    "impossible": "faster than the physical limit allows",
    "unsupported": "the device or backend does not offer it",
    "out_of_memory": "does not fit in the device's memory",
    "timeout": "a phase passed its deadline and the worker was killed",
    "crashed": "the worker died or its device context was lost",
    "error": "the implementation raised an error",
    "not_honoured": "a forced algorithm was not the one that ran",
    "unchecked": "imported: timed by a tool that did not look at the result",
}
