"""Certifies attention of PyTorch, JAX and Triton on a CUDA device; `ci/on-device run --step wild` does.

What is declared is public: P in the arrays' type before it meets V, products on tensor cores, exp by
ex2.approx. That errs by 4 units of 2^-24 (PTX ISA), and log2(e) * scale, rounded once, moves an
argument of -30 by as much again as the other 60 allow. Fast math flushes subnormals. Gradients add
up by atomics, but in XLA.
"""
import functools
import importlib
import os

# Others are on the device at the same time.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
FORWARD = {"preset": "tensor_core", "exp_ulps": 64, "flushes_subnormals": 1}
ATOMIC = {**FORWARD, "nondeterministic": True}
SPLIT = {**ATOMIC, "lse_splits": 1, "gqa_partial": "input"}  # keys split among blocks, dK by heads
NORMALIZED = {**FORWARD, "p_normalized": True}


def sdpa(backend):
    """Returns scaled_dot_product_attention with one backend of torch.nn.attention.SDPBackend."""
    def attention(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
        of = importlib.import_module("torch.nn.attention")
        call = importlib.import_module("torch.nn.functional").scaled_dot_product_attention
        try:
            with of.sdpa_kernel(getattr(of.SDPBackend, backend)):
                return call(query, key, value, attn_mask=attn_mask, is_causal=is_causal, scale=scale,
                            enable_gqa=enable_gqa)
        except RuntimeError as error:
            if "No available kernel" in str(error) or "No viable backend" in str(error):
                raise NotImplementedError(f"{backend} does not take it") from None
            raise

    attention.__name__ = backend.lower()
    return attention


def triton_flash(q, k, v, causal=False, softmax_scale=1.0):
    """Calls the kernel of triton_flash.py, compiled for the device."""
    if q.is_cuda:
        os.environ["TRITON_INTERPRET"] = "0"
    return importlib.import_module("triton_flash").attention(q, k, v, causal=causal, scale=softmax_scale)


@functools.lru_cache(maxsize=None)
def compiled(implementation):
    """Returns jax.nn.dot_product_attention, compiled for each shape, mask and scale."""
    jax = importlib.import_module("jax")
    return jax.jit(functools.partial(jax.nn.dot_product_attention, implementation=implementation),
                   static_argnames=("is_causal", "local_window_size", "scale"))


def jax_cudnn(query, key, value, is_causal=False, scale=None):
    """Calls the implementation of cuDNN."""
    try:
        return compiled("cudnn")(query, key, value, is_causal=is_causal, scale=scale)
    except RuntimeError as error:
        if "cuDNN is not detected" in str(error):
            raise NotImplementedError(str(error)) from None
        raise


def jax_xla(query, key, value, mask=None, is_causal=False, scale=None):
    """Calls the implementation that XLA compiles."""
    return compiled("xla")(query, key, value, mask=mask, is_causal=is_causal, scale=scale)


flash_attention, efficient_attention, cudnn_attention = map(
    sdpa, ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"))


def of_torch(fn, dtype, numerics, *claims):
    return {"library": "torch", "fn": fn, "like": "sdpa", "dtypes": [dtype], "numerics": numerics,
            "claims": ["causal", "cross_lengths", *claims], "gradients": True, "device": "cuda"}


def of_triton(dtype):
    return {"library": "triton", "fn": triton_flash, "like": "flash_attn_func", "dtypes": [dtype],
            "numerics": FORWARD, "gradients": False, "device": "cuda"}


def of_jax(fn, dtype, numerics, gradients):
    return {"library": "jax", "fn": fn, "like": "jax", "dtypes": [dtype], "numerics": numerics,
            "gradients": gradients, "device": "cuda"}


# In order of worth: where time is short the first are done.
SUBJECTS = {
    "torch flash, bf16": of_torch(flash_attention, "bf16", SPLIT, "gqa"),
    "torch efficient, bf16": of_torch(efficient_attention, "bf16", ATOMIC, "head_dim_v", "boolean_mask",
                                      "any_scale"),
    "torch cuDNN, bf16": of_torch(cudnn_attention, "bf16", ATOMIC, "gqa"),
    "Triton flash (own), f16": of_triton("f16"),
    "torch flash, f16": of_torch(flash_attention, "f16", SPLIT, "gqa"),
    "torch efficient, f16": of_torch(efficient_attention, "f16", ATOMIC, "head_dim_v", "boolean_mask",
                                     "any_scale"),
    "torch cuDNN, f16": of_torch(cudnn_attention, "f16", ATOMIC, "gqa"),
    "JAX cuDNN, bf16": of_jax(jax_cudnn, "bf16", ATOMIC, True),
    "JAX XLA, bf16": of_jax(jax_xla, "bf16", NORMALIZED, False),
    "Triton flash (own), bf16": of_triton("bf16"),
}
