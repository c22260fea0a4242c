"""Result rows of the jobs that the dashboard shows."""

from dataclasses import replace

from suite.rows import NO_FRACTIONS
from tests.report.builders import device, result
from tests.report.recordings import sustained

OLD_UID = "beef0000"


def other_device():
    return device(info=replace(device().info, uid=OLD_UID, name="Testium T0"))


def measured(row):
    return replace(sustained(row.p50_s or 1.0, 40 * (row.p50_s or 1.0)), interval_s=row.interval_s, converged=row.converged)


HEADS = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128}


def attention(length, batch=1, **fields):
    params = {**HEADS, "direction": "forward", "batch": batch, "q_len": length, "kv_len": length, "mask": "causal"}
    return result(job="attention", params={**params, **fields.pop("params", {})}, **fields)


def grouped(groups, rows, **fields):
    """Of a mixture: ``rows`` of all groups together."""
    params = {"groups": groups, "m": rows, "n": 4096, "k": 7168, "spread": "balanced", "top_k": 8, **fields.pop("params", {})}
    return result(job="grouped_gemm", params=params, **fields)


def decode(length, batch=1, page=16, **fields):
    pages = {"batch": batch, "kv_len": length, "q_len": 1, "page_size": page, "page_order": "random", "lengths": "equal"}
    return result(job="decode", params={**HEADS, **pages, **fields.pop("params", {})}, bound="memory", **fields)


def step(batch, length=4096, model="llama-3-8b", **fields):
    sizes = {"layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocabulary": 128256, "model": model}
    params = {**HEADS, **sizes, "part": "step", "batch": batch, "kv_len": length, "page_size": 16, "q_len": 1}
    return result(job="decode_step", params=params, bound="memory", **fields)


def collective(size, algo="ring", ranks=2, **fields):
    nothing = {"flops": 0, "flop_s": 0.0, "arithmetic_intensity": 0.0, "bound": "link", "fractions": NO_FRACTIONS}
    params = {"op": "all_reduce", "message_bytes": size, "world_size": ranks}
    switches = {"algo": algo, "proto": "library", "in_place": True, "transport": "device_link"}
    nothing |= {"interval_s": (fields["p50_s"] * 0.998, fields["p50_s"] * 1.002)}
    moved = {"compulsory_bytes": size, "bytes_s": size / fields["p50_s"], "pipe": "device_link"}
    regime = "warm/sustained/call"
    return result(job="collective", params=params, switches=switches, regime=regime, **{**nothing, **moved, **fields})
