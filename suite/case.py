"""What is measured: a workload, a case, and the regime a number belongs to.

``workload_key`` is what two devices or two implementations have in common; ``case_key`` is one exact
measurement of it.  Seed, attempt and time are part of neither: they are columns of a result.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

Scalar = str | int | float | bool
Items = tuple[tuple[str, Scalar], ...]

Cache = Literal["cold", "warm"]
Load = Literal["burst", "sustained"]
Dispatch = Literal["device", "call"]


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
    distribution: str = "normal"
    semantics: Items = ()

    @property
    def key(self) -> str:
        """Content hash shared by every device and implementation of this workload."""
        return _digest(self.to_json())

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
        """One line for people: ``gemm 4096x4096x4096 bf16 library cold/sustained/device``."""
        return (
            f"{self.workload.job} {shape_label(self.workload)} {self.workload.format} {self.implementation} {self.regime.label}"
        )

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


def shape_label(workload: Workload) -> str:
    """Sizes joined as they are written on the command line (``4096x4096x4096``); other parameters as ``name=value``."""
    params = dict(workload.params)
    sizes = [str(params.pop(name)) for name in ("m", "n", "k") if name in params]
    rest = [f"{name}={value}" for name, value in params.items()]
    return " ".join(["x".join(sizes)] * bool(sizes) + rest)


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
