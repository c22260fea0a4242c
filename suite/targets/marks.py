"""How a cell is shown in one or two characters, and what the characters mean."""

from collections.abc import Iterable

from suite.outcome import Outcome
from suite.targets.record import Compiled

NATIVE, CONVERTED, VECTOR, NO_PRODUCT = "N", "U", "V", "o"
UNSUPPORTED, ERROR, TIMEOUT, CRASHED, ABSENT = "-", "E", "T", "C", ""
SPILLS = "*"
OF_EXECUTION = {"native": NATIVE, "upcast": CONVERTED, "none": VECTOR, "": NO_PRODUCT}
OF_OUTCOME = {
    Outcome.UNSUPPORTED: UNSUPPORTED,
    Outcome.ERROR: ERROR,
    Outcome.TIMEOUT: TIMEOUT,
    Outcome.CRASHED: CRASHED,
}
MEANINGS = {
    NATIVE: "native: multiplies in the format itself",
    CONVERTED: "upcast: converted, then multiplied in another format",
    VECTOR: "multiplies without matrix instructions",
    NO_PRODUCT: "compiles, and has nothing to multiply",
    SPILLS: "behind a mark: spills registers to memory",
    UNSUPPORTED: "unsupported, with the reason below",
    ERROR: "the compiler refused it",
    TIMEOUT: "not compiled within the time limit",
    CRASHED: "the compiler's process died",
}


def mark(compiled: Compiled) -> str:
    """One character, and a second where registers spill."""
    if compiled.outcome is not Outcome.OK:
        return OF_OUTCOME[compiled.outcome]
    spilled = SPILLS if compiled.facts.get("spilled_bytes") else ""
    return OF_EXECUTION.get(str(compiled.facts.get("execution", "")), NO_PRODUCT) + spilled


def legend(cells: Iterable[Compiled]) -> list[tuple[str, str]]:
    """The marks that occur, each with its meaning."""
    found = {character for cell in cells for character in mark(cell)}
    return [(character, meaning) for character, meaning in MEANINGS.items() if character in found]
