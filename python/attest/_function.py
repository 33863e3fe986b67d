"""Calls a function of attention in Python: arrays in its own kind and order of axes, there and back."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from attest._arrays import floats_of
from attest._conventions import Asked, Convention

Result = Tuple[np.ndarray, Optional[np.ndarray]]


class WrongResult(TypeError):
    """Says that a function did not return the arrays that it must."""


class Function:
    """Holds a function, its convention, and the keywords that it takes."""

    def __init__(self, fn: Callable[..., Any], convention: Convention):
        if not callable(fn):
            raise TypeError(f"fn is a {type(fn).__name__}; give a function")
        self.fn = fn
        self.name: str = getattr(fn, "__name__", type(fn).__name__).strip("<>")
        self.convention = convention
        self.arrays = convention.arrays or _arrays_of(fn)
        self.keywords = {name: keyword for name, keyword in convention.keywords.items()
                         if _takes(fn, name)}

    def __call__(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, dtype: str,
                 asked: Asked) -> Result:
        """Returns out and lse, or None for it, of arrays (batch, seqlen, heads, head_dim).

        A bf16 element is 16 bits. Raises what the function raises, and WrongResult.
        """
        words: Dict[str, Any] = {}
        for name, keyword in self.keywords.items():
            value = keyword.value(asked)
            words[name] = self._given(value) if isinstance(value, np.ndarray) else value
        returned = self.fn(*(self._given(self._turned(array), dtype) for array in (q, k, v)), **words)
        out, lse = returned[:2] if isinstance(returned, tuple) and len(returned) > 1 else (returned,
                                                                                           None)
        O = self._turned(self._checked("out", out, self._turned_shape((*q.shape[:3], v.shape[3])),
                                       dtype))
        if lse is None:
            return O, None
        wide = "f64" if dtype == "f64" else "f32"
        return O, self._checked("lse", lse, (q.shape[0], q.shape[2], q.shape[1]), wide)

    def _checked(self, name: str, given: Any, shape: Tuple[int, ...], dtype: str) -> np.ndarray:
        try:
            array, word = floats_of(name, given)
        except TypeError as error:
            raise WrongResult(f"{self.name} returned what is no result: {error}") from None
        if array.shape != shape:
            raise WrongResult(f"{self.name} returned {name} of shape {array.shape}; it must be {shape}")
        if word != dtype:
            raise WrongResult(f"{self.name} returned {name} in {word}; it must be {dtype}")
        return array

    def _turned(self, array: np.ndarray) -> np.ndarray:
        return array.swapaxes(1, 2) if self.convention.layout == "bhsd" else array

    def _turned_shape(self, shape: Tuple[int, ...]) -> Tuple[int, ...]:
        batch, seqlen, heads, columns = shape
        return (batch, heads, seqlen, columns) if self.convention.layout == "bhsd" else shape

    def _given(self, array: np.ndarray, dtype: str = "") -> Any:
        """Returns the array as one of the function's own kind: a view where that takes strides."""
        if self.arrays == "torch":
            torch = importlib.import_module("torch")
            if dtype == "bf16":
                return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
            return torch.from_numpy(array)
        if dtype == "bf16":
            array = array.view(importlib.import_module("ml_dtypes").bfloat16)
        return importlib.import_module("jax.numpy").asarray(array) if self.arrays == "jax" else array


def _arrays_of(fn: Callable[..., Any]) -> str:
    """Returns the framework among the names of the function's module; numpy without one."""
    names = getattr(inspect.unwrap(fn), "__globals__", {}).values()
    used = {value.__name__.split(".")[0] for value in names if isinstance(value, ModuleType)}
    return next((kind for kind in ("torch", "jax") if kind in used), "numpy")


def _takes(fn: Callable[..., Any], keyword: str) -> bool:
    """Tells whether the function takes the keyword; one without a signature is asked by calls."""
    try:
        parameters = inspect.signature(fn).parameters
    except ValueError:
        return True
    return keyword in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
