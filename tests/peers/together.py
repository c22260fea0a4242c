"""Several cases of one workload, prepared together and measured in alternating rounds."""

from collections.abc import Callable, Sequence

from suite.measure.spine import Trial
from suite.measurement import Measurement
from suite.planned import PlannedCase
from suite.settings import MeasureSettings
from suite.worker.serve import caught
from tests.peers.bench import Bench, Measured


def together(bench: Bench, cases: Sequence[PlannedCase], settings: MeasureSettings, rounds: int) -> list[Measured]:
    """Measure ``cases`` in ``rounds`` rounds, in the other order every second round: a drift falls on all alike.

    A case that fails keeps its reason and leaves the others to go on.
    """
    sides = [Side(bench, planned, bench.trial(planned, settings, rounds=rounds)) for planned in cases]
    for side in sides:
        side.prepare()
    for number in range(rounds):
        for side in sides if number % 2 == 0 else sides[::-1]:
            side.measure(number)
    return [side.finish() for side in sides]


class Side:
    """One case of an alternation; once it has ended, for whatever reason, its later turns pass."""

    def __init__(self, bench: Bench, planned: PlannedCase, trial: Trial) -> None:
        self._bench, self._planned, self._trial = bench, planned, trial
        self._ended: Measurement | None = None
        self._failed = ""

    def prepare(self) -> None:
        def ready() -> None:
            self._ended = self._trial.prepare()

        self._step(ready)

    def measure(self, number: int) -> None:
        self._step(lambda: self._trial.measure(number))

    def finish(self) -> Measured:
        """Check again, free the buffers, and judge as every other case is judged."""

        def ended() -> None:
            self._ended = self._trial.finish()

        self._step(ended)
        if self._failed:
            caught(self._trial.close, self._bench.backend.classify)
            return Measured(self._planned, None, None, self._failed)
        assert self._ended is not None, "a trial ends with a measurement or a failure"
        return self._bench.carry_out(self._planned, _Over(self._trial, self._ended), rounds=())  # type: ignore[arg-type]

    def _step(self, what: Callable[[], None]) -> None:
        if self._ended is None and not self._failed:
            failure = caught(what, self._bench.backend.classify)
            self._failed = failure.reason if failure else ""


class _Over:
    """A trial that has been through its rounds: what is left is to judge it and to free what it holds."""

    def __init__(self, trial: Trial, measurement: Measurement) -> None:
        self.close = trial.close
        self._measurement = measurement

    def prepare(self) -> Measurement:
        return self._measurement
