"""Judges the gradients of PyTorch's scaled_dot_product_attention on a set of shapes."""
import attest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

SHAPES = ((1, 2, 7, 7, 16, True), (2, 2, 64, 64, 32, False), (1, 2, 70, 130, 64, False),
          (1, 1, 300, 300, 64, True), (1, 1, 1, 257, 80, False), (1, 2, 600, 64, 16, False))


def refused(backend, dtype, numerics, shapes=SHAPES, factor=1.0):
    """Returns of how many of the shapes gradients are refused; `factor` spoils dV."""
    random = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(*shape, generator=random).to(dtype)

    count = 0
    for batch, heads, queries, keys, columns, causal in shapes:
        q, k, v = (drawn(batch, heads, rows, columns).requires_grad_() for rows in (queries, keys, keys))
        dout = drawn(batch, heads, queries, columns)
        with sdpa_kernel(backend):
            out = scaled_dot_product_attention(q, k, v, is_causal=causal)
        dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
        try:
            attest.assert_grads_close((dq, dk, factor * dv), q, k, v, dout, out=out, layout="bhsd",
                                      causal="top_left" if causal else False, numerics=numerics)
        except AssertionError:
            count += 1
    return count


CHECKS = {
    "math, f32": (SDPBackend.MATH, torch.float32, "f32"),
    "math, bf16": (SDPBackend.MATH, torch.bfloat16, "f32"),
    "flash, f32": (SDPBackend.FLASH_ATTENTION, torch.float32, "f32"),
    "flash, bf16": (SDPBackend.FLASH_ATTENTION, torch.bfloat16, "p_cast_to_input"),
}

if __name__ == "__main__":
    for name, check in CHECKS.items():
        print(f"{name}: {refused(*check)} of {len(SHAPES)} shapes refused")
