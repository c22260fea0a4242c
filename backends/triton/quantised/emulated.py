"""What a product with weights that are converted on the way is multiplied by, where that is not bf16's own instruction."""

from collections.abc import Mapping
from typing import Any

from backends.triton.gemm.instructions import foreign


def of_converted_weights(facts: Mapping[str, Any]) -> str:
    """From the instructions among a kernel's ``facts``; empty where bf16 is multiplied as it is."""
    instructions = facts.get("instructions", [])
    others = foreign(instructions, "bf16")
    if others:
        return f"weights converted, then multiplied by {', '.join(others)}"
    return "" if instructions else "multiplied without matrix instructions"
