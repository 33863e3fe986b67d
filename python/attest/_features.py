"""Turns keywords into the words of the C library: the problem's one line and the kernel's contract."""

from __future__ import annotations

import dataclasses
import difflib
import operator
from typing import Any, Mapping, Optional, Sequence, Tuple, TypedDict, Union

import numpy as np

from attest._arrays import floats_of, integers_of, numpy_of
from attest._later import require_present

Numerics = Union[str, Mapping[str, Union[str, int, float, bool]]]
"""Describes the arithmetic of a kernel, by a preset or by fields.

"f32"              all in float32 (float64 for float64 arrays), rounded to nearest; P is not cast
"p_cast_to_input"  the same, but P is cast to the dtype of the arrays before it meets V
"tensor_core"      the same with the cast, and sums of products as tensor cores accumulate them
"autodiff"         two products with a softmax in float32 between them, differentiated automatically:
                   P, divided by its sum, and dP are cast to the dtype of the arrays, and delta is
                   the row sum of P * dP
"eager"            the same where the scores, too, are in the dtype of the arrays, as torch.matmul
                   returns them, and so are the results of scale, softcap and bias
"tf32"             operands of products rounded or cut off to tf32, sums as tensor cores do

Fields are those of attest_numerics in attest_kernel.h: {"p_cast": "bf16", "exp_ulps": 4}, or as text
"p_cast=bf16,exp_ulps=4". A preset may come first: {"preset": "tensor_core", "exp_ulps": 4}.
"""


class Features(TypedDict, total=False):
    """Lists what a problem has beside its arrays, as keywords; each may be left out."""

    causal: Union[bool, str]
    """Query i sees keys up to the aligned one: "top_left" (key i), "bottom_right" (key i + seqlen_k -
    seqlen_q), or True where both are the same."""
    window: Optional[Sequence[Optional[int]]]
    """(left, right): keys further from the aligned one are hidden; -1 or None is without limit."""
    offset_window: Optional[Sequence[Optional[int]]]
    """The same of any integers, so that (3, -1) leaves the three keys before the aligned one; None alone is without
    limit."""
    align: Optional[str]
    """Alignment of a window or ALiBi, "top_left" or "bottom_right"; needed where they differ without
    `causal`."""
    mask: Any
    """(batch, heads_q, seqlen_q, seqlen_k) booleans, True = visible, each axis that or 1 where it is the same along
    it; leading axes may be left out. Or the spelling of a mask (docs/how-to/masks.md), like "block_64x64_25_1"."""
    key_lengths: Optional[Sequence[int]]
    """(batch): only so many keys exist. Bottom-right alignment counts them in place of seqlen_k."""
    query_lengths: Optional[Sequence[int]]
    """(batch): only so many queries exist; rows past them have no key and no sink. Bottom-right alignment counts
    them in place of seqlen_q."""
    cu_seqlens_q: Optional[Sequence[int]]
    """(sequences + 1), from 0: packed sequences. Arrays are then (tokens, heads, head_dim), LSE (heads,
    tokens)."""
    cu_seqlens_k: Optional[Sequence[int]]
    """The same of keys; `cu_seqlens_q` where it is left out."""
    scale: Optional[float]
    """Factor of the scores; None is 1/sqrt(head_dim)."""
    softcap: float
    """Scores become softcap * tanh(score / softcap); 0 is none."""
    alibi: Any
    """True or "standard": slopes 2^(-8 (h + 1) / heads), or an array (heads_q) or (batch, heads_q) that
    holds these; "drawn_7": random ones, of seed 7."""
    sinks: Any
    """(heads_q) floats of float32 or narrower: a score in the softmax of each row, with no value, that
    neither scale, softcap nor ALiBi touches. LSE includes it; -inf is none."""
    bias: Any
    """Floats of the dtype of q or float32 that are added to the scores, after softcap and ALiBi: (batch,
    heads_q, seqlen_q, seqlen_k), each axis that or 1 where it is the same along it; leading axes may be
    left out. -inf: the key is not visible."""
    block_table: Any
    """(batch, pages) integers: k and v are pools of pages, (pages, page_size, heads, head_dim) or as `layout` says, and
    key j of a batch entry lies in slot j % page_size of page block_table[entry, j // page_size]. `key_lengths`, or
    `cu_seqlens_k`, say how many keys there are; what pages hold past them is not looked at."""
    layout: str
    """"bshd" (batch, seqlen, heads, head_dim), also where it is left out, or "bhsd"."""
    empty_row: str
    """Rows without a visible key hold "zero_neg_inf" (O = 0, LSE = -inf), also where it is left out,
    "zero_pos_inf", "zero_zero" or "nan"."""
    past_length: str
    """Rows past `query_lengths` are as those without a visible key, "empty_row", also where it is left out, or
    "not_written": they hold anything, and are not judged."""
    lse_base: str
    """Base of the logarithm in LSE: "e", also where it is left out, or "two"."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Holds the extents of Q, K and V. With packed sequences batch and lengths follow from the lists."""

    batch: int
    seqlen_q: int
    seqlen_k: int
    heads_q: int
    heads_kv: int
    head_dim: int
    head_dim_v: int
    dtype: str


_NAMES_ELSEWHERE = {"softmax_scale": "scale", "sm_scale": "scale", "is_causal": "causal", "attn_mask": "mask",
                    "window_size": "window", "local_window_size": "window", "alibi_slopes": "alibi",
                    "key_value_seq_lengths": "key_lengths", "s_aux": "sinks", "learnable_sink": "sinks",
                    "attn_bias": "bias", "query_seq_lengths": "query_lengths", "seqused_q": "query_lengths",
                    "page_table": "block_table", "cache_seqlens": "key_lengths", "seqused_k": "key_lengths"}


def require_known(features: Mapping[str, Any]) -> None:
    """Raises TypeError for a keyword that Features does not have."""
    require_present(features)
    for word in features:
        if word in Features.__annotations__:
            continue
        if word in ("atol", "rtol"):
            raise TypeError(f"unexpected keyword {word!r}: no tolerance is chosen here; numerics= says what the "
                            "kernel does that costs accuracy")
        near = [_NAMES_ELSEWHERE[word]] if word in _NAMES_ELSEWHERE else \
            difflib.get_close_matches(word, Features.__annotations__, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"unexpected keyword {word!r}{hint} (attest.Features lists them)")


def problem_text(sizes: Sizes, features: Mapping[str, Any]) -> str:
    """Spells the problem as core/problem.hpp has it, but for a mask given as an array, sinks and a bias."""
    fields: dict[str, Any] = {"hq": sizes.heads_q, "hkv": sizes.heads_kv, "d": sizes.head_dim,
                              "dv": sizes.head_dim_v}
    parts, pairs = [], [(sizes.seqlen_q, sizes.seqlen_k)]
    lengths = features.get("key_lengths")
    if features.get("cu_seqlens_q") is not None:
        pairs = _packed_lengths(features)
        parts.append("cu_" + "_".join(f"{q}x{k}" for q, k in pairs))
    else:
        fields = {"b": sizes.batch, "sq": sizes.seqlen_q, "sk": sizes.seqlen_k, **fields}
    if lengths is not None:
        keys = integers_of("key_lengths", lengths)
        pairs = [(sizes.seqlen_q, key) for key in keys]
        parts.append("lengths_" + "_".join(map(str, keys)))
    if features.get("query_lengths") is not None:
        queries = integers_of("query_lengths", features["query_lengths"])
        pairs = [(least, k) for least, (_, k) in zip(queries, pairs * (1 if len(pairs) > 1 else len(queries)))]
    band = _band(features, pairs)
    mask = features.get("mask")
    parts += [part for part in (band, mask if isinstance(mask, str) else None) if part]
    fields.update(mask="+".join(parts) or "none", dtype=sizes.dtype)
    if features.get("scale") is not None:
        fields["scale"] = _number("scale", features["scale"])
    if features.get("softcap"):
        fields["softcap"] = _number("softcap", features["softcap"])
    if features.get("query_lengths") is not None:
        fields["query_lengths"] = "_".join(map(str, queries))
    if has_slopes(features):
        fields["alibi"] = _slopes(features["alibi"], sizes.heads_q)
    return ",".join(f"{key}={value}" for key, value in fields.items())


def mask_of(features: Mapping[str, Any], sizes: Sizes) -> Optional[np.ndarray]:
    """Returns the mask that is given as an array, in bytes; None where there is none.

    It has two axes where it is the same for all heads and batch entries, else four.
    """
    given = features.get("mask")
    if given is None or isinstance(given, str):
        return None
    mask = numpy_of("mask", given)
    if mask.dtype.kind not in "biu":
        raise TypeError(f"mask has dtype {mask.dtype.name}; give booleans, True = visible")
    pairs = [(sizes.seqlen_q, sizes.seqlen_k)]
    if features.get("cu_seqlens_q") is not None:
        pairs = _packed_lengths(features)
    needed = tuple(max(lengths) for lengths in zip(*pairs))
    whole = (sizes.batch if features.get("cu_seqlens_q") is None else len(pairs), sizes.heads_q, *needed)
    shape = (1,) * (4 - mask.ndim) + mask.shape
    if not 2 <= mask.ndim <= 4 or any(has not in (1, need) for has, need in zip(shape, whole)):
        raise ValueError(f"mask has shape {mask.shape}; it must be {needed}, (seqlen_q, seqlen_k), the same for "
                         f"every head and batch entry, or {whole} with some of these 1")
    shared = shape[:2] == (1, 1) and shape[2:] == needed
    return np.ascontiguousarray(mask.reshape(needed if shared else shape) != 0, dtype=np.uint8)


def sinks_of(features: Mapping[str, Any], heads: int) -> Optional[np.ndarray]:
    """Returns the sinks in float32; None where there are none.

    Raises ValueError for another shape, and for values that float32 does not have.
    """
    if features.get("sinks") is None:
        return None
    given, dtype = floats_of("sinks", features["sinks"])
    if given.shape != (heads,):
        raise ValueError(f"sinks has shape {given.shape}; it must be ({heads},), one for each head of q")
    if dtype == "bf16":
        return (given.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):
        sinks = np.ascontiguousarray(given, dtype=np.float32)
    others = np.argwhere((sinks != given) & ~np.isnan(given))
    if others.size:
        head = others[0][0]
        raise ValueError(f"sinks: that of head {head} is {float(given[head])!r}, which float32 does not hold; give "
                         "them in float32, as kernels get them")
    return sinks


def bias_of(features: Mapping[str, Any], sizes: Sizes) -> Optional[Tuple[np.ndarray, str]]:
    """Returns the bias with four axes and the word of its dtype; None where there is none.

    Raises ValueError for another shape.
    """
    if features.get("bias") is None:
        return None
    given, dtype = floats_of("bias", features["bias"])
    whole = (sizes.batch, sizes.heads_q, sizes.seqlen_q, sizes.seqlen_k)
    if features.get("cu_seqlens_q") is not None:
        pairs = _packed_lengths(features)
        whole = (len(pairs), sizes.heads_q, *(max(lengths) for lengths in zip(*pairs)))
    shape = (1,) * (4 - given.ndim) + given.shape
    if given.ndim > 4 or any(has not in (1, needed) for has, needed in zip(shape, whole)):
        raise ValueError(f"bias has shape {given.shape}; it must be {whole}, (batch, heads_q, seqlen_q, seqlen_k), "
                         "with some of these 1 or the first of them left out")
    return given.reshape(shape), dtype


def contract_text(numerics: Numerics, features: Mapping[str, Any]) -> str:
    """Spells the contract as python/api/contract.hpp has it."""
    if isinstance(numerics, str):
        items = [numerics]
    elif isinstance(numerics, Mapping):
        fields = dict(numerics)
        items = [str(fields.pop("preset", "f32"))]
        items += [f"{key}={_field(key, value)}" for key, value in fields.items()]
    else:
        raise TypeError(f"numerics is {numerics!r}; give a preset like 'p_cast_to_input' or a dict of "
                        "fields like {'p_cast': 'bf16'}")
    items += [f"{key}={features[key]}" for key in ("empty_row", "past_length", "lse_base") if key in features]
    return ",".join(items)


def _field(name: str, value: Union[str, int, float, bool]) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return value if isinstance(value, str) else _number(f"numerics[{name!r}]", value)


def _number(name: str, value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}; give a number") from None
    return str(int(number)) if number.is_integer() else repr(number)


def has_slopes(features: Mapping[str, Any]) -> bool:
    alibi = features.get("alibi")
    return alibi is not None and alibi is not False


def _slopes(alibi: Any, heads: int) -> str:
    if alibi is True or isinstance(alibi, str):
        return "standard" if alibi is True else alibi
    slopes = numpy_of("alibi", alibi)
    if slopes.ndim not in (1, 2) or slopes.shape[-1] != heads or slopes.dtype.kind not in "fiu":
        raise ValueError(f"alibi has shape {slopes.shape}; give True, 'standard', 'drawn_SEED' or the slopes of "
                         f"the {heads} heads")
    standard = np.exp2(-8 * np.arange(1, heads + 1) / heads).astype(np.float32)
    others = np.argwhere(slopes.astype(np.float32) != standard)
    if others.size:
        place = tuple(others[0])
        raise ValueError(f"alibi has slopes of its own: head {place[-1]} has {float(slopes[place])}, not "
                         f"{float(standard[place[-1]])}; exact results are known for 2^(-8 (h + 1) / heads) in "
                         "float32, and 'drawn_SEED'")
    return "standard"


def _packed_lengths(features: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Returns the queries and keys of each sequence."""
    lists = {}
    for name in ("cu_seqlens_q", "cu_seqlens_k"):
        given = features.get(name)
        ends = integers_of(name, features["cu_seqlens_q"] if given is None else given)
        if len(ends) < 2 or ends[0] != 0 or sorted(ends) != ends:
            raise ValueError(f"{name} is {ends}; it begins at 0, never decreases and has one more entry "
                             "than there are sequences")
        lists[name] = [end - begin for begin, end in zip(ends, ends[1:])]
    queries, keys = lists.values()
    if len(queries) != len(keys):
        raise ValueError(f"cu_seqlens_q is of {len(queries)} sequences, cu_seqlens_k of {len(keys)}")
    return list(zip(queries, keys))


def _band(features: Mapping[str, Any], pairs: Sequence[tuple[int, int]]) -> Optional[str]:
    """Spells the window, a causal one too, of sequences with so many queries and keys each."""
    causal, align = features.get("causal", False), features.get("align")
    if isinstance(causal, str):
        if align not in (None, causal):
            raise ValueError(f"causal is {causal!r} and align {align!r}; leave align out")
        align = causal
    left, right = _widths(features)
    if causal:
        right = 0
    unbounded = left is None and right is None
    if unbounded and not has_slopes(features):
        return None
    differ = [pair for pair in pairs if pair[0] != pair[1]]
    if align is None and differ:
        raise ValueError("causal, window and alibi: {} queries and {} keys can be aligned at either end; "
                         "give causal='top_left' or 'bottom_right', or align".format(*differ[0]))
    if align not in (None, "top_left", "bottom_right"):
        raise ValueError(f"the alignment is {align!r}; it must be 'top_left' or 'bottom_right'")
    if unbounded:
        # Slopes count from the aligned key, which a window that hides nothing tells.
        if align != "bottom_right" or not differ:
            return None
        left = sum(map(sum, pairs))
    widths = "_".join("inf" if width is None else str(width) for width in (left, right))
    return ("window_" if align == "bottom_right" else "window_tl_") + widths


def _widths(features: Mapping[str, Any]) -> tuple[Optional[int], Optional[int]]:
    """Returns the widths of the window, None without limit."""
    left = right = None
    for name in ("window", "offset_window"):
        window = features.get(name)
        if window is None:
            continue
        if name == "offset_window" and (features.get("window") is not None or features.get("causal")):
            raise ValueError("offset_window is given beside window or causal; say with it alone which keys are visible")
        try:
            left, right = (None if width is None else operator.index(width) for width in window)
        except (TypeError, ValueError):
            raise TypeError(f"{name} is {window!r}; give (left, right), integers or None") from None
    if features.get("offset_window") is None:
        left, right = (None if width is None or width < 0 else width for width in (left, right))
    return left, right
