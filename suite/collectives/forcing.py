"""The environment that makes NCCL or RCCL use one algorithm and protocol, in the syntax of the loaded version.

Both variables are read when a communicator is made, and must be the same on all ranks: a fresh process group for every choice.
From 2.24 a setting is scoped to an operation (``allreduce:tree``), so that the job's own broadcasts and barriers go on as they
would, and an unknown token is an error.  Before, it holds for every operation, and an unknown token is ignored without a word:
nothing is left enabled and ring runs, so that ``allreduce:tree`` *measures ring* there.
"""

from collections.abc import Mapping
from typing import NamedTuple

from suite.collectives.choice import Choice, misfit
from suite.collectives.names import NCCL_ALGOS, NCCL_OPS, NCCL_PROTOS, Op
from suite.collectives.version import NUMBERED_CHOICES, SCOPED_TOKENS, NcclVersion
from suite.errors import UsageError, nearest

OBSERVING = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,TUNING"}
ALGO, PROTO = "NCCL_ALGO", "NCCL_PROTO"
_NAMES: Mapping[str, tuple[str, ...]] = {ALGO: tuple(NCCL_ALGOS.values()), PROTO: tuple(NCCL_PROTOS.values())}


class Forcing(NamedTuple):
    """What to set before the communicator is made, and whether the log will tell what ran."""

    environment: dict[str, str]
    observable: bool


def forcing(version: NcclVersion, op: Op, choice: Choice, ll128: bool = False) -> Forcing:
    """The variables for ``choice``, with those that make the log say what was chosen.

    Raises ``UsageError`` for a choice that does not exist, or LL128 where ``ll128`` does not say that it is supported.
    """
    told = misfit(op, choice, ll128)
    if told:
        raise UsageError(f"{told}; leave the combination out")
    wanted = {ALGO: choice.algo and NCCL_ALGOS[choice.algo], PROTO: choice.proto and NCCL_PROTOS[choice.proto]}
    scope = f"{NCCL_OPS[op].lower()}:" if version >= SCOPED_TOKENS and op in NCCL_OPS else ""
    forced = {variable: scope + name for variable, name in wanted.items() if name}
    return Forcing({**OBSERVING, **forced}, version >= NUMBERED_CHOICES)


def check_setting(version: NcclVersion, variable: str, text: str) -> None:
    """Raise ``UsageError`` where this version would refuse a setting of ``NCCL_ALGO`` or ``NCCL_PROTO``, or not see it.

    Before 2.24 what is not seen is the worse case: the run would go on with ring under another name.
    """
    for entry in text.split(";") if version >= SCOPED_TOKENS else [text]:
        scope, colon, listed = entry.rpartition(":") if version >= SCOPED_TOKENS else ("", "", entry)
        if colon and scope.lower() not in {name.lower() for name in NCCL_OPS.values()}:
            raise UsageError(_unknown(version, variable, text, scope, tuple(NCCL_OPS.values())))
        for token in listed.removeprefix("^").split(","):
            if token.lower() not in {name.lower() for name in _NAMES[variable]}:
                raise UsageError(_unknown(version, variable, text, token, _NAMES[variable]))


def _unknown(version: NcclVersion, variable: str, text: str, token: str, valid: tuple[str, ...]) -> str:
    if version < SCOPED_TOKENS and (":" in token or ";" in token):
        remedy = "; settings by operation are read from 2.24 on, so write one algorithm for all, such as Tree"
    else:
        remedy = nearest(token, valid)
    effect = "refuses" if version >= SCOPED_TOKENS else "ignores without a word, so that something else runs"
    return f"{variable}={text} has '{token}', which NCCL {version} {effect}{remedy}"
