"""Names the ways in which kernels in Python are called; each is one row of a table."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from attest._layouts import ARRAYS


Ends = Tuple[Optional[int], Optional[int]]


@dataclasses.dataclass(frozen=True)
class Asked:
    """Holds what a call asks for beside its arrays; a convention turns it into keywords."""

    seqlen_q: int
    seqlen_k: int
    scale: float
    grouped: bool = False
    """Heads of q share heads of k and v."""
    window: Tuple[int, int] = (-1, -1)
    """(left, right) of the aligned key, -1 without limit; causal alone is (-1, 0), but (-1, -1) for a
    keyword that claims windows where another claims causal masks, or a window as `offset_window` is given."""
    offset_window: Optional[Ends] = None
    """The same with None for no limit, so that widths may be negative; None without a window, and for a causal mask
    where another keyword claims these."""
    align: str = "bottom_right"
    """Alignment of the window and of ALiBi, "top_left" or "bottom_right"."""
    mask: Optional[np.ndarray] = None
    """(seqlen_q, seqlen_k) booleans, True = visible."""
    head_mask: Optional[np.ndarray] = None
    """(batch, heads_q, seqlen_q, seqlen_k) booleans, 1 along the axes where it is the same."""
    query_lengths: Optional[np.ndarray] = None
    """(batch) integers: rows past them see no key, and bottom-right alignment counts them."""
    key_lengths: Optional[np.ndarray] = None
    """(batch) integers."""
    softcap: float = 0.0
    alibi_slopes: Optional[np.ndarray] = None
    """(heads_q) floats."""
    sinks: Optional[np.ndarray] = None
    """(heads_q) floats, float64 for float64 arrays: a score in each row's softmax that neither scale,
    softcap nor ALiBi touches, of no value; -inf is none."""
    bias: Optional[np.ndarray] = None
    """(batch, heads_q, seqlen_q, seqlen_k), 1 along the axes where it is the same: floats that are added to the
    scores after softcap and ALiBi; -inf hides a key. bf16 as 16 bits."""
    bias_dtype: str = ""
    """Its dtype: that of the arrays, or "f32"."""
    cu_seqlens_q: Optional[np.ndarray] = None
    """(sequences + 1) integers, of packed sequences; `seqlen_q` is then the longest."""
    cu_seqlens_k: Optional[np.ndarray] = None
    num_splits: int = 0
    """Parts in which the keys of a row may be worked through, a hint that changes no bit; 0 is the
    function's own choice, and the keyword is left out."""
    block_table: Optional[np.ndarray] = None
    """(batch, pages) integers, the pages of each batch entry's keys in their order: k and v are then pools (pages,
    page_size, heads, head_dim), with NaN where no key lies."""

    @property
    def lengths(self) -> Optional[np.ndarray]:
        """(batch) integers: the keys of each batch entry where they do not fill k: fewer, or in pages."""
        if self.key_lengths is not None or self.block_table is None or self.cu_seqlens_k is not None:
            return self.key_lengths
        return np.full(len(self.block_table), self.seqlen_k, np.int32)

    @property
    def causal(self) -> bool:
        return self.window[1] == 0

    @property
    def visible(self) -> Optional[np.ndarray]:
        """Booleans of both masks and the window together; None without a mask.

        (seqlen_q, seqlen_k), or (batch, heads_q, seqlen_q, seqlen_k) with a mask of heads, 1 where it is the same.
        """
        masks = self.masks
        return None if masks is None else masks & self._in_window

    @property
    def masks(self) -> Optional[np.ndarray]:
        """The same without the window."""
        if self.head_mask is None or self.mask is None:
            return self.mask if self.head_mask is None else self.head_mask
        return self.mask & self.head_mask

    @property
    def additive(self) -> Optional[np.ndarray]:
        """The bias with -inf where the window hides a key; None without a bias."""
        if self.bias is None or (self.window == (-1, -1) and self.offset_window is None):
            return self.bias
        hidden = np.uint16(0xff80) if self.bias_dtype == "bf16" else self.bias.dtype.type(-np.inf)
        return np.where(self._in_window, self.bias, hidden)

    @property
    def _in_window(self) -> np.ndarray:
        shift = self.seqlen_k - self.seqlen_q if self.align == "bottom_right" else 0
        left, right = (None if width < 0 else width for width in self.window)
        if self.offset_window is not None:
            left, right = self.offset_window
        beyond = np.arange(self.seqlen_k) - np.arange(self.seqlen_q)[:, None] - shift
        return (left is None or beyond >= -left) & (right is None or beyond <= right) & np.ones_like(beyond, bool)


class Keyword(NamedTuple):
    """Says what a function that takes the keyword can be asked, and what it is then given.

    Arrays that `value` returns arrive as the function's own kind of array. `also` lists further claims that the
    same keyword tells.
    """

    claims: str
    value: Callable[[Asked], Any]
    also: Tuple[str, ...] = ()

    @property
    def all_claims(self) -> Tuple[str, ...]:
        return (self.claims, *self.also)


@dataclasses.dataclass(frozen=True)
class Convention:
    """Describes how functions are called: fn(q, k, v, **keywords) returns out or (out, lse).

    `arrays`    "numpy", "torch" or "jax"; None: what the function's own module uses
    `layout`    "bshd" (batch, seqlen, heads, head_dim), "bhsd", or "thd" (tokens, heads, head_dim) of
                packed sequences: lse is then (heads, tokens), a batch is sequences of equal lengths
    `align`     alignment of causal masks and windows, "top_left" or "bottom_right"
    `keywords`  by name; those that the function's signature does not have are left out, with what
                they claim
    `extras`    those of the keywords that many functions of the convention lack: `**keywords` alone
                does not take them
    """

    arrays: Optional[str]
    layout: str
    align: str
    keywords: Mapping[str, Keyword]
    extras: FrozenSet[str] = frozenset()

    def __post_init__(self) -> None:
        if self.layout not in ARRAYS:
            raise ValueError(f"layout is {self.layout!r}; it must be one of {', '.join(ARRAYS)}")
        if self.arrays not in (None, "numpy", "torch", "jax"):
            raise ValueError(f"arrays is {self.arrays!r}; it must be numpy, torch, jax or None")


_PLAIN: Dict[str, Keyword] = {
    "causal": Keyword("causal", lambda asked: asked.causal),
    "scale": Keyword("any_scale", lambda asked: asked.scale),
    "window": Keyword("window", lambda asked: asked.window),
    "offset_window": Keyword("offset_window", lambda asked: asked.offset_window, ("window",)),
    "head_mask": Keyword("head_mask", lambda asked: asked.head_mask),
    "query_lengths": Keyword("query_lengths", lambda asked: asked.query_lengths),
    "mask": Keyword("boolean_mask", lambda asked: asked.mask),
    "key_lengths": Keyword("key_lengths", lambda asked: asked.lengths),
    "block_table": Keyword("paged_kv", lambda asked: asked.block_table),
    "softcap": Keyword("softcap", lambda asked: asked.softcap),
    "alibi_slopes": Keyword("alibi", lambda asked: asked.alibi_slopes),
    "sinks": Keyword("sinks", lambda asked: asked.sinks),
    "bias": Keyword("bias", lambda asked: asked.bias),
    "attn_bias": Keyword("bias", lambda asked: asked.bias),
    "num_splits": Keyword("split_invariant", lambda asked: asked.num_splits),
}
_NAMED = frozenset(("sinks", "bias", "attn_bias", "block_table", "num_splits", "offset_window", "head_mask",
                    "query_lengths"))

_FLASH: Dict[str, Keyword] = {
    "causal": Keyword("causal", lambda asked: asked.causal),
    "softmax_scale": Keyword("any_scale", lambda asked: asked.scale),
    "window_size": Keyword("window", lambda asked: asked.window),
    "softcap": Keyword("softcap", lambda asked: asked.softcap),
    "alibi_slopes": Keyword("alibi", lambda asked: asked.alibi_slopes),
    "s_aux": Keyword("sinks", lambda asked: asked.sinks),  # vLLM's FlashAttention, transformers
    "learnable_sink": Keyword("sinks", lambda asked: asked.sinks),  # flash_attn.cute
    "num_splits": Keyword("split_invariant", lambda asked: asked.num_splits),
}
_EXTRAS = frozenset(("s_aux", "learnable_sink", "num_splits"))
_PAGES: Dict[str, Keyword] = {
    "block_table": Keyword("paged_kv", lambda asked: asked.block_table),
    "page_table": Keyword("paged_kv", lambda asked: asked.block_table),  # FlashAttention-3
}



def _with_four_axes(mask: Optional[np.ndarray]) -> Optional[np.ndarray]:
    return None if mask is None else mask.reshape((1,) * (4 - mask.ndim) + mask.shape)


CONVENTIONS: Dict[str, Convention] = {
    "plain": Convention(None, "bshd", "bottom_right", _PLAIN, _NAMED),
    "numpy": Convention("numpy", "bshd", "bottom_right", _PLAIN, _NAMED),
    "sdpa": Convention("torch", "bhsd", "top_left", {
        "is_causal": Keyword("causal", lambda asked: asked.causal and asked.masks is None),
        "attn_mask": Keyword("boolean_mask", lambda asked: asked.visible, ("head_mask",)),
        "scale": Keyword("any_scale", lambda asked: asked.scale),
        "enable_gqa": Keyword("gqa", lambda asked: asked.grouped),
    }),
    # The additive mask of SDPA, floats that take the causal mask's place too.
    "sdpa_bias": Convention("torch", "bhsd", "top_left", {
        "is_causal": Keyword("causal", lambda asked: asked.causal and asked.bias is None),
        "attn_mask": Keyword("bias", lambda asked: asked.additive),
        "scale": Keyword("any_scale", lambda asked: asked.scale),
        "enable_gqa": Keyword("gqa", lambda asked: asked.grouped),
    }),
    "flash_attn_func": Convention("torch", "bshd", "bottom_right", _FLASH, _EXTRAS),
    "flash_attn_varlen_func": Convention("torch", "thd", "bottom_right", {
        "cu_seqlens_q": Keyword("packed_sequences", lambda asked: asked.cu_seqlens_q),
        "cu_seqlens_k": Keyword("packed_sequences", lambda asked: asked.cu_seqlens_k),
        "max_seqlen_q": Keyword("packed_sequences", lambda asked: asked.seqlen_q),
        "max_seqlen_k": Keyword("packed_sequences", lambda asked: asked.seqlen_k),
        "seqused_q": Keyword("query_lengths", lambda asked: asked.query_lengths),  # FlashAttention-3
        **_FLASH, **_PAGES,
    }, _EXTRAS | _PAGES.keys() | {"seqused_q"}),
    "flash_attn_with_kvcache": Convention("torch", "bshd", "bottom_right", {
        "cache_seqlens": Keyword("key_lengths", lambda asked: asked.lengths),
        **_FLASH, **_PAGES,
    }, _EXTRAS | _PAGES.keys()),
    "jax": Convention("jax", "bshd", "top_left", {
        "is_causal": Keyword("causal", lambda asked: asked.causal),
        "scale": Keyword("any_scale", lambda asked: asked.scale),
        "bias": Keyword("bias", lambda asked: asked.bias),
        "mask": Keyword("boolean_mask", lambda asked: _with_four_axes(asked.masks), ("head_mask",)),
        "local_window_size": Keyword("window", lambda asked: tuple(
            width if width >= 0 else asked.seqlen_q + asked.seqlen_k for width in asked.window)),
        "key_value_seq_lengths": Keyword("key_lengths", lambda asked: asked.key_lengths),
        "query_seq_lengths": Keyword("query_lengths", lambda asked: asked.query_lengths),
    }, frozenset(("bias", "query_seq_lengths"))),
}
"""The conventions that `like=` knows by name; `like=` also takes a Convention of one's own."""


def convention(like: Union[str, Convention, None], fn: Callable[..., Any]) -> Convention:
    """Returns the convention of that name; for None the one whose keywords the function names, every one.

    Extras need not be named. "plain" where there is none. Raises ValueError for a name that there is not.
    """
    if isinstance(like, Convention):
        return like
    if like is None:
        named = set(parameters_of(fn) or ())
        return max((one for one in CONVENTIONS.values() if one.keywords.keys() - one.extras <= named),
                   key=lambda one: len(one.keywords.keys() - one.extras), default=CONVENTIONS["plain"])
    if like in CONVENTIONS:
        return CONVENTIONS[like]
    raise ValueError(f"like is {like!r}; it must be one of {', '.join(CONVENTIONS)}, or an "
                     "attest.Convention")


def parameters_of(fn: Callable[..., Any]) -> Optional[Mapping[str, inspect.Parameter]]:
    """Returns the parameters of a function by name; None where it does not tell."""
    try:
        return inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return None
