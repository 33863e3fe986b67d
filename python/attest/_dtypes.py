"""Lists the dtypes that attention is judged in: a new one is a row here and in core/dtype/dtype.hpp."""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple


class Dtype(NamedTuple):
    """Says how the libraries of arrays call a dtype and hold it."""

    dlpack: Tuple[int, int]  # code, bits
    numpy: str  # of the memory; numpy has no bfloat16
    name: str  # of a dtype of numpy, torch and jax


DTYPES: Dict[str, Dtype] = {  # in the order of attest_dtype
    "f64": Dtype((2, 64), "<f8", "float64"),
    "f32": Dtype((2, 32), "<f4", "float32"),
    "bf16": Dtype((4, 16), "<u2", "bfloat16"),
    "f16": Dtype((2, 16), "<f2", "float16"),
}
