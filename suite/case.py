"""What is measured: a workload, a case, and the regime a number belongs to.

``workload_key`` is what two devices or two implementations have in common; ``case_key`` is one exact
measurement of it.  Seed, attempt and time are part of neither: they are columns of a result.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

Scalar = str | int | float | bool
Items = tuple[tuple[str, Scalar], ...]

Cache = Literal["cold", "warm"]
Load = Literal["burst", "sustained"]
Dispatch = Literal["device", "call"]

USUAL_DATA = "normal"  # of operands, where nothing else is asked for

# What a format's name says alone: how it is scaled where nothing else is asked for.
SCALED_BY_NAME = {"fp8_e4m3": "tensor", "fp8_e5m2": "tensor"}


def items(mapping: Mapping[str, Scalar]) -> Items:
    """Freeze a mapping into sorted pairs, so that equal contents hash and serialise equally."""
    return tuple(sorted(mapping.items()))


class Regime(NamedTuple):
    """The three axes every sample set is labelled with (cache, load, dispatch)."""

    cache: Cache
    load: Load
    dispatch: Dispatch

    @property
    def label(self) -> str:
        """``cold/sustained/device``, as it is printed beside a number."""
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class Workload:
    """A computation, independent of who computes it.

    ``semantics`` holds what changes the mathematical result (scaling granularity, accumulation type).
    """

    job: str
    format: str
    params: Items
    distribution: str = USUAL_DATA
    semantics: Items = ()

    @property
    def key(self) -> str:
        """Content hash shared by every device and implementation of this workload."""
        return _digest(self.to_json())

    @property
    def format_label(self) -> str:
        """See the function of this name."""
        return format_label(self.format, dict(self.semantics))

    def param(self, name: str) -> Any:
        """Return one parameter; a missing name is a programming error."""
        return dict(self.params)[name]

    def to_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "format": self.format,
            "params": dict(self.params),
            "distribution": self.distribution,
            "semantics": dict(self.semantics),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            job=data["job"],
            format=data["format"],
            params=items(data["params"]),
            distribution=data["distribution"],
            semantics=items(data["semantics"]),
        )


@dataclass(frozen=True, slots=True)
class Case:
    """A workload with everything that decides its measured number: who computes it, where, and how it is timed.

    ``switches`` are the precision and library settings that are set explicitly (TF32, fast accumulate, ...).
    ``method_version`` is the job's: it is raised when a formula or the timing method changes.
    """

    workload: Workload
    implementation: str
    backend: str
    regime: Regime
    switches: Items = ()
    method_version: int = 1

    @property
    def key(self) -> str:
        """Content hash of this exact measurement."""
        return _digest(self.to_json())

    @property
    def title(self) -> str:
        """One line for people, as a result's: ``gemm 4096x4096x4096 tf32=False fp32 library cold/sustained/device``."""
        workload = self.workload
        beside = variation(workload.distribution, self.switches)
        what = f"{workload.job} {shape_label(workload)}{f' {beside}' if beside else ''}"
        return f"{what} {_format_label(workload.format, workload.semantics)} {self.implementation} {self.regime.label}"

    def to_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload.to_json(),
            "implementation": self.implementation,
            "backend": self.backend,
            "regime": list(self.regime),
            "switches": dict(self.switches),
            "method_version": self.method_version,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            workload=Workload.from_json(data["workload"]),
            implementation=data["implementation"],
            backend=data["backend"],
            regime=Regime(*data["regime"]),
            switches=items(data["switches"]),
            method_version=data["method_version"],
        )


def format_label(name: str, semantics: Mapping[str, Any]) -> str:
    """A format with how its numbers are scaled: ``fp8_e4m3 row``, ``w4a16 zero point``; the name alone where that says it.

    Two workloads that differ in nothing but scaling or zero points have different labels.
    """
    scaling = semantics.get("scaling")
    said = [] if scaling in (None, SCALED_BY_NAME.get(name)) else [str(scaling)]
    flags = [flag.replace("_", " ") for flag in ("zero_point", "hadamard") if semantics.get(flag)]
    return " ".join([name, *said, *flags])


@lru_cache(maxsize=256)
def _format_label(name: str, semantics: Items) -> str:
    return format_label(name, dict(semantics))


def shape_label(workload: Workload) -> str:
    """Sizes joined as they are written on the command line (``4096x4096x4096``, heads as ``32/8x128``), lengths of sequences as
    how many x how long, names that say alone what they are, and other parameters as ``name=value``.
    """
    return _shape_label(workload.params)


@lru_cache(maxsize=4096)  # as below
def unusual_data(distribution: str) -> list[str]:
    """What a title says of operands that were not drawn as usual: ``outliers data``."""
    return [] if distribution == USUAL_DATA else [f"{distribution} data"]


def variation(distribution: str, switches: Items) -> str:
    """What sets a case apart beside its workload: data other than normal, and switches; often nothing."""
    data = unusual_data(distribution)
    return " ".join([*data, *(f"{name}={value}" for name, value in sorted(switches))])


@lru_cache(maxsize=4096)  # the regimes, implementations and data of one workload share it, and a plan prints each of them
def _shape_label(params: Items) -> str:
    sizes, rest = sizes_of(dict(params))
    return " ".join([*([sizes] if sizes else []), *(f"{name}={value}" for name, value in rest.items())])


def sizes_of(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The sizes among parameters as ``shape_label`` writes them, empty where there are none, and the other parameters."""
    rest = dict(params)
    product = [str(rest.pop(name)) for name in ("m", "n", "k") if name in rest]
    told = [str(rest.pop(name)) for name in ("direction",) if name in rest]
    told += ["x".join(product)] * bool(product)
    told += [f"groups={rest.pop('groups')}"] if "groups" in rest else []
    told += _heads(rest) + _lengths(rest)
    told += [str(rest.pop(name)) for name in ("mask",) if name in rest]
    return " ".join(told), rest


def _heads(params: dict[str, Any]) -> list[str]:
    """Query heads over heads of K and V, by head_dim over that of V, the second of each where it differs; takes them out."""
    names = ("num_q_heads", "num_kv_heads", "head_dim", "v_head_dim")
    if not all(name in params for name in names):
        return []
    heads, kv_heads, width, v_width = (params.pop(name) for name in names)
    return [f"{_pair(heads, kv_heads)}x{_pair(width, v_width)}"]


def _lengths(params: dict[str, Any]) -> list[str]:
    """``4x4096``, or ``4x1/4096`` of few queries against many keys; takes them out."""
    names = ("batch", "q_len", "kv_len")
    if not all(name in params for name in names):
        return []
    batch, q_len, kv_len = (params.pop(name) for name in names)
    return [f"{batch}x{_pair(q_len, kv_len)}"]


def _pair(one: Any, other: Any) -> str:
    return str(one) if one == other else f"{one}/{other}"


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
