"""Counts the words of a Triton flash attention at several tile sizes: `python triton_words.py > triton_words.jsonl`.

Each line has one tile and head dimension: words of Q, K, V, O and LSE as the compiled kernel loads and
stores them, and the fast memory of its block. No GPU is needed, but ptxas is, which Triton brings.
"""
import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "0"  # before Triton is loaded
import torch
import triton

import attest
import triton_flash

SEQLEN, TARGET = 512, "sm_80"


def with_tile(tile):
    def attention(q: torch.Tensor, k, v, *, causal=False, scale=1.0):
        return triton_flash.attention(q, k, v, causal=causal, scale=scale, tile=tile)

    return attention


def main():
    for head_dim in (64, 128, 256):
        for tile in (16, 32, 64, 128):
            problem = f"sq={SEQLEN},sk={SEQLEN},d={head_dim},dtype=f16"
            try:
                counted = attest.count(with_tile(tile), problem, numerics="p_cast_to_input", best=False,
                                       device=f"emulated:{TARGET}")
            except AssertionError as refused:
                if "OutOfResources" not in str(refused):
                    raise
                print(f"d = {head_dim}, tiles of {tile}: more shared memory than a block has", file=sys.stderr)
                continue
            (launch,) = counted["launches"]
            fields = {key: launch[key] for key in ("read", "written", "moved_bytes", "shared_bytes", "threads",
                                                   "registers", "local_bytes", "registers_by")}
            print(json.dumps({"head_dim": head_dim, "tile": tile, "seqlen": SEQLEN, "target": TARGET,
                              "triton": triton.__version__, **fields, "fast_bytes": counted["fast_bytes"]}), flush=True)


main()
