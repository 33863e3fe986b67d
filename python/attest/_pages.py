"""Turns keys and values in pages of a pool into the same in their order, and back."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import numpy as np

from attest._arrays import floats_of, integers_of, numpy_of


def one_page_each(keys: np.ndarray, block_table: np.ndarray, page_size: int) -> np.ndarray:
    """Returns a pool (pages, page_size, ...) whose page block_table[b, 0] holds the keys of batch entry b.

    Slots without a key hold NaN; a bf16 element is 16 bits.
    """
    nothing = 0x7fc0 if keys.dtype.kind == "u" else np.nan
    pool = np.full((len(keys), page_size, *keys.shape[2:]), nothing, keys.dtype)
    pool[block_table[:, 0], :keys.shape[1]] = keys
    return pool


def gathered(k: Any, v: Any, features: Mapping[str, Any]) -> Tuple[Any, Any, Dict[str, Any]]:
    """Returns k, v and the features of the same problem without pages; as they are where it has none.

    Slots past a length, which hold anything, are zeros. Raises ValueError where the table names a page that the
    pools lack, or has too few entries for the keys.
    """
    others = dict(features)
    given = others.pop("block_table", None)
    if given is None:
        return k, v, others
    table = numpy_of("block_table", given)
    if table.ndim != 2 or table.dtype.kind not in "iu":
        raise ValueError(f"block_table has shape {table.shape} and dtype {table.dtype.name}; it must be (batch, pages) "
                         "integers")
    packed = others.get("cu_seqlens_q") is not None
    lengths = _lengths(others, packed, len(table))
    heads_first = not packed and others.get("layout") == "bhsd"
    return (*(_in_order(name, pool, table, lengths, packed, heads_first) for name, pool in (("k", k), ("v", v))),
            others)


def _lengths(features: Mapping[str, Any], packed: bool, entries: int) -> np.ndarray:
    if packed:
        name = "cu_seqlens_q" if features.get("cu_seqlens_k") is None else "cu_seqlens_k"
        lengths = np.diff(np.array(integers_of(name, features[name]), np.int64))
    elif features.get("key_lengths") is None:
        raise ValueError("block_table is given without key_lengths; they say how many keys lie in the pages")
    else:
        lengths = np.array(integers_of("key_lengths", features["key_lengths"]), np.int64)
    if len(lengths) != entries:
        raise ValueError(f"block_table has {entries} rows and there are lengths of {len(lengths)} batch entries; there "
                         "must be a row for each")
    return lengths


def _in_order(name: str, given: Any, table: np.ndarray, lengths: np.ndarray, packed: bool,
              heads_first: bool) -> np.ndarray:
    """Returns the keys of one pool, in the layout that k and v have without pages."""
    pool, dtype = floats_of(name, given)
    if pool.ndim != 4:
        axes = "(pages, heads, page_size, head_dim)" if heads_first else "(pages, page_size, heads, head_dim)"
        raise ValueError(f"{name} has shape {pool.shape}; it must be {axes}, for block_table is given")
    pool = pool.swapaxes(1, 2) if heads_first else pool
    size, longest = pool.shape[1], int(lengths.max(initial=0))
    if lengths.min(initial=0) < 0 or longest > table.shape[1] * size:
        raise ValueError(f"lengths are from {lengths.min(initial=0)} to {longest}; pages of {size} keys and "
                         f"{table.shape[1]} entries of block_table hold up to {table.shape[1] * size}")
    entries = []
    for row, length in zip(table, lengths):
        pages = row[:-(-int(length) // size)] if size else row[:0]
        if pages.size and not (0 <= pages.min() and pages.max() < len(pool)):
            raise ValueError(f"block_table names pages {pages.min()} to {pages.max()}; {name} has {len(pool)}")
        entries.append(pool[pages].reshape(-1, *pool.shape[2:])[:length])
    if packed:
        keys = np.concatenate(entries) if entries else pool.reshape(-1, *pool.shape[2:])[:0]
    else:
        keys = np.zeros((len(entries), longest, *pool.shape[2:]), pool.dtype)
        for entry, of in zip(keys, entries):
            entry[:len(of)] = of
        keys = keys.swapaxes(1, 2) if heads_first else keys
    return keys.view("V2") if dtype == "bf16" else keys
