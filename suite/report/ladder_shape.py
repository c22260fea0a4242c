"""Which shape a result is a format of on a precision ladder, and which format a shape's ratios are to."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from suite.jobs.decode import FORMATS, DecodeJob
from suite.report.words import workload_title
from suite.rows import ResultRow

BASELINE = "bf16"
_ACTIVATION = "activation"


class Shape(NamedTuple):
    """What the rungs of a ladder have in common: ``params`` as JSON.  ``baseline`` is the format that ratios are to."""

    job: str
    evidence: str
    params: str
    regime: str
    baseline: str

    def title(self, row: ResultRow) -> str:
        """Job and sizes, as of any ``row`` of the shape, with what that one alone leaves to its format."""
        return workload_title(replace(row, params=json.loads(self.params)))


def shapes_of(row: ResultRow) -> Iterator[Shape]:
    """That of its own parameters, and of a cache whose format decides the type of its queries that of others with such queries.

    Beside a cache of 8 bits a workload names the type of its queries, and what is gained is over a cache of this type.
    """
    yield _shape(row, row.params)
    if row.job == DecodeJob.name and _ACTIVATION not in row.params:
        fmt = FORMATS.get(row.format)
        if fmt is not None and not fmt.is_quantised:
            yield _shape(row, {**row.params, _ACTIVATION: fmt.activations[0]})


def _shape(row: ResultRow, params: Mapping[str, Any]) -> Shape:
    baseline = params.get(_ACTIVATION, BASELINE) if row.job == DecodeJob.name else BASELINE
    return Shape(row.job, row.evidence, json.dumps(params, sort_keys=True), row.regime, str(baseline))
