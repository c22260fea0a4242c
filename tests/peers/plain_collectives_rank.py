"""One rank of a plain loop: all_reduce again and again through torch.distributed, as a user would time it.

    RANK=0 WORLD_SIZE=2 python -m tests.peers.plain_collectives_rank MEETING_FILE cuda fp32,bf16 1073741824,8589934592 0.5

Rank 0 prints, for each format and message, a line of JSON: the format, bytes, and the seconds that an operation of the slowest
rank takes in each batch.  A batch is launched as a whole and waited for once; its start is a barrier of all ranks.
"""

import json
import math
import os
import sys
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BATCHES = 5
MOST_IN_A_BATCH = 20  # a sum over 8 ranks grows eightfold each time, and stays in the range of both formats


def main(argv: Sequence[str]) -> int:
    """Status 1 where a sum is wrong."""
    meeting, platform, formats, sizes, seconds = argv
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank) if platform == "cuda" else torch.device("cpu")
    bound = {"device_id": device} if platform == "cuda" else {}
    backend = "nccl" if platform == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=ranks, **bound)
    try:
        for name in formats.split(","):
            for size in map(int, sizes.split(",")):
                buffer = torch.empty(size // DTYPES[name].itemsize, dtype=DTYPES[name], device=device)
                if not is_right(buffer, rank, ranks):
                    print(f"ValueError: the sum of {size} bytes of {name} over {ranks} ranks is wrong", file=sys.stderr)
                    return 1
                found = timed(buffer, float(seconds))
                if rank == 0:
                    print(json.dumps({"format": name, "bytes": size, "seconds": found}), flush=True)
                del buffer
    finally:
        dist.destroy_process_group()
    return 0


def is_right(buffer: torch.Tensor, rank: int, ranks: int) -> bool:
    """Whether the sum of every rank's number is right in every element."""
    buffer.fill_(float(rank + 1))
    dist.all_reduce(buffer)
    return bool((buffer == ranks * (ranks + 1) / 2).all())


def timed(buffer: torch.Tensor, seconds: float) -> list[float]:
    """Seconds an operation in each of ``BATCHES`` batches, which take about ``seconds`` together."""
    once_s = batch(buffer, 2)
    count = min(MOST_IN_A_BATCH, max(2, math.ceil(seconds / BATCHES / once_s)))
    return [batch(buffer, count) for _ in range(BATCHES)]


def batch(buffer: torch.Tensor, count: int) -> float:
    """Seconds an operation of the slowest rank, over ``count`` of them on data that is new."""
    buffer.normal_()
    wait(buffer)
    dist.barrier()
    wait(buffer)
    began_s = time.perf_counter()
    for _ in range(count):
        dist.all_reduce(buffer)
    wait(buffer)
    took_s = torch.tensor([(time.perf_counter() - began_s) / count], dtype=torch.float64, device=buffer.device)
    dist.all_reduce(took_s, dist.ReduceOp.MAX)
    return float(took_s.item())


def wait(buffer: torch.Tensor) -> None:
    """Until the device has done what it was given."""
    if buffer.is_cuda:
        torch.cuda.synchronize(buffer.device)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
