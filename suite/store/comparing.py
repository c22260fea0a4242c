"""What a comparison asks of a store beside what every reader of it does: whole runs at once, and samples of many results."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from suite.backend import Fact
from suite.compare.runs import Sampled
from suite.store import tables
from suite.store.catalogue import to_facts
from suite.store.damage import converting, json_object
from suite.store.measured import rebuild_samples
from suite.store.queries import Reader
from suite.store.runs import find_run

_CASE = tables.table_of(tables.Case)
_ENVIRONMENT = tables.table_of(tables.Environment)
_RESULT = tables.table_of(tables.Result)
_SAMPLES = tables.table_of(tables.SampleBlob)


class ComparisonReader(Reader):
    """A store open for comparing runs: see ``suite.compare.runs.Source``."""

    def method_versions(self, run: str) -> dict[int, int]:
        """By which version of its job's method each result of a run was measured, by result id."""
        with self._reading("its cases") as connection:
            mine = _RESULT.c.run_id == find_run(connection, self.path, run).id
            statement = select(_RESULT.c.id, _CASE.c.method_version).join(_CASE, _CASE.c.id == _RESULT.c.case_id).where(mine)
            return {row.id: row.method_version for row in connection.execute(statement)}

    def environments(self, run: str) -> list[Mapping[str, Mapping[str, Fact]]]:
        """Every system that a run was on, the first one first: several where it was resumed elsewhere, or after a change."""
        with self._reading("its environments") as connection:
            mine = _ENVIRONMENT.c.run_id == find_run(connection, self.path, run).id
            facts = connection.scalars(select(_ENVIRONMENT.c.facts).where(mine).order_by(_ENVIRONMENT.c.id))
            return [to_facts(each) for each in facts]

    def sampled(self, result_ids: Sequence[int]) -> list[Sampled]:
        """The samples of these results and what their kernels say, in no order; those without samples are left out.

        ``StoreUnusable`` where one cannot be decoded.
        """
        statement = (
            select(_SAMPLES, _RESULT.c.method, _RESULT.c.description)
            .join(_RESULT, _RESULT.c.id == _SAMPLES.c.result_id)
            .where(_SAMPLES.c.result_id.in_(result_ids))
        )
        found = []
        with self._reading("its samples") as connection:
            for row in connection.execute(statement).mappings():
                with converting(f"result {row['result_id']}"):
                    samples = rebuild_samples(row, row["method"])
                    found.append(Sampled(row["result_id"], samples, json_object(row["description"], "description")))
        return found
