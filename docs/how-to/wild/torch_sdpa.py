"""Certifies PyTorch's scaled_dot_product_attention on the CPU: as it is, one backend, and its LSE."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def math(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """Calls the backend that needs no kernel of its own."""
    with sdpa_kernel(SDPBackend.MATH):
        return scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, scale=scale,
                                            is_causal=is_causal, enable_gqa=enable_gqa)


def flash(query, key, value, is_causal=False, scale=None):
    """Calls the operator of the flash backend, which returns (out, lse) and needs dense rows."""
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query.contiguous(), key.contiguous(), value.contiguous(), is_causal=is_causal, scale=scale)


def eager(query, key, value, attn_mask=None, is_causal=False, scale=None):
    """Multiplies, scales and masks in the type of the arrays, as models do whose attention is not fused."""
    scores = torch.matmul(query, key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(torch.nan_to_num(weights), value)


def subject(fn, dtype, **options):
    return {"fn": fn, "like": "sdpa", "dtypes": [dtype], **options}


CAST, POSITIVE = {"p_cast": "input"}, {"claims": ["causal", "cross_lengths", "lse"]}
FAST_EXP = {**CAST, "exp_ulps": 839, "exp_zero_not_one": 1}  # 839 ulp are 5e-5 of the value
SUBJECTS = {
    "torch SDPA, f32": subject(scaled_dot_product_attention, "f32"),
    "torch SDPA, bf16": subject(scaled_dot_product_attention, "bf16"),
    "torch SDPA, bf16, masks as arrays": subject(
        scaled_dot_product_attention, "bf16", numerics=CAST,
        claims=["boolean_mask", "gqa", "head_dim_v", "any_scale", "cross_lengths"]),
    "torch eager, bf16": subject(eager, "bf16", numerics="eager"),
    "torch SDPA, math, f32": subject(math, "f32"),
    "torch SDPA, math, bf16": subject(math, "bf16"),
    "torch flash and LSE, f32": subject(flash, "f32", **POSITIVE),
    "torch flash and LSE, bf16, fast exp not declared": subject(flash, "bf16", numerics=CAST, **POSITIVE),
    "torch flash and LSE, bf16": subject(flash, "bf16", numerics=FAST_EXP, **POSITIVE),
}
