"""Counts the words of a Triton flash attention, both passes, at several tile sizes:
`python triton_words.py > triton_words.jsonl`.

Each line has one pass at one tile and head dimension: words by tensor as the compiled kernels load and
store them, and the fast memory of their blocks. No GPU is needed, but ptxas is, which Triton brings.
"""
import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "0"  # before Triton is loaded
import torch
import triton

import attest
import triton_flash_backward

SEQLEN, TARGET = 512, "sm_80"
FIELDS = ("kernel", "read", "written", "moved_bytes", "shared_bytes", "threads", "registers", "local_bytes",
          "registers_by")


def with_tile(tile):
    def attention(q: torch.Tensor, k, v, *, causal=False, scale=1.0):
        return triton_flash_backward.attention(q, k, v, causal=causal, scale=scale, tile=tile)

    return attention


def line_of(direction, counted, **sizes):
    launches = [{key: launch[key] for key in FIELDS} for launch in counted["launches"]]
    return json.dumps({"direction": direction, **sizes, "target": TARGET, "triton": triton.__version__,
                       "launches": launches, "moved_bytes": counted["moved"]["bytes"],
                       "fast_bytes": counted["fast_bytes"]})


def main():
    for head_dim in (64, 128, 256):
        for tile in (16, 32, 64, 128):
            problem = f"sq={SEQLEN},sk={SEQLEN},d={head_dim},dtype=f16"
            try:
                counted = attest.count(with_tile(tile), problem, numerics="p_cast_to_input", best=False,
                                       device=f"emulated:{TARGET}", gradients=True)
            except AssertionError as refused:
                if "OutOfResources" not in str(refused):
                    raise
                print(f"d = {head_dim}, tiles of {tile}: more shared memory than a block has", file=sys.stderr)
                continue
            sizes = {"head_dim": head_dim, "tile": tile, "seqlen": SEQLEN}
            print(line_of("forward", counted, **sizes))
            print(line_of("backward", counted["backward"], **sizes), flush=True)


main()
