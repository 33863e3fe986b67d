"""Certifies jax.nn.dot_product_attention on the CPU, compiled as a whole for each shape."""
import os

# XLA compiles each shape anew: 0.03 s of CPU time instead of 0.2 s, without LLVM's optimizations.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 "
                      "--xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
                      "--xla_cpu_parallel_codegen_split_count=1")
import jax

attention = jax.jit(jax.nn.dot_product_attention, static_argnames=("is_causal", "local_window_size"))

P_CAST = {"p_cast": "input", "p_normalized": 1}
FLUSHED = {"flushes_subnormals": 1}  # as XLA does on a CPU
AUTODIFF = {"preset": "autodiff", **FLUSHED}  # dP in the arrays' type, delta the row sum of P * dP
SUBJECTS = {
    "JAX dot_product_attention, f32": {"fn": attention, "like": "jax", "dtypes": ["f32"]},
    "JAX dot_product_attention, f32, flushing declared": {"fn": attention, "like": "jax",
                                                          "dtypes": ["f32"], "numerics": FLUSHED},
    "JAX dot_product_attention, bf16": {"fn": attention, "like": "jax", "dtypes": ["bf16"],
                                        "numerics": P_CAST},
    "JAX dot_product_attention, bf16, flushing declared": {"fn": attention, "like": "jax",
                                                           "dtypes": ["bf16"],
                                                           "numerics": AUTODIFF},
}
