"""What ``quantised_gemm`` holds the time of its weights against: the bandwidth of reading."""

from functools import partial
from statistics import median

import torch

from tests.peers.quantised_gemm_ways import DEVICE, Way

READ_BYTES = 4 << 30


def read_bandwidth() -> float:
    """Bytes a second of a kernel that reads far more than any cache holds."""
    from backends.triton.read import row_sums

    matrix = torch.ones(READ_BYTES // 4 // 16384, 16384, device=DEVICE)
    sums = torch.empty(len(matrix), device=DEVICE)
    way = Way("read", [partial(row_sums, matrix, sums)], sums)
    way.launches[0]()
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        way.launches[0]()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) * 1e-3)
    return float(matrix.nbytes / median(times))
