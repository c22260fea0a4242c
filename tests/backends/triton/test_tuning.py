"""The search over configurations, on scripted times."""

from collections import Counter
from collections.abc import Callable

import pytest

from backends.triton.gemm.config import Config
from backends.triton.gemm.trials import GRAPH_S, Trial
from backends.triton.gemm.tuning import ROUNDS, Refused, search
from tests.backends.fake_cuda import FakeCuda

CONFIGS = [Config(128, 128, 64, 4, stages, group) for stages in (2, 3, 4) for group in (4, 8, 16, 32)]


class Bench:
    """Configurations whose launch takes ``seconds(config, number)``, number counting its timings; making one takes a second."""

    def __init__(self, seconds: Callable[[Config, int], float]) -> None:
        self._seconds = seconds
        self.now_s = 0.0
        self.timed: Counter[Config] = Counter()

    def make(self, config: Config) -> "Timed":
        self.now_s += 1.0
        return Timed(self, config)

    def clock(self) -> float:
        return self.now_s

    def time_s(self, config: Config) -> float:
        self.timed[config] += 1
        return self._seconds(config, self.timed[config])


class Timed:
    def __init__(self, bench: Bench, config: Config) -> None:
        self._bench, self._config = bench, config

    def time_s(self) -> float:
        return self._bench.time_s(self._config)


@pytest.mark.parametrize("best", CONFIGS, ids=lambda config: config.label)
def test_the_fastest_is_found_wherever_it_stands(best: Config) -> None:
    bench = Bench(lambda config, _: 1.0 if config == best else 1.1)
    found = search(CONFIGS, bench.make, 100.0, bench.clock)
    assert found.best == best
    assert found.seconds == len(CONFIGS)
    assert set(found.times_s) == set(CONFIGS)


def test_the_slower_half_is_not_timed_again() -> None:
    bench = Bench(lambda config, _: float(len(CONFIGS) - CONFIGS.index(config)))
    found = search(CONFIGS, bench.make, 100.0, bench.clock)
    assert found.best == CONFIGS[-1]
    assert [bench.timed[config] for config in CONFIGS[1:6]] == [1] * 5
    assert bench.timed[CONFIGS[-1]] > 2 * ROUNDS
    assert bench.timed[CONFIGS[0]] == bench.timed[CONFIGS[-1]], "the default is timed beside whoever is left"


def test_a_slow_moment_of_the_fastest_does_not_cost_it_its_place() -> None:
    """One timing in three of everybody is twice as long: medians of alternating rounds pass over that."""
    bench = Bench(lambda config, number: (1.0 if config == CONFIGS[7] else 1.2) * (2.0 if number % 3 == 2 else 1.0))
    assert search(CONFIGS, bench.make, 100.0, bench.clock).best == CONFIGS[7]


def test_a_budget_that_is_spent_leaves_the_rest_untried() -> None:
    bench = Bench(lambda config, _: 1.0)
    found = search(CONFIGS, bench.make, 2.5, bench.clock)
    assert (len(found.times_s), found.untried) == (3, len(CONFIGS) - 3)
    assert len(search(CONFIGS, bench.make, 0.0, bench.clock).times_s) == 1, "the default is always there"


def test_what_is_refused_is_kept_with_its_reason() -> None:
    bench = Bench(lambda config, _: 1.0)

    def make(config: Config) -> Timed:
        if config.stages == 4:
            raise Refused("no room")
        return bench.make(config)

    found = search(CONFIGS, make, 100.0, bench.clock)
    assert set(found.refused.values()) == {"no room"}
    assert len(found.refused) == 4
    assert not set(found.refused) & set(found.times_s)


def test_a_default_that_is_refused_is_no_success() -> None:
    def make(config: Config) -> Timed:
        raise Refused("does not compile")

    with pytest.raises(Refused, match="does not compile"):
        search(CONFIGS, make, 100.0)


def test_a_trial_times_launches_in_rotation_over_the_input_sets() -> None:
    cuda = FakeCuda()
    launches = [lambda index=index: cuda.kernel(index, 2e-5) for index in range(3)]
    trial = Trial(launches, cuda)
    cuda.launched.clear()
    assert trial.time_s() == pytest.approx(2e-5)
    assert len(cuda.launched) == pytest.approx(GRAPH_S / 2e-5, abs=3)
    assert len(cuda.launched) % 3 == 0
    assert cuda.launched[:6] == [0, 1, 2, 0, 1, 2]


def test_a_long_launch_is_timed_once_for_each_set() -> None:
    cuda = FakeCuda()
    trial = Trial([lambda: cuda.kernel(0, 0.5), lambda: cuda.kernel(1, 0.5)], cuda)
    cuda.launched.clear()
    trial.time_s()
    assert cuda.launched == [0, 1]


def test_what_cannot_be_captured_is_no_trial() -> None:
    cuda = FakeCuda(capturable=False)
    with pytest.raises(RuntimeError, match="capturing"):
        Trial([lambda: cuda.kernel(0, 1e-5)], cuda)
