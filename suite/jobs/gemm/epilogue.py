"""What is done to a product before it is written: C = activation(A B + bias), with one number of bias for each column.

The numbers of bias are of the output's type.  ``bias_gelu_tanh`` is GELU by its tanh form (Hendrycks and Gimpel, 2016,
"Gaussian Error Linear Units", section 2), which is what cuBLASLt computes; the form by erf is another function.  ``silu`` is
x times its logistic function, without a bias, as in the gate of SwiGLU.
"""

from typing import NamedTuple

from suite.case import Workload


class Epilogue(NamedTuple):
    """What follows the product; ``activation`` is empty where there is none."""

    bias: bool = False
    activation: str = ""

    @property
    def steps(self) -> int:
        """How many operations on each element of the product."""
        return int(self.bias) + bool(self.activation)


NONE = "none"
EPILOGUES = {
    NONE: Epilogue(),
    "bias": Epilogue(bias=True),
    "bias_relu": Epilogue(bias=True, activation="relu"),
    "bias_gelu_tanh": Epilogue(bias=True, activation="gelu_tanh"),
    "silu": Epilogue(activation="silu"),
}
# Of other formats the output carries no scale for an activation to keep, or is not real numbers at all.
OFFERED = ("fp32", "tf32", "bf16", "fp16")


def named(name: str) -> dict[str, str]:
    """What a workload says of its epilogue; nothing where there is none: such cases keep the keys that they had before."""
    return {} if name == NONE else {"epilogue": name}


def name_of(workload: Workload) -> str:
    """A key of ``EPILOGUES``, or what else the workload has in its place."""
    return str(dict(workload.params).get("epilogue", NONE))


def epilogue_of(workload: Workload) -> Epilogue:
    """Raises ``KeyError`` for one that is not known."""
    return EPILOGUES[name_of(workload)]


def not_offered(workload: Workload) -> str | None:
    """Why a workload of a known format cannot have its epilogue, with the remedy; ``None`` where it can or has none."""
    name = name_of(workload)
    if name == NONE or (name in EPILOGUES and workload.format in OFFERED):
        return None
    if name not in EPILOGUES:
        return unknown(name)
    return f"epilogue {name} is offered for {', '.join(OFFERED)}, not for {workload.format}; take none"


def unknown(name: object) -> str:
    """That there is no such epilogue.  All are named: the nearest word to a GELU of another form is a RELU."""
    return f"there is no epilogue '{name}', only {', '.join(EPILOGUES)}"
