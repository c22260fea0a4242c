"""Schemas whose settings take what is written as their type, and nothing that OmegaConf would turn into it.

OmegaConf reads 2, ``on`` and ``y`` as true, and digits of every script as numbers.  Its nodes stay in place through merging, so
that one of ours in the schema looks at each value, whatever file or override gives it.  The elements of a list are made anew by
OmegaConf with each list: those of truths are left as they are given, for ``typed`` to look at.
"""

from typing import Any

from omegaconf import BooleanNode, DictConfig, FloatNode, IntegerNode, ListConfig, OmegaConf
from omegaconf.errors import ValidationError

from suite.config.digits import other_digit

TRUTHS = {"true": True, "false": False}


class Truth(BooleanNode):
    """``true`` or ``false``; as text too, which is all that an environment variable can be."""

    def _validate_and_convert_impl(self, value: Any) -> bool:
        truth = TRUTHS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(truth, bool):
            raise ValidationError("Value '$VALUE' is not a valid bool (type $VALUE_TYPE)")
        return truth

    def __deepcopy__(self, memo: dict[int, Any]) -> "Truth":
        copied = Truth()
        self._deepcopy_impl(copied, memo)
        return copied


class Whole(IntegerNode):
    """A whole number in digits from 0 to 9."""

    def _validate_and_convert_impl(self, value: Any) -> int:
        _refuse_other_digits(value, "Integer")
        return int(super()._validate_and_convert_impl(value))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Whole":
        copied = Whole()
        self._deepcopy_impl(copied, memo)
        return copied


class Number(FloatNode):
    """A number in digits from 0 to 9."""

    def _validate_and_convert_impl(self, value: Any) -> float:
        _refuse_other_digits(value, "Float")
        return float(super()._validate_and_convert_impl(value))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Number":
        copied = Number()
        self._deepcopy_impl(copied, memo)
        return copied


STRICT: dict[type, Any] = {BooleanNode: Truth, IntegerNode: Whole, FloatNode: Number}


def structured(kind: type) -> DictConfig:
    """The schema of a dataclass; raises what OmegaConf raises for one that is no schema."""
    schema: DictConfig = OmegaConf.structured(kind)
    _make_strict(schema)
    return schema


def _make_strict(node: DictConfig) -> None:
    content = node.__dict__["_content"]
    for key, entry in content.items() if isinstance(content, dict) else ():
        if isinstance(entry, DictConfig):
            _make_strict(entry)
        elif isinstance(entry, ListConfig) and entry.__dict__["_metadata"].element_type is bool:
            entry.__dict__["_metadata"].element_type = Any
        elif type(entry) in STRICT:
            content[key] = _strict(entry)


def _strict(node: Any) -> Any:
    """A copy of a node, with all that is known of it, of our kind."""
    made: Any = STRICT[type(node)]()
    node._deepcopy_impl(made, {})
    return made


def _refuse_other_digits(value: Any, name: str) -> None:
    if isinstance(value, str) and other_digit(value):
        raise ValidationError(f"Value '$VALUE' of type '$VALUE_TYPE' could not be converted to {name}")
