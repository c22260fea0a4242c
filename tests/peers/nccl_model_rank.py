"""One rank of ``nccl_model``: joins the others over a file, adds up one number with them, and says whether it was right.

python -m tests.peers.nccl_model_rank RANK RANKS MEETING_FILE
"""

import sys
from collections.abc import Sequence

import torch
import torch.distributed


def main(argv: Sequence[str]) -> int:
    """Status 1 where the sum is wrong."""
    rank, ranks, meeting = int(argv[0]), int(argv[1]), argv[2]
    device = torch.device("cuda", 0)
    torch.distributed.init_process_group("nccl", init_method=f"file://{meeting}", rank=rank, world_size=ranks, device_id=device)
    number = torch.full((1,), float(rank + 1), device=device)
    torch.distributed.all_reduce(number)
    right = number.item() == ranks * (ranks + 1) / 2
    torch.distributed.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
