"""JAX is loaded where it is installed; the tests of this room need it."""

import pytest

pytest.importorskip("jax")
