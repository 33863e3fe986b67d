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
from attest._later import lacking
from attest._limits import Limits
from attest._pages import one_page_each

_KEYS, _COLUMNS, _HEADS, _BATCH = 6, 8, 4, 2  # of small calls, where the limits allow it
_PAGE = 16  # keys of a page are a multiple of it
_SHAPES = ("gqa", "head_dim_v", "cross_lengths")
"""Asked of every function: no keyword says it."""
_STATED = frozenset(("batch_invariant", "split_invariant", "nonfinite", "shared_kv"))
"""Held to where they are given: a call does not show that something never changes a bit."""
_ASKED: Dict[str, Callable[[_Sizes], Dict[str, Any]]] = {
    "causal": lambda _: {"window": (-1, 0)},
    "window": lambda _: {"window": (2, 1), "offset_window": (2, 1)},
    "boolean_mask": lambda of: {"mask": np.tri(of.rows, of.keys, dtype=bool)},
    "head_mask": lambda of: {"head_mask": np.arange(of.batch * of.heads * of.rows * of.keys).reshape(
        of.batch, of.heads, of.rows, of.keys) % of.keys % 3 != 1},
    "query_lengths": lambda of: {"query_lengths": np.array([of.rows // 2, of.rows][-of.batch:], np.int32)},
    "offset_window": lambda _: {"window": (-1, -1), "offset_window": (2, -1)},
    "key_lengths": lambda of: {"key_lengths": np.array([of.keys // 2, of.keys][-of.batch:], np.int32)},
    "softcap": lambda _: {"softcap": 2.0},
    "alibi": lambda of: {"alibi_slopes": np.full(of.heads, 0.5, np.float32)},
    "sinks": lambda of: {"sinks": np.linspace(-1, 1, of.heads, dtype=np.float32)},
    "bias": lambda of: {"bias": np.linspace(-1, 1, of.rows * of.keys, dtype=np.float32).reshape(1, 1, of.rows, -1),
                        "bias_dtype": "f32"},
    "any_scale": lambda _: {"scale": -0.5},
    "paged_kv": lambda of: {"block_table": np.arange(of.batch, dtype=np.int32)[::-1, None].copy()},
    "packed_sequences": lambda of: {
        "cu_seqlens_q": np.array(of.row_ends, np.int32), "seqlen_q": of.row_ends[2] - of.row_ends[1],
        "cu_seqlens_k": np.array(of.key_ends, np.int32), "seqlen_k": of.key_ends[2] - of.key_ends[1]},
}


class _Sizes:
    """Holds the extents of a small problem with a feature; raises NotImplementedError where the limits have none."""

    def __init__(self, limits: Limits, feature: str):
        self.rows, self.keys = limits.seqlen_q.nearest(_KEYS), limits.seqlen_k.nearest(_KEYS)
        self.row_ends, self.key_ends = ([0, limit.nearest(_KEYS // 3), limit.nearest(_KEYS // 3) + limit.nearest(_KEYS)]
                                        for limit in (limits.seqlen_q, limits.seqlen_k))
        self.heads = min(_HEADS, limits.num_heads_q.most or _HEADS)
        self.heads_kv = self.heads
        self.batch = min(_BATCH, limits.batch.most or _BATCH)
        self.columns = self.columns_v = limits.nearest_head_dim(_COLUMNS)
        differ = True
        if feature == "cross_lengths":
            self.rows = limits.seqlen_q.nearest(_KEYS // 2)
            self.keys = self.keys if self.keys != self.rows else limits.seqlen_k.nearest(self.rows + 1)
            differ = self.rows != self.keys
        elif feature == "head_dim_v":
            self.columns_v = limits.nearest_head_dim(self.columns + 1)
            differ = self.columns_v != self.columns
        elif feature == "gqa":
            self.heads -= self.heads % 2
            self.heads_kv = self.heads // 2
            differ = self.heads > 0
        elif feature == "packed_sequences":
            differ = self.batch > 1
            self.batch, self.rows, self.keys = 1, self.row_ends[-1], self.key_ends[-1]
        if not differ:
            raise NotImplementedError(f"the limits leave no problem with {feature}")


def refusals() -> Tuple[Type[BaseException], ...]:
    """Returns the exceptions by which a function says that it does not serve a problem.

    Triton's is one that it raises where a block needs more than the device has.
    """
    of_triton = sys.modules.get("triton.runtime.errors")
    return (NotImplementedError, ValueError, *((of_triton.OutOfResources,) if of_triton else ()))


@dataclasses.dataclass(frozen=True)
class Claims:
    """Holds words of the certificate: dtypes and features; and limits where they say too much."""

    dtypes: Tuple[str, ...]
    features: FrozenSet[str]
    only: int
    limits: Limits


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
            raise ValueError(f"dtypes: {word!r}: {lacking(word)}" if lacking(word) else
                             f"dtypes: {word!r} must be one of {', '.join(DTYPES)}")
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
            raise ValueError(f"claims: {word!r}: {lacking(word)}" if lacking(word) else
                             f"claims: {word!r} must be one of causal, {', '.join(_abi.FEATURES)}")
    one_scale = 0 if "any_scale" in features else _abi.ONLY["one_scale"]
    return Claims(served, frozenset(features), _abi.ONLY[align] | one_scale, function.limits)


def _candidates(function: Function) -> Iterable[str]:
    of_keywords = {word for keyword in function.keywords.values() for word in keyword.all_claims}
    needs_keyword = {word for keyword in function.convention.keywords.values() for word in keyword.all_claims}
    return (of_keywords | (set(_SHAPES) - needs_keyword)) - _STATED


def _require_keywords(function: Function, claimed: Iterable[str]) -> None:
    """Raises ValueError for a claim that could not be asked for."""
    for word in sorted(claimed):
        claims = {word, "window"} if word == "causal" else {word}
        of_word = {name for name, keyword in function.convention.keywords.items() if claims & set(keyword.all_claims)}
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
    of = _Sizes(function.limits, feature)
    asked: Dict[str, Any] = {"seqlen_q": of.rows, "seqlen_k": of.keys, "scale": of.columns**-0.5}
    if feature in _ASKED:
        asked.update(_ASKED[feature](of))
    random = np.random.default_rng(0)

    def drawn(seqlen: int, heads: int, columns: int) -> np.ndarray:
        wide = random.standard_normal((of.batch, seqlen, heads, columns), np.float32)
        if dtype == "bf16":
            return (wide.view(np.uint32) >> 16).astype(np.uint16)
        return wide.astype({"f64": np.float64, "f16": np.float16}.get(dtype, np.float32))

    k, v = drawn(of.keys, of.heads_kv, of.columns), drawn(of.keys, of.heads_kv, of.columns_v)
    if feature == "paged_kv":
        size = -(-of.keys // _PAGE) * _PAGE
        k, v = (one_page_each(one, asked["block_table"], size) for one in (k, v))
    return ((drawn(of.rows, of.heads, of.columns), k, v),
            Asked(grouped=of.heads_kv != of.heads, align=function.convention.align, **asked))
