"""Asks for its GPU when it is imported, as many modules of kernels do."""

import torch
import triton
from triton_kernels import one_row

DEVICE = triton.runtime.driver.active.get_active_torch_device()
WARPS = 1 if torch.cuda.get_device_capability()[0] >= 8 else 2


def attention(q, k, v):
    """Computes attention of (1, seqlen, 1, head_dim) for up to 16 keys and columns."""
    out = torch.empty_like(q, device=DEVICE)
    one_row[(q.shape[1],)](q.contiguous(), k.contiguous(), v.contiguous(), out, q.shape[3]**-0.5, k.shape[1],
                           q.shape[3], 0, TILE=16, WIDE=16, num_warps=WARPS)
    return out
