"""Asks a function, by small calls, for which problems it can be certified."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable, Dict, FrozenSet, Iterable, Optional, Tuple, Type

import numpy as np

from attest import _abi
from attest._conventions import Asked
from attest._dtypes import DTYPES
from attest._function import Function, Result, WrongResult
from attest._gradients import differentiator

_KEYS = 6
_ENDS = np.array([0, 2, _KEYS], np.int32)  # of two packed sequences
_SHAPES: Dict[str, Dict[str, int]] = {  # asked of every function: no keyword says it
    "gqa": {"heads_kv": 2},
    "head_dim_v": {"head_dim_v": 16},
    "cross_lengths": {"seqlen_q": 3},
}
_ASKED: Dict[str, Dict[str, Any]] = {
    "causal": {"window": (-1, 0)},
    "window": {"window": (2, 1)},
    "boolean_mask": {"mask": np.tri(_KEYS, dtype=bool)},
    "key_lengths": {"key_lengths": np.array([3, _KEYS], np.int32)},
    "softcap": {"softcap": 2.0},
    "alibi": {"alibi_slopes": np.full(4, 0.5, np.float32)},
    "any_scale": {"scale": -0.5},
    "packed_sequences": {"cu_seqlens_q": _ENDS, "cu_seqlens_k": _ENDS, "seqlen_q": 4, "seqlen_k": 4},
}


def refusals() -> Tuple[Type[BaseException], ...]:
    """Returns the exceptions by which a function says that it does not serve a problem.

    Triton's is one that it raises where a block needs more than the device has.
    """
    of_triton = sys.modules.get("triton.runtime.errors")
    return (NotImplementedError, ValueError, *((of_triton.OutOfResources,) if of_triton else ()))


@dataclasses.dataclass(frozen=True)
class Claims:
    """Holds words of the certificate: dtypes and features; and limits where features say too much."""

    dtypes: Tuple[str, ...]
    features: FrozenSet[str]
    only: int


def claims_of(function: Function, dtypes: Optional[Iterable[str]], claims: Optional[Iterable[str]],
              empty_rows: bool, gradients: Optional[bool],
              backward: Optional[Callable[..., Any]]) -> Claims:
    """Returns what the function claims: the words given, or those whose problems it takes.

    Sets the function's differentiator. Raises what the function raises on a plain problem, and its
    backward pass.
    """
    means = differentiator(function.arrays, gradients, backward)
    served = tuple(dtypes) if dtypes is not None else _served_dtypes(function)
    if not served:
        raise ValueError("dtypes is empty; give one at least, or leave it out")
    for word in served:
        if word not in DTYPES:
            raise ValueError(f"dtypes: {word!r} must be one of {', '.join(DTYPES)}")
    if means:
        _differentiate_by(means, function, served[0], gradients or backward is not None)
    align = function.convention.align
    _, lse = _ask(function, served[0])
    if claims is not None:
        features = set(claims)
        _require_keywords(function, features)
    else:
        features = {word for word in _candidates(function) if _serves(function, served[0], word)}
        if lse is not None:
            features.add("lse")
    if "causal" in features:
        features = features - {"causal"} | {"causal_" + align}
    features |= {"any_strides"} | ({"empty_rows"} if empty_rows else set())
    for word in features:
        if word not in _abi.FEATURES:
            raise ValueError(f"claims: {word!r} must be one of causal, {', '.join(_abi.FEATURES)}")
    one_scale = 0 if "any_scale" in features else _abi.ONLY["one_scale"]
    return Claims(served, frozenset(features), _abi.ONLY[align] | one_scale)


def _candidates(function: Function) -> Iterable[str]:
    of_keywords = {keyword.claims for keyword in function.keywords.values()}
    needs_keyword = {keyword.claims for keyword in function.convention.keywords.values()}
    return of_keywords | (_SHAPES.keys() - needs_keyword)


def _require_keywords(function: Function, claimed: Iterable[str]) -> None:
    """Raises ValueError for a claim that could not be asked for."""
    for word in sorted(claimed):
        claims = {word, "window"} if word == "causal" else {word}
        of_word = {name for name, keyword in function.convention.keywords.items() if keyword.claims in claims}
        if of_word and word not in _SHAPES and not of_word & function.keywords.keys():
            raise ValueError(f"claims: {word!r} is asked for by {' or '.join(sorted(of_word))}, which "
                             f"{function.name} does not take; add it, or give a convention that has another name")


def _served_dtypes(function: Function) -> Tuple[str, ...]:
    """Returns the dtypes that come back as they were given; raises the last error without any."""
    served = []
    problem: Exception = AssertionError()
    for dtype in ("f64", "bf16", "f16", "f32"):
        try:
            _ask(function, dtype)
            served.append(dtype)
        except Exception as error:
            problem = error
    if not served:
        raise problem
    return tuple(served)


def _serves(function: Function, dtype: str, feature: str) -> bool:
    try:
        _ask(function, dtype, feature)
    except WrongResult:
        return True  # it takes the problem: its result is for the campaign to refuse
    except Exception:
        return False
    return True


def _differentiate_by(means: Any, function: Function, dtype: str, wanted: bool) -> None:
    """Has the function's gradients judged where a first call has some; raises its error where wanted."""
    function.differentiator = means
    for ask, harmless in ((_ask, (Exception,)), (_ask_gradients, refusals())):
        try:
            ask(function, dtype)
        except harmless:
            if wanted:
                raise
            function.differentiator = None
            return


def _ask_gradients(function: Function, dtype: str) -> None:
    (q, k, v), asked = _question(function, dtype)
    out, lse = function(q, k, v, dtype, asked)
    function.gradients((q, k, v), (out, lse), q, dtype, asked)


def _ask(function: Function, dtype: str, feature: str = "") -> Result:
    """Calls the function on a few queries and keys that ask for the feature."""
    arrays, asked = _question(function, dtype, feature)
    return function(*arrays, dtype, asked)


def _question(function: Function, dtype: str, feature: str = "") -> Any:
    """Returns q, k and v, and what is asked of them."""
    shape = {"seqlen_q": _KEYS, "heads_kv": 4, "head_dim_v": 8, **_SHAPES.get(feature, {})}
    asked: Dict[str, Any] = {"seqlen_q": shape["seqlen_q"], "seqlen_k": _KEYS, "scale": 8**-0.5,
                             **_ASKED.get(feature, {})}
    batch = 1 if "cu_seqlens_q" in asked else 2
    random = np.random.default_rng(0)

    def drawn(seqlen: int, heads: int, columns: int) -> np.ndarray:
        wide = random.standard_normal((batch, seqlen, heads, columns), np.float32)
        if dtype == "bf16":
            return (wide.view(np.uint32) >> 16).astype(np.uint16)
        return wide.astype({"f64": np.float64, "f16": np.float16}.get(dtype, np.float32))

    return ((drawn(shape["seqlen_q"], 4, 8), drawn(_KEYS, shape["heads_kv"], 8),
             drawn(_KEYS, shape["heads_kv"], shape["head_dim_v"])),
            Asked(grouped=shape["heads_kv"] != 4, align=function.convention.align, **asked))
