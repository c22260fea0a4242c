"""Kernels here are tiny: threads that wait for each other would cost more than they compute."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Asked for first: to set the number takes milliseconds even where it stays the same."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
