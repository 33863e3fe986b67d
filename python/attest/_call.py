"""Puts a question to the C library: arrays in its order of axes, and all that its structs point to."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional

import numpy as np

from attest import _library
from attest._arrays import floats_of
from attest._features import (Features, Numerics, Sizes, bias_of, contract_text, mask_of, problem_text,
                              require_known, sinks_of)
from attest._pages import gathered

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Results(NamedTuple):
    out: np.ndarray
    lse: np.ndarray
    dq: Optional[np.ndarray] = None
    dk: Optional[np.ndarray] = None
    dv: Optional[np.ndarray] = None


class Results(_Results):
    """Holds float64 arrays in the layout of q, k and v; gradients are None where none were asked for."""

    dsinks: Optional[np.ndarray] = None
    """(heads_q), with gradients of a problem with sinks; beside the tuple, which is the same for every problem."""

    dbias: Optional[np.ndarray] = None
    """The gradient of the bias, in its shape; with gradients of a problem with one."""

    @classmethod
    def of(cls, dsinks: Optional[np.ndarray] = None, dbias: Optional[np.ndarray] = None, **arrays: Any) -> Results:
        """Holds arrays by name."""
        made = cls(**arrays)
        made.dsinks, made.dbias = dsinks, dbias
        return made


_NAMES = {"out": "O", "lse": "LSE", "dq": "dQ", "dk": "dK", "dv": "dV", "dsinks": "dSinks", "dbias": "dBias"}
"""Names of results in the library."""
_MAY_BE_NONE = ("lse", "dsinks", "dbias")


class Call:
    """Holds Q, K and V with the features of their problem and the contract of a kernel."""

    def __init__(self, q: Any, k: Any, v: Any, numerics: Numerics, features: Mapping[str, Any]):
        require_known(features)
        self._packed = features.get("cu_seqlens_q") is not None
        self._heads_first = not self._packed and features.get("layout", "bshd") == "bhsd"
        if features.get("layout", "bshd") not in ("bshd", "bhsd"):
            raise ValueError(f"layout is {features['layout']!r}; it must be 'bshd' or 'bhsd'")
        (Q, dtype), (K, _), (V, _) = arrays = [
            self._ordered(name, given) for name, given in (("q", q), ("k", k), ("v", v))]
        sizes = Sizes(Q.shape[0], Q.shape[1], K.shape[1], Q.shape[2], K.shape[2], Q.shape[3],
                      V.shape[3], dtype)
        self._shapes = {"out": (*Q.shape[:3], V.shape[3]), "lse": (Q.shape[0], Q.shape[2], Q.shape[1]),
                        "dq": Q.shape, "dk": K.shape, "dv": V.shape, "dsinks": (Q.shape[2],)}
        self._inputs = {name: _library.Tensor.of(*array) for name, array in zip("QKV", arrays)}
        self._mask = mask_of(features, sizes)
        self._sinks = sinks_of(features, sizes.heads_q)
        self._bias = bias_of(features, sizes)
        if self._bias is not None:
            self._inputs["bias"] = _library.Tensor.of(*self._bias)
            self._shapes["dbias"] = self._bias[0].shape
            self._shape_of_bias = floats_of("bias", features["bias"])[0].shape
        self._contract = contract_text(numerics, features)
        self.problem = problem_text(sizes, features)

    def asking(self, dout: Any = None, dlse: Any = None, **got: Any) -> _library.Attention:
        """Returns the struct, with the gradients of outputs that are not None and the kernel's results.

        LSE, dsinks and dbias alone may be None.
        """
        inputs = dict(self._inputs)
        if dout is not None:
            inputs["dO"] = _library.Tensor.of(*self._ordered("dout", dout))
        if dlse is not None:
            inputs["dLSE"] = _library.Tensor.of(*self._rows("dlse", dlse))
        read = {"lse": self._rows, "dsinks": floats_of, "dbias": self._of_bias}
        results = {_NAMES[name]: _library.Tensor.of(*read.get(name, self._ordered)(name, given))
                   for name, given in got.items() if name not in _MAY_BE_NONE or given is not None}
        struct = _library.Attention(
            struct_size=ctypes.sizeof(_library.Attention), problem=self.problem.encode(),
            contract=self._contract.encode(),
            **self._masks(),
            sinks=None if self._sinks is None else self._sinks.ctypes.data,
            got=_library.results(**results),
            **{name: ctypes.pointer(one) for name, one in inputs.items()})
        struct.keeps = (self, inputs, results)  # ctypes keeps addresses alone
        return struct

    def _masks(self) -> dict[str, Any]:
        """Returns the fields of the struct that hold a mask."""
        if self._mask is None:
            return {}
        if self._mask.ndim == 2:
            return {"boolean_mask": self._mask.ctypes.data}
        return {"head_mask": self._mask.ctypes.data, "head_mask_extents": self._mask.shape}

    def to_write(self, gradients: bool) -> tuple[_library.Results, Results]:
        """Returns results for the library to write to, and the same arrays in the caller's layout."""
        names = list(_NAMES) if gradients else ["out", "lse"]
        if gradients and self._sinks is None:
            names.remove("dsinks")
        if gradients and self._bias is None:
            names.remove("dbias")
        arrays = {name: np.empty(self._shapes[name]) for name in names}
        struct = _library.results(**{_NAMES[name]: _library.Tensor.of(array, "f64")
                                     for name, array in arrays.items()})
        return struct, Results.of(**{
            name: array if name == "dsinks" else array.reshape(self._shape_of_bias) if name == "dbias" else
            array[0] if self._packed else
            array.swapaxes(1, 2) if self._heads_first and name != "lse" else array
            for name, array in arrays.items()})

    def _ordered(self, name: str, given: Any) -> tuple[np.ndarray, str]:
        """Returns it as the library has it, (batch, seqlen, heads, head_dim)."""
        array, dtype = floats_of(name, given)
        axes = ("(tokens, heads, head_dim)" if self._packed else "(batch, heads, seqlen, head_dim)"
                if self._heads_first else "(batch, seqlen, heads, head_dim)")
        if array.ndim != (3 if self._packed else 4):
            raise ValueError(f"{name} has shape {array.shape}; it must be {axes}")
        return (array[None] if self._packed else
                array.swapaxes(1, 2) if self._heads_first else array), dtype

    def _of_bias(self, name: str, given: Any) -> tuple[np.ndarray, str]:
        """Returns the gradient of a bias with four axes."""
        array, dtype = floats_of(name, given)
        if array.shape != self._shape_of_bias:
            raise ValueError(f"{name} has shape {array.shape}; it must be that of bias, {self._shape_of_bias}")
        return array.reshape(self._shapes["dbias"]), dtype

    def _rows(self, name: str, given: Any) -> tuple[np.ndarray, str]:
        """Returns LSE or its gradient as the library has it, (batch, heads, seqlen_q)."""
        array, dtype = floats_of(name, given)
        if array.ndim != (2 if self._packed else 3):
            axes = "(heads, tokens)" if self._packed else "(batch, heads, seqlen_q)"
            raise ValueError(f"{name} has shape {array.shape}; it must be {axes}")
        return (array[None] if self._packed else array), dtype


def problem(q: Any, k: Any, v: Any, **features: Unpack[Features]) -> str:
    """Returns the problem of these arrays in one line, for `attest.count` and `attest check --problem`.

    A mask given as an array is not in it, nor are sinks, a bias and pages.
    """
    k, v, words = gathered(k, v, features)
    words = words if isinstance(words.get("mask"), str) else {**words, "mask": None}
    return Call(q, k, v, "f32", words).problem
