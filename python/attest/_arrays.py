"""Turns arrays of numpy, torch, jax and others into numpy arrays whose elements the C library knows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from attest._dtypes import DTYPES

_WORDS = {dtype.name: word for word, dtype in DTYPES.items()}
_TORCH_BF16 = np.dtype("V2")  # numpy has no bfloat16; ml_dtypes, which jax uses, brings one


def numpy_of(name: str, given: Any) -> np.ndarray:
    """Returns the array on the host, without a copy where it lies there.

    Raises TypeError for None and for what is no array of numbers.
    """
    if given is None:
        raise TypeError(f"{name} is None; give an array")
    if type(given).__module__.split(".")[0] == "torch":
        try:
            return _of_torch(given)
        except (TypeError, RuntimeError) as error:  # sparse, of a dtype without a numpy one, on no real device
            raise TypeError(f"{name} ({given.dtype} on {given.device}): {error}") from error
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {error}") from error
    if array.dtype.kind in "OSUMm":
        raise TypeError(f"{name} is a {type(given).__name__}, not an array of numbers")
    return array


def floats_of(name: str, given: Any) -> tuple[np.ndarray, str]:
    """Returns the same of floats, with their dtype's word; bf16 comes as 16-bit integers.

    Strides stay as they are where the library takes them. Raises TypeError for other dtypes.
    """
    array = numpy_of(name, given)
    word = "bf16" if array.dtype == _TORCH_BF16 else _WORDS.get(array.dtype.name)
    if word is None:
        raise TypeError(f"{name} has dtype {array.dtype.name}; attention is judged in float64, "
                        "float32, bfloat16 and float16")
    return _with_plain_strides(array.view(np.uint16) if word == "bf16" else array), word


def integers_of(name: str, given: Any) -> list[int]:
    """Returns a list of integers, from a sequence or an array. Raises TypeError for anything else."""
    array = numpy_of(name, given)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} is {given!r}; give a list of integers")
    return [int(number) for number in array]


def _of_torch(tensor: Any) -> np.ndarray:
    torch = sys.modules["torch"]
    tensor = tensor.detach().cpu().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(_TORCH_BF16)
    return tensor.numpy()


def _with_plain_strides(array: np.ndarray) -> np.ndarray:
    """Returns the array, copied where strides are negative or no multiples of an element's size."""
    plain = all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides)
    if plain and array.dtype.isnative and array.flags.aligned:
        return array
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
