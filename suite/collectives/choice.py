"""Which algorithms and protocols exist for an operation, so that only those are planned."""

from typing import NamedTuple

from suite.collectives.names import Algo, Op, Proto

LIBRARY = "library"  # nothing is forced: the library chooses

_ALGOS: dict[Op, tuple[Algo, ...]] = {
    Op.ALL_REDUCE: (Algo.TREE, Algo.RING, Algo.COLLNET_DIRECT, Algo.COLLNET_CHAIN, Algo.NVLS, Algo.NVLS_TREE),
    Op.ALL_GATHER: (Algo.RING, Algo.COLLNET_DIRECT, Algo.NVLS, Algo.PAT),
    Op.REDUCE_SCATTER: (Algo.RING, Algo.COLLNET_DIRECT, Algo.NVLS, Algo.PAT),
    Op.BROADCAST: (Algo.RING,),
    Op.REDUCE: (Algo.RING,),
}
OWN_ALGOS: dict[Op, tuple[Algo, ...]] = {  # roofbench's own, over send and receive on any backend
    Op.ALL_REDUCE: (Algo.RING, Algo.TREE),
    Op.ALL_GATHER: (Algo.RING,),
    Op.REDUCE_SCATTER: (Algo.RING,),
}
_EVERY_PROTO = (Algo.TREE, Algo.RING)  # the others have Simple only
# Ways inside one machine over which LL128 keeps 128-byte stores whole; NCCL's documentation warns of silent corruption on any
# other (NCCL environment variables, NCCL_PROTO).
_LL128_INTRA = ("LOC", "NVL", "NVB")
_LL128_INTER = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB")
_LL128_INTER_HOPPER = (*_LL128_INTER, "P2C", "PXN")


class Choice(NamedTuple):
    """What is asked of a library; ``None`` leaves the choice to it."""

    algo: Algo | None = None
    proto: Proto | None = None

    @property
    def label(self) -> str:
        """``ring/simple``, ``tree/library`` or ``library``."""
        if self.algo is None and self.proto is None:
            return LIBRARY
        return f"{self.algo or LIBRARY}/{self.proto or LIBRARY}"


def misfit(op: Op, choice: Choice, ll128: bool = False) -> str | None:
    """Why ``choice`` does not exist for ``op``; ``None`` where it does.  ``ll128`` says that LL128 is supported here."""
    algos = _ALGOS.get(op, ())
    if choice.algo is not None and choice.algo not in algos:
        known = f"it has {', '.join(algos)}" if algos else "it is made of sends and receives, which have no algorithm"
        return f"{op} has no {choice.algo}: {known}"
    if choice.proto is not None and not algos:
        return f"{op} is made of sends and receives, whose protocol NCCL_PROTO does not choose"
    if choice.algo is not None and choice.proto not in (None, Proto.SIMPLE) and choice.algo not in _EVERY_PROTO:
        return f"{choice.algo} has no {choice.proto}: it has simple only"
    if choice.proto is Proto.LL128 and not ll128:
        return "ll128 is not supported here: forcing it is documented to corrupt data"
    return None


def ll128_supported(compute_capability: int, intra: str, inter: str, one_capability: bool = True) -> bool:
    """Whether NCCL itself would use LL128: ``compute_capability`` as 90, path types as the graph lines of its log write them.

    ``one_capability`` says that all devices have the same; from Hopper on they may differ.
    """
    inters = _LL128_INTER_HOPPER if compute_capability >= 90 else _LL128_INTER
    alike = one_capability or compute_capability >= 90
    return compute_capability >= 70 and alike and intra in _LL128_INTRA and inter in inters
