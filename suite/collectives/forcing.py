"""The environment that makes NCCL or RCCL use one algorithm and protocol, in the syntax of the loaded version.

Both variables are read when a communicator is made, and must be the same on all ranks: a fresh process group for every choice.
From 2.24 a setting is scoped to an operation (``allreduce:tree``), so that the job's own broadcasts and barriers go on as they
would, and an unknown token is an error.  Before, it holds for every operation, and an unknown token is ignored without a word:
nothing is left enabled and ring runs, so that ``allreduce:tree`` *measures ring* there.

Still owed: times without a log.  What is set here to see what ran has rank 0 write a line for every launch, within its time.
``NCCL_DEBUG`` is read once in a process, so that a second group in the same ranks is no quieter; it takes other ranks.
"""

from suite.collectives.choice import Choice, misfit
from suite.collectives.names import NCCL_ALGOS, NCCL_OPS, NCCL_PROTOS, Op
from suite.collectives.version import SCOPED_TOKENS, NcclVersion
from suite.errors import UsageError

OBSERVING = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,TUNING"}
ALGO, PROTO = "NCCL_ALGO", "NCCL_PROTO"


def forcing(version: NcclVersion, op: Op, choice: Choice, ll128: bool = False) -> dict[str, str]:
    """The variables for ``choice``, with those that make the log say what was chosen.

    Raises ``UsageError`` for a choice that does not exist, or LL128 where ``ll128`` does not say that it is supported.
    """
    told = misfit(op, choice, ll128)
    if told:
        raise UsageError(f"{told}; leave the combination out")
    wanted = {ALGO: choice.algo and NCCL_ALGOS[choice.algo], PROTO: choice.proto and NCCL_PROTOS[choice.proto]}
    scope = f"{NCCL_OPS[op].lower()}:" if version >= SCOPED_TOKENS and op in NCCL_OPS else ""
    forced = {variable: scope + name for variable, name in wanted.items() if name}
    return {**OBSERVING, **forced}
