"""The number formats that collectives move: their size, and what they hold exactly."""

import sys
from typing import NamedTuple

from suite.errors import UsageError, nearest


class NumberFormat(NamedTuple):
    """``significand_bits`` include the leading one; integers have 0 and hold up to ``largest``.

    ``smallest_exponent`` is that of the least normal number; ``tests_name`` what nccl-tests call the format.
    """

    itemsize: int
    significand_bits: int
    largest: float
    smallest_exponent: int
    tests_name: str

    @property
    def roundoff(self) -> float:
        """Largest relative error of rounding to the nearest; 0 of integers."""
        return 2.0**-self.significand_bits if self.significand_bits else 0.0

    @property
    def exact_integers(self) -> int:
        """Every integer up to this one is held exactly, and so is every sum that stays within."""
        return int(min(2**self.significand_bits if self.significand_bits else self.largest, self.largest, 2**53))


NUMBER_FORMATS = {
    "fp64": NumberFormat(8, 53, sys.float_info.max, -1022, "double"),
    "fp32": NumberFormat(4, 24, 2.0**127 * (2 - 2.0**-23), -126, "float"),
    "fp16": NumberFormat(2, 11, 65504.0, -14, "half"),
    "bf16": NumberFormat(2, 8, 2.0**127 * (2 - 2.0**-7), -126, "bfloat16"),
    "fp8_e4m3": NumberFormat(1, 4, 448.0, -6, "f8e4m3"),
    "fp8_e5m2": NumberFormat(1, 3, 57344.0, -14, "f8e5m2"),
    "int64": NumberFormat(8, 0, 2.0**63 - 1, 0, "int64"),
    "int32": NumberFormat(4, 0, 2.0**31 - 1, 0, "int32"),
    "int8": NumberFormat(1, 0, 127.0, 0, "int8"),
}
# Names of nccl-tests and rccl-tests, old and new, that are not in the table itself.
_OTHER_NAMES = {"fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2", "int": "int32", "char": "int8"}
_BY_TESTS_NAME = {fmt.tests_name: name for name, fmt in NUMBER_FORMATS.items()} | _OTHER_NAMES
_UNSIGNED_ITEMSIZES = {"uint8": 1, "uint32": 4, "uint64": 8}


def number_format(name: str) -> NumberFormat:
    """The format of that name; raises ``UsageError`` for an unknown one."""
    if name not in NUMBER_FORMATS:
        raise UsageError(f"unknown format '{name}' of a collective{nearest(name, NUMBER_FORMATS)}")
    return NUMBER_FORMATS[name]


def format_of_tests(name: str) -> str:
    """roofbench's name for a type of nccl-tests or rccl-tests (``float`` is ``fp32``); an unknown one comes back as it is."""
    return _BY_TESTS_NAME.get(name, name)


def itemsize_of(name: str) -> int | None:
    """Bytes of one element of a format by roofbench's name; ``None`` for an unknown one."""
    fmt = NUMBER_FORMATS.get(name)
    return fmt.itemsize if fmt else _UNSIGNED_ITEMSIZES.get(name)
