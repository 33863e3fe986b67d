"""Splits a large problem whose mask differs between batch entries or heads into problems with one mask each."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from attest._arrays import integers_of, numpy_of
from attest._call import Results
from attest._features import has_slopes, sinks_of


_MOST_PAIRS = 1 << 24
"""Pairs of a query and a key, of all heads, up to which the C library takes masks of heads."""


class Part(NamedTuple):
    """Holds some batch entries and heads of a problem, and its features there."""

    features: Dict[str, Any]
    name: str = ""  # of all of a problem
    batch: slice = slice(None)
    heads_q: slice = slice(None)
    heads_kv: slice = slice(None)
    extents: Tuple[int, int, int] = (0, 0, 0)  # of the whole: batch, heads of q, heads of k

    def of(self, name: str, array: Any) -> Any:
        """Returns the part's elements of what has that name, in the caller's layout."""
        if not self.name or array is None:
            return array
        if name == "dsinks":
            if tuple(getattr(array, "shape", ())) != self.extents[1:2]:
                raise ValueError(f"dsinks must be an array of {self.extents[1]} heads")
            return array[self.heads_q]
        axis, heads, count = self._heads(name)
        shape = tuple(getattr(array, "shape", ()))
        if len(shape) <= axis or (shape[0], shape[axis]) != (self.extents[0], count):
            raise ValueError(f"{name} has shape {shape}; it must have {self.extents[0]} batch entries and "
                             f"{count} heads")
        return array[self.batch, heads] if axis == 1 else array[self.batch, :, heads]

    def of_all(self, **arrays: Any) -> Dict[str, Any]:
        return {name: self.of(name, array) for name, array in arrays.items()}

    def empty(self, name: str, piece: np.ndarray) -> np.ndarray:
        """Returns an array of the whole, for what has that name and this piece in a part."""
        if name == "dsinks":
            return np.empty(self.extents[1])
        axis, _, count = self._heads(name)
        return np.empty([self.extents[0] if k == 0 else count if k == axis else extent
                         for k, extent in enumerate(piece.shape)])

    def _heads(self, name: str) -> Tuple[int, slice, int]:
        """Returns the axis of heads, the part's on it and their count in the whole."""
        axis = 1 if name in ("lse", "dlse") else _heads_axis(self.features)
        if name in ("k", "v", "dk", "dv"):
            return axis, self.heads_kv, self.extents[2]
        return axis, self.heads_q, self.extents[1]


def parts_of(q: Any, k: Any, features: Mapping[str, Any], gradients: bool = False) -> List[Part]:
    """Returns the parts of a problem: one where its mask is the same for all, where it is small, or makes no sense.

    Else raises ValueError for ALiBi where heads differ in their masks, and for gradients where heads with one
    head of keys, or batch entries of a problem with sinks, differ in them.
    """
    whole = [Part(dict(features))]
    mask = _with_heads(features)
    if mask is None or any(len(getattr(array, "shape", ())) != 4 for array in (q, k)):
        return whole
    axis = _heads_axis(features)
    batch, heads_q, heads_kv = q.shape[0], q.shape[axis], k.shape[axis]
    full = batch, heads_q, q.shape[3 - axis], k.shape[3 - axis]
    if math.prod(full) <= _MOST_PAIRS:
        return whole
    if features.get("bias") is not None:
        raise ValueError("mask has batch entries or heads of its own beside a bias; give it as -inf in the bias")
    fits = all(has in (1, needed) for has, needed in zip(mask.shape, full))
    if not fits or 0 in full or heads_kv == 0 or heads_q % heads_kv:
        return whole
    group = heads_q // heads_kv
    step = next(step for step in (heads_q, group, 1) if _repeats(mask, 1, step))
    if step < heads_q and has_slopes(features):
        raise ValueError("mask differs between heads, and the slopes of ALiBi are those of all heads together; give a "
                         "mask that is the same for every head")
    if gradients and step < group:
        raise ValueError("mask differs between heads that share keys, whose gradients belong to no one of "
                         "them; give k and v for every head, or a mask that is the same in each group")
    entries = [slice(None)] if _repeats(mask, 0, batch) else _slices(batch, 1)
    sinks = sinks_of(features, heads_q)
    if gradients and sinks is not None and len(entries) > 1:
        raise ValueError("mask differs between batch entries, whose sums dsinks are; call it for each of them")
    mask, parts = np.broadcast_to(mask, full), []
    for entry in entries:
        for heads in _slices(heads_q, step):
            own = {**features, "mask": mask[entry, heads][0, 0]}
            for name in ("key_lengths", "query_lengths"):
                if features.get(name) is not None:
                    own[name] = integers_of(name, features[name])[entry]
            if sinks is not None:
                own["sinks"] = sinks[heads]
            words = [f"batch entry {entry.start}"] * (entry.start is not None)
            words += [_words(heads)] * (step < heads_q)
            kv = slice(heads.start // group, -(-heads.stop // group))
            parts.append(Part(own, ", ".join(words), entry, heads, kv, (batch, heads_q, heads_kv)))
    return parts


def whole_of(parts: List[Part], made: Sequence[Results]) -> Results:
    """Returns the results of a problem, from those of its parts."""
    if len(parts) == 1:
        return made[0]
    whole = {}
    for name in (*Results._fields, "dsinks"):
        pieces = [getattr(one, name) for one in made]
        if pieces[0] is None:
            continue
        whole[name] = parts[0].empty(name, pieces[0])
        for part, piece in zip(parts, pieces):
            part.of(name, whole[name])[...] = piece
    return Results.of(**whole)


def _with_heads(features: Mapping[str, Any]) -> Optional[np.ndarray]:
    """Returns a mask that is given with batch and heads."""
    given = features.get("mask")
    if given is None or isinstance(given, str) or features.get("cu_seqlens_q") is not None:
        return None
    mask = numpy_of("mask", given)
    return mask if mask.ndim == 4 and mask.dtype.kind in "biu" else None


def _heads_axis(features: Mapping[str, Any]) -> int:
    return 1 if features.get("layout") == "bhsd" else 2


def _repeats(mask: np.ndarray, axis: int, step: int) -> bool:
    """Tells whether the mask is the same within every `step` of that axis."""
    if mask.shape[axis] == 1:
        return True
    firsts = np.repeat(mask.take(range(0, mask.shape[axis], step), axis), step, axis)
    return bool((firsts == mask).all())


def _slices(count: int, step: int) -> List[slice]:
    return [slice(first, first + step) for first in range(0, count, step)]


def _words(heads: slice) -> str:
    last = heads.stop - 1
    return f"head {last}" if heads.start == last else f"heads {heads.start} to {last}"
