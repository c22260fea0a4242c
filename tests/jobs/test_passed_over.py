"""What is asked of attention and decoding and makes no case is said; of products see ``test_gemm_passed_over``."""

from typing import Any

import pytest

from suite.commands.plan import remarks
from suite.config import compose
from suite.jobs.attention import AttentionSettings
from suite.jobs.attention import passed_over as of_attention
from suite.jobs.decode import DecodeSettings
from suite.jobs.decode import passed_over as of_decode
from suite.jobs.decode_step import DecodeStepSettings
from suite.jobs.decode_step import passed_over as of_decode_step


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"tokens": [4096, 1024], "seq_lens": [1024, 2048, 4096]},
            ["left out: seq_lens=2048 of tokens=1024, seq_lens=4096 of tokens=1024: one sequence has more than all tokens"],
        ),
        (
            {"formats": ["bf16", "fp8_e4m3"], "directions": ["forward", "backward"]},
            ["left out: fp8_e4m3 backward: it has no gradients"],
        ),
        (
            {"scaling": [None, "head"], "hadamard": [True, False]},
            ["left out: scaling=head, hadamard=true: no format of this run has scales"],
        ),
        ({"scaling": "head", "formats": ["bf16", "fp8_e4m3"]}, []),
        (
            {"tokens": [4096, 3000], "seq_lens": [1000, 1024]},
            ["left out: seq_lens=1000 of tokens=4096, seq_lens=1024 of tokens=3000: tokens are those of whole sequences"],
        ),
        ({"windows": []}, []),
        ({"windows": [512]}, ["left out: windows=[512]: masks name no sliding_window"]),
        ({"windows": [512], "masks": ["sliding_window"]}, []),
        ({}, []),
    ],
)
def test_of_attention(settings: dict[str, Any], told: list[str]) -> None:
    assert list(of_attention.lines(AttentionSettings(**settings))) == told


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"kv_lens": [64, 4096], "shared_prefixes": [0, 64], "heads": ["32x128", "32/8x128"]},
            ["left out: shared_prefixes=64 of kv_lens=64, lengths=equal: some sequence is no longer than that"],
        ),
        ({"kv_lens": [65, 4096], "shared_prefixes": [0, 64]}, []),
        (
            {"kv_lens": [2, 4096], "q_lens": [1, 4], "shared_prefixes": [0, 2], "page_sizes": [1, 16]},
            [
                "left out: shared_prefixes=2 of kv_lens=2, lengths=equal: some sequence is no longer than that",
                "left out: shared_prefixes=2 in page_sizes=16 of kv_lens=2, lengths=equal; shared_prefixes=2 in page_sizes=16 "
                "of kv_lens=4096, lengths=equal: whole pages are shared, and no sequence is all shared",
                "left out: q_lens=4 of kv_lens=2, lengths=equal: some sequence has fewer tokens",
            ],
        ),
        (
            {"scaling": "token", "activation": ["fp16"]},
            ["left out: scaling=token, activation=fp16: no format of this run has 8 bits"],
        ),
        ({"scaling": "token", "formats": ["bf16", "int8"]}, []),
        ({}, []),
    ],
)
def test_of_decoding(settings: dict[str, Any], told: list[str]) -> None:
    assert list(of_decode.lines(DecodeSettings(**settings))) == told


def test_of_a_decode_step() -> None:
    asked = DecodeStepSettings(parts=["step", "weights"], formats=["bf16", "w8a16"])
    assert list(of_decode_step.lines(asked)) == ["left out: parts=step in w8a16: it is in bf16, fp16, fp32"]
    assert list(of_decode_step.lines(DecodeStepSettings())) == []
    weights = DecodeStepSettings(parts=["weights"], kv_lens=[64])
    assert list(of_decode_step.lines(weights)) == ["left out: kv_lens=[64]: parts name no step"]


@pytest.mark.parametrize(
    ("experiment", "setting", "told"),
    [
        ("attention", "jobs.attention.windows=[512]", "windows=[512]"),
        ("decode", "jobs.decode.shared_prefixes=[0,32768]", "shared_prefixes=32768"),
        ("decode_step", "jobs.decode_step.formats=[bf16,w8a16]", "w8a16"),
    ],
)
def test_a_plan_says_it(experiment: str, setting: str, told: str) -> None:
    found = list(remarks(compose([f"experiment={experiment}", setting])))
    assert [line for line in found if told in line and line.startswith("left out: ")]
