"""What collectives should cost: fits of measurements, and NCCL's own cost model rebuilt.  All of it evidence ``modelled``."""
