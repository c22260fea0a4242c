"""What a device-hour at a given price buys: operations and bytes for one unit of whatever money it is."""

import math
from typing import NamedTuple

from suite.errors import UsageError

HOUR_S = 3600.0
MOST = 1e9  # of money an hour; more is a slip


class Worth(NamedTuple):
    """For one unit of money: ``flop`` operations and ``bytes`` moved at most; ``None`` where the rate is not known."""

    flop: float | None
    bytes: float | None


def worth(price_per_hour: float, flop_s: float | None, bytes_s: float | None) -> Worth:
    """At a rate and a bandwidth per second; ``UsageError`` for a price that is none."""
    if not (math.isfinite(price_per_hour) and 0 < price_per_hour <= MOST):
        raise UsageError(f"a price of {price_per_hour} an hour is not above 0 and at most {MOST:g}; give what one hour costs")
    return Worth(_bought(price_per_hour, flop_s), _bought(price_per_hour, bytes_s))


def _bought(price: float, rate_s: float | None) -> float | None:
    return None if rate_s is None else rate_s * HOUR_S / price


def parse_prices(given: list[str]) -> dict[str, float]:
    """``ID:PRICE`` from an address; what does not read as one is passed over, as links outlive what they were made for."""
    found = {}
    for text in given:
        name, _, amount = text.rpartition(":")
        try:
            price = float(amount)
        except ValueError:
            continue
        if name and math.isfinite(price) and 0 < price <= MOST:
            found[name] = price
    return found
