"""How long a decode step's data and check take on a CPU beside its launches: see ``backends.torch.decode_step.stages``.

Everything that a launch reads is drawn twice and looked through five times for changes, and all that it makes is computed anew
in float64, three times: that takes ten times as long as to measure it, where other jobs look at samples of their results.
The figures are those of ``suite.predict_cpu``'s machine, of 16 cases with weights of 137 to 567 million numbers, batches of 1
to 16 and every format: what they give is 0.9 to 1.2 times what plain formats took, 0.65 to 1.5 times what quantised ones did.
"""

from suite.case import Workload
from suite.jobs.decode.cache import NUMBER_BYTES
from suite.jobs.decode_step import STEP, sizes_of
from suite.jobs.decode_step.formats import PLAIN
from suite.jobs.decode_step.work import resting_bytes
from suite.work import Work

S_PER_BYTE = 4.3e-9  # looked through: of fp32 against bf16, which differ in nothing else that takes long
S_PER_NUMBER = 2.5e-8  # drawn, and converted to float64
S_PER_QUANTISED_NUMBER = 4.5e-8  # drawn once more for its scale, rounded, and worth what its scale says
S_PER_OPERATION = 1e-10  # three products in float64


def drawing_and_checking_s(workload: Workload, work: Work) -> float:
    """Seconds for all input data and both checks of one input set, without launches."""
    sizes = sizes_of(workload)
    held_bytes, numbers = work.compulsory_bytes, sizes.weights
    if sizes.part == STEP:  # with caches and the whole embedding, all in one type
        held_bytes += resting_bytes(workload)
        numbers = held_bytes // NUMBER_BYTES[workload.format]
    per_number = S_PER_NUMBER if workload.format in PLAIN else S_PER_QUANTISED_NUMBER
    return S_PER_BYTE * held_bytes + per_number * numbers + S_PER_OPERATION * work.flops
