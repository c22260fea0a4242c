"""The options that a configuration may set are those that the backends have."""

from importlib import import_module

import pytest

from suite.config import compose
from suite.config.backend_options import OPTIONS


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"auto"}))
def test_every_option_of_a_backend_is_known_and_no_other(name: str) -> None:
    assert set(OPTIONS[name]) == set(import_module(f"backends.{name}").OPTIONS)


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"auto"}))
def test_every_option_can_be_set(name: str) -> None:
    for option in OPTIONS[name]:
        composed = compose([f"backend={name}", f"+backends.{name}.options.{option}=2"])
        assert composed.backends[name].options == {option: 2}


def test_a_class_of_the_user_s_own_takes_what_it_takes() -> None:
    composed = compose(["backend=cpu", "backends.cpu.target=mine:Cpu", "+backends.cpu.options.own=2"])
    assert composed.backends["cpu"].options == {"own": 2}
