"""Calls a function of attention in Python: arrays in its own kind and order of axes, there and back."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Optional, Sequence, Tuple, Union

import numpy as np

from attest._arrays import floats_of
from attest._conventions import Asked, Convention, parameters_of
from attest._emulation.autotune import Choice, require_taken, spelled
from attest._emulation.devices import Emulated, placing, running
from attest._limits import limits_of
from attest._layouts import ARRAYS, LSE, PLAIN, Layout, Shape

Result = Tuple[np.ndarray, Optional[np.ndarray]]


class WrongResult(TypeError):
    """Says that a function did not return the arrays that it must."""


class Function:
    """Holds a function, its convention, the keywords that it takes, and what differentiates it.

    Its arrays are handed over on the device, where one is named.
    """

    def __init__(self, fn: Callable[..., Any], convention: Convention, device: Optional[str] = None,
                 autotune: Union[str, Choice, None] = None, limits: Optional[Iterable[str]] = None):
        if not callable(fn):
            raise TypeError(f"fn is a {type(fn).__name__}; give a function")
        self.fn = fn
        self.name: str = getattr(fn, "__name__", type(fn).__name__).strip("<>")
        self.convention = convention
        self.limits = limits_of(limits)
        self.arrays = convention.arrays or _arrays_of(fn)
        self.device = device
        self._place = None if device is None else placing(self.arrays, device)
        self._running = running(device, autotune)
        self.keywords = {name: keyword for name, keyword in convention.keywords.items()
                         if _takes(fn, name, by_name=name in convention.extras)}
        self._learned = {name: keyword.claims for name, keyword in self.keywords.items()
                         if keyword.claims in ("sinks", "bias")}
        self.differentiator: Any = None
        """One of _gradients.py, which then calls forward too; None where gradients are not asked for."""
        self._layout, self._lse = ARRAYS[convention.layout], LSE[convention.layout]

    @property
    def place(self) -> str:
        """Words for where it runs, for people: " on emulated:sm_80, autotuned to TILE=64"; "" for the host."""
        where = f" on {self.device}" if self.device else ""
        tuned = isinstance(self._running, Emulated) and self._running.choice
        return where + (f", autotuned to {spelled(tuned)}" if tuned else "")

    def keep_to_choice(self) -> None:
        """Has further calls refuse where a kernel prunes the configuration that was chosen for it, if one was.

        Raises ValueError where calls by now launched no such kernel.
        """
        if isinstance(self._running, Emulated) and self._running.choice:
            require_taken(self._running.choice, self._running.configurations)
            self._running.keeps_to_choice = True

    def __call__(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, dtype: str,
                 asked: Asked) -> Result:
        """Returns out and lse, or None for it, of arrays (batch, seqlen, heads, head_dim).

        A bf16 element is 16 bits. Raises what the function raises, and WrongResult.
        """
        arrays, words = self._arguments((q, k, v), dtype, asked)
        with self._running():
            called = self.differentiator.forward(self.fn, arrays, words, self._given_learned(words)) \
                if self.differentiator else self.fn(*arrays, **words)
        return self._results(called, q, v, dtype)

    def gradients(self, inputs: Tuple[np.ndarray, np.ndarray, np.ndarray], stored: Result,
                  dout: np.ndarray, dtype: str, asked: Asked, rows: Sequence[Any] = (...,)) -> Tuple[np.ndarray, ...]:
        """Returns dq, dk and dv, where forward returned `stored`; then dsinks and dbias, where asked for.

        `rows`: indices of `stored` that forward wrote.
        Raises what the function and its backward pass raise, and WrongResult.
        """
        q, _, v = inputs
        arrays, words = self._arguments(inputs, dtype, asked)
        out, lse = stored
        given = (self._turned(out, dtype),
                 None if lse is None else self._given(self._lse.there(lse), _wide(dtype)))
        learned = self._given_learned(words)
        with self._running():
            pulled = self.differentiator.backward(self.fn, arrays, words, self._turned(dout, dtype), given, learned)
        if pulled.returned is not None:
            again = self._results(pulled.returned, q, v, dtype)[0]
            if not all(np.array_equal(again[at], out[at], equal_nan=True) for at in rows):
                raise WrongResult(f"two equal calls of {self.name} return different out, so that its "
                                  "gradients are of another out than the one it returned; give "
                                  "gradients=False")
        gradients = pulled.gradients
        names = ["dq", "dk", "dv", *(f"d{self._learned[name]}" for name in learned)]
        needed = f"{_COUNTS[len(names)]} arrays ({', '.join(names)})"
        needed += f" where it is given {' and '.join(learned)}" if learned else ""
        if isinstance(gradients, (tuple, list)) and len(gradients) > len(names):
            gradients = [one for k, one in enumerate(gradients) if k < 3 or one is not None]
        if not isinstance(gradients, (tuple, list)) or len(gradients) != len(names):
            raise WrongResult(f"the backward pass of {self.name} returned {_many(gradients)}; it must be {needed}")
        checked = tuple(self._checked(f"d{name}", gradient, like.shape, dtype, self._layout)
                        for name, gradient, like in zip("qkv", gradients, inputs))
        return (*checked, *(self._gradient_of(name, gradient, words[name], dtype, asked)
                            for name, gradient in zip(learned, gradients[3:])))

    def _given_learned(self, words: Dict[str, Any]) -> Tuple[str, ...]:
        """Returns the keywords whose values are sinks and a bias, where the call has some, in this order."""
        return tuple(sorted((name for name in self._learned if words[name] is not None),
                            key=lambda name: self._learned[name] == "bias"))

    def _gradient_of(self, name: str, gradient: Any, value: Any, dtype: str, asked: Asked) -> np.ndarray:
        """Returns dsinks (heads_q), or dbias, of the shape that the keyword's value has."""
        claim = self._learned[name]
        if gradient is None:
            raise WrongResult(f"{self.name} has no gradient of its {name}: out is computed from a detached "
                              f"one, or by what has no such gradient; give gradients=False, or claims without '{claim}'")
        if claim == "bias":
            whole = self._checked("dbias", gradient, tuple(value.shape), asked.bias_dtype, PLAIN)
            return _summed(whole, asked)
        return self._checked("dsinks", gradient, tuple(value.shape), _wide(dtype), PLAIN).reshape(-1)

    def _arguments(self, inputs: Iterable[np.ndarray], dtype: str, asked: Asked) -> Any:
        """Returns the arrays and keywords of a call."""
        q, k, v = inputs
        if self.convention.layout == "thd" and asked.cu_seqlens_q is None:
            of_keys = _equal_lengths(k) if asked.block_table is None else \
                np.arange(len(q) + 1, dtype=np.int32) * np.int32(asked.seqlen_k)
            asked = dataclasses.replace(asked, cu_seqlens_q=_equal_lengths(q), cu_seqlens_k=of_keys)
        if asked.sinks is not None and dtype == "f64":
            asked = dataclasses.replace(asked, sinks=asked.sinks.astype(np.float64))
        windowed = asked
        claims = {one.claims for one in self.keywords.values()}
        if asked.window == (-1, 0) and "causal" in claims:  # many take no window with a causal mask
            windowed = dataclasses.replace(asked, window=(-1, -1), offset_window=None)
        elif "offset_window" in claims:
            windowed = dataclasses.replace(asked, window=(-1, -1))
        words: Dict[str, Any] = {}
        for name, keyword in self.keywords.items():
            if keyword.claims == "split_invariant" and asked.num_splits == 0:
                continue
            value = keyword.value(windowed if "window" in keyword.all_claims else asked)
            of_bias = asked.bias_dtype if keyword.claims == "bias" else ""
            words[name] = self._given(value, of_bias) if isinstance(value, np.ndarray) else value
        in_tokens = self.convention.layout == "thd" and asked.block_table is not None
        of_keys = PLAIN if in_tokens else self._layout  # pools have pages in place of tokens
        return [self._turned(q, dtype), *(self._turned(array, dtype, of_keys) for array in (k, v))], words

    def _results(self, returned: Any, q: np.ndarray, v: np.ndarray, dtype: str) -> Result:
        out, lse = first_two(returned)
        O = self._checked("out", out, (*q.shape[:3], v.shape[3]), dtype, self._layout)
        if lse is None:
            return O, None
        shape = (q.shape[0], q.shape[2], q.shape[1])
        return O, self._checked("lse", lse, shape, _wide(dtype), self._lse)

    def _checked(self, name: str, given: Any, shape: Shape, dtype: str, layout: Layout) -> np.ndarray:
        """Returns an array of the library's shape, which the function must have returned in its own."""
        try:
            array, word = floats_of(name, given)
        except TypeError as error:
            raise WrongResult(f"{self.name} returned what is no result: {error}") from None
        if array.shape != layout.shape(shape):
            raise WrongResult(f"{self.name} returned {name} of shape {array.shape}; it must be "
                              f"{layout.shape(shape)}")
        if word != dtype:
            raise WrongResult(f"{self.name} returned {name} in {word}; it must be {dtype}")
        return layout.back(array, shape)

    def _turned(self, array: np.ndarray, dtype: str, layout: Optional[Layout] = None) -> Any:
        return self._given((layout or self._layout).there(array), dtype)

    def _given(self, array: np.ndarray, dtype: str = "") -> Any:
        """Returns the array as one of the function's own kind, on its device; a view where it can be."""
        own = self._own(array, dtype)
        return self._place(own) if self._place else own

    def _own(self, array: np.ndarray, dtype: str) -> Any:
        if self.arrays == "torch":
            torch = _module("torch")
            if dtype == "bf16":
                return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
            return torch.from_numpy(array)
        if dtype == "bf16":
            array = array.view(importlib.import_module("ml_dtypes").bfloat16)
        return _module("jax.numpy").asarray(array) if self.arrays == "jax" else array


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        kind = name.split(".")[0]
        raise ValueError(f"the function is to be called with arrays of {kind} ({error}); install it, or give a "
                         "convention with others, as like='numpy'") from None


def first_two(returned: Any) -> Tuple[Any, Any]:
    """Returns out and lse, None for an lse that was not returned."""
    if isinstance(returned, tuple) and len(returned) > 1:
        return returned[0], returned[1]
    return returned, None


_COUNTS = {3: "three", 4: "four", 5: "five"}


def _summed(dbias: np.ndarray, asked: Asked) -> np.ndarray:
    """Returns the gradient of the bias; of one that was handed over with a window, of each key it hides nothing."""
    assert asked.bias is not None
    if dbias.shape == asked.bias.shape:
        return dbias
    bf16 = asked.bias_dtype == "bf16"
    wide = (dbias.astype(np.uint32) << 16).view(np.float32) if bf16 else dbias
    axes = tuple(axis for axis, extent in enumerate(asked.bias.shape) if extent != dbias.shape[axis])
    total = wide.sum(axes, keepdims=True, dtype=np.float64)
    if not bf16:
        return total.astype(dbias.dtype)
    bits = total.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _wide(dtype: str) -> str:
    """Returns the dtype of LSE."""
    return "f64" if dtype == "f64" else "f32"


def _equal_lengths(array: np.ndarray) -> np.ndarray:
    """Returns where the sequences of a batch begin, and the last ends, when they follow one another."""
    return np.arange(array.shape[0] + 1, dtype=np.int32) * np.int32(array.shape[1])


def _many(given: Any) -> str:
    return f"{len(given)} arrays" if isinstance(given, (tuple, list)) else f"a {type(given).__name__}"


def _arrays_of(fn: Callable[..., Any]) -> str:
    """Returns the framework among the names of the function's module; numpy without one."""
    names = getattr(inspect.unwrap(fn), "__globals__", {}).values()
    used = {value.__name__.split(".")[0] for value in names if isinstance(value, ModuleType)}
    return next((kind for kind in ("torch", "jax") if kind in used), "numpy")


def _takes(fn: Callable[..., Any], keyword: str, by_name: bool) -> bool:
    """Tells whether the function takes the keyword; one without a signature is asked by calls.

    `by_name`: where its signature names it alone.
    """
    parameters = parameters_of(fn)
    if by_name:
        return keyword in (parameters or ())
    return parameters is None or keyword in parameters or any(
        one.kind is one.VAR_KEYWORD for one in parameters.values())
