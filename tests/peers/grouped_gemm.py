"""Roofbench's own grouped products beside torch's and a loop of cuBLAS: the same data, sustained, in alternating rounds.

    python -m tests.peers.grouped_gemm --out DIR --seconds 400

A row is one product: the rates of the useful operations, and how many times as fast ours is.  The shapes are DeepSeek-V3's:
four groups of 8192 rows and eight of 4096, then its 256 experts with 8 for each token, in a prefill and in a step of decoding.
Before them stands one group of fp8 in scaled blocks, by both kernels of ours, held against cuBLASLt's fp8 with scales of rows.
While time is left the first products come again with the fastest of several configurations of ours.
"""

from collections.abc import Sequence
from statistics import geometric_mean, median

from tests.peers.bench import NO_TIME, is_absent
from tests.peers.grouped_gemm_cases import FORMATS, Product, Result, products, square
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number
from tests.peers.together import together

LIBRARY, LOOP, OURS, TUNED, GLUON = "library", "loop", "triton", "triton_tuned", "gluon"
SIDES = (LIBRARY, LOOP, OURS)
ROUNDS = 6
CASE_S = 18.0  # what the three sides of a large product take, checks included
TUNED_S = 75.0  # what trying configurations takes besides
STEADY_S = 3.0  # the device is hot from the product before
BLOCKS_LIMIT = 0.75  # of the rate with scales of rows
SQUARES, SMALL_SQUARES = (4096, 8192), (128,)


def run(session: Session) -> None:
    """Blocks, then every product by the library, a loop and ours; while time is left, ours by trial beside the library."""
    for side in SMALL_SQUARES if session.tiny else SQUARES:
        session.record.add(blocks(session, side))
    results = []
    for product in products(session.tiny):
        result = measured(session, product, SIDES, CASE_S)
        session.record.add(row(result, OURS))
        results.append(result)
    for format_name in FORMATS:
        session.record.add(mean(format_name, [each for each in results if each.product.name.startswith(format_name)]))
    if session.bench.backend.name == "cpu":
        return
    for product in products(session.tiny):
        if session.deadline.left_s() < CASE_S + TUNED_S:
            return
        session.record.add(row(measured(session, product, (LIBRARY, LOOP, TUNED), CASE_S), TUNED))


def measured(session: Session, product: Product, implementations: Sequence[str], least_s: float) -> Result:
    """All sides in turns; nothing where no time is left."""
    if session.deadline.left_s() < least_s and not session.tiny:
        return Result(product, absent=NO_TIME)
    planned = product.sides(session.bench, implementations)
    too_large = next((each.reason for each in planned if each.verdict is not None), "")
    if too_large:
        return Result(product, absent=too_large)
    found = together(session.bench, planned, session.bench.settings(steady_timeout_s=STEADY_S), ROUNDS)
    for each in found:
        session.record.keep(each.planned.case.title, each.figures())
    return Result(product, {each.planned.case.implementation: each for each in found})


def blocks(session: Session, side: int) -> Row:
    """A square of fp8 in scaled blocks by both kernels of ours, and with scales of rows by cuBLASLt, in turns."""
    name = f"= fp8_e4m3 in blocks, {side}x{side}x{side}"
    if session.deadline.left_s() < CASE_S and not session.tiny:
        return PART.without(name, NO_TIME, Verdict.ABSENT)
    in_blocks = square(side, "block")._replace(name=name)
    planned = [*square(side, "row").sides(session.bench, [LOOP]), *in_blocks.sides(session.bench, [OURS, GLUON])]
    found = together(session.bench, planned, session.bench.settings(steady_timeout_s=STEADY_S), ROUNDS)
    for each in found:
        session.record.keep(each.planned.case.title, each.figures())
    return judged(Result(in_blocks, {each.planned.case.implementation: each for each in found}))


def judged(result: Result) -> Row:
    """The faster of ours against the limit."""
    name, lost = result.product.name, [each for each in result.sides.values() if each.summary is None]
    ratios = {ours: median(found) for ours in (OURS, GLUON) if (found := result.ratios(ours, LOOP))}
    note = "; ".join(dict.fromkeys(each.reason for each in lost))
    if not ratios:
        broken = any(not is_absent(each) for each in lost)
        return PART.without(name, note, Verdict.FAILED if broken else Verdict.ABSENT)
    best = max(ratios, key=lambda ours: ratios[ours])
    extremes = result.ratios(best, LOOP)
    cells = (
        NOTHING,
        *(number(result.flop_s(side), 1e-12) for side in (LOOP, best)),
        NOTHING,
        number(ratios[best]),
        f"{min(extremes):.3f} to {max(extremes):.3f}",
        best,
    )
    rates = {ours: result.flop_s(ours) for ours in (LOOP, OURS, GLUON)}
    verdict = Verdict.PASS if ratios[best] >= BLOCKS_LIMIT else Verdict.FAIL
    told = [f"limit {BLOCKS_LIMIT}", *(f"{ours} {ratio:.3f}" for ours, ratio in ratios.items()), *([note] if note else [])]
    return Row(name, cells, verdict, {"ratios": ratios, "rates": rates, "limit": BLOCKS_LIMIT}, ", ".join(told))


def row(result: Result, ours: str) -> Row:
    """One product; a side that the device does not offer leaves a dash and its reason."""
    name = f"{result.product.name}, tuned" if ours == TUNED else result.product.name
    if result.absent:
        return PART.without(name, result.absent, Verdict.ABSENT)
    lost = [each for each in result.sides.values() if each.summary is None]
    broken = next((each for each in lost if not is_absent(each)), None)
    if broken is not None:
        return PART.lost(name, broken)
    over_library, over_loop = (result.ratios(ours, side) for side in (LIBRARY, LOOP))
    measurement = result.sides[ours].measurement
    description = dict(measurement.description) if measurement else {}
    cells = (
        *(number(result.flop_s(side), 1e-12) for side in (LIBRARY, LOOP, ours)),
        number(median(over_library)) if over_library else NOTHING,
        number(median(over_loop)) if over_loop else NOTHING,
        f"{min(over_library):.3f} to {max(over_library):.3f}" if over_library else NOTHING,
        str(description.get("tiles", NOTHING)),
    )
    figures = {"over_library": over_library, "over_loop": over_loop, "description": description}
    note = "; ".join(dict.fromkeys(each.reason for each in lost))
    return Row(name, cells, Verdict.INFO, figures, note)


def mean(format_name: str, results: Sequence[Result]) -> Row:
    """Geometric means of the ratios over a format's products."""
    cells, figures = [], {}
    for theirs in (LIBRARY, LOOP):
        found = [median(ratios) for result in results if (ratios := result.ratios(OURS, theirs))]
        figures[f"over_{theirs}"] = geometric_mean(found) if found else None
        cells.append(number(figures[f"over_{theirs}"]))
    if not any(figures.values()):
        return PART.without(f"{format_name} mean", "no product was measured on both sides", Verdict.ABSENT)
    measured_on_both = sum(bool(result.ratios(OURS, LOOP) or result.ratios(OURS, LIBRARY)) for result in results)
    note = f"over {measured_on_both} of {len(results)} products"
    return Row(f"{format_name} mean", (*[NOTHING] * 3, *cells, NOTHING, NOTHING), Verdict.INFO, figures, note)


PART = Part(
    name="grouped_gemm",
    shows="roofbench's own grouped products beside torch's and a loop of cuBLAS's, sustained, in turns",
    headings=("library TFLOP/s", "loop", "ours", "over library", "over loop", "rounds", "tiles"),
    run=run,
    foot=(
        "'over' is the other side's time over ours, the median over the rounds, whose extremes stand beside it; operations are",
        "those of the rows there are.  The loop knows on the host where groups end, the others read it on the device.  A row",
        "that begins with = is judged: the faster of ours in scaled blocks, over cuBLASLt's product with scales of rows.",
    ),
)

if __name__ == "__main__":
    run_as_script(PART)
