"""A run's configuration comes back from its store as it went in, and only into a version that knows its settings."""

import json
from typing import Any

import pytest

from suite.config import compose, from_stored, to_stored
from suite.errors import UsageError

STORED = ["backend=[cpu,cuda]", "device=[0,1]", "experiment=standard", "measure.regimes=[warm/burst/call]", "note=a b"]


def stored() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(to_stored(compose(STORED))))
    return loaded


def test_what_was_stored_comes_back_equal() -> None:
    assert from_stored(stored()) == compose(STORED)


def test_a_setting_that_this_version_does_not_have_is_named() -> None:
    data = stored()
    data["measure"]["from_the_future"] = 1
    with pytest.raises(UsageError, match=r"^the stored configuration is not one of this version's: .*from_the_future"):
        from_stored(data)


def test_a_field_that_this_version_does_not_have_is_named() -> None:
    with pytest.raises(UsageError, match=r"from_the_future.*start a new run"):
        from_stored({**stored(), "from_the_future": 1})


def test_a_job_that_this_version_does_not_have_is_named() -> None:
    data = stored()
    data["jobs"]["gem"] = {}
    with pytest.raises(UsageError, match=r"^unknown job 'gem'; did you mean 'gemm'\?$"):
        from_stored(data)


def test_a_value_that_is_no_longer_allowed_is_refused() -> None:
    data = stored()
    data["measure"]["target"] = -1
    with pytest.raises(UsageError, match=r"measure\.target=-1.0 is not between"):
        from_stored(data)
