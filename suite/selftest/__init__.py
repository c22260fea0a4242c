"""Whether the instrument can be trusted on the machine at hand: what is tried, and what it says of the device."""
