"""Reads the words for the sizes that a function serves: "seqlen_q%128", "seqlen_k<=4096", "head_dim=64|128", "batch<=4".

They are those of the certificate. `docs/how-to/python.md` lists them.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Dict, Iterable, List, Optional, Tuple

_NAMES = ("seqlen_q", "seqlen_k", "head_dim", "num_heads_q", "batch")
_WORD = re.compile(r"(\w+)(>=|<=|%|=)(\d+(?:\|\d+)*)")
_MOST = (1 << 31) - 1
_MOST_DIMS = 8


@dataclasses.dataclass
class Extents:
    """Holds the least and the largest extent that is served, and what it must be a multiple of; 0: any."""

    least: int = 0
    most: int = 0
    multiple: int = 0

    def nearest(self, wanted: int) -> int:
        """Returns the least served extent from `wanted` on, else the largest."""
        multiple = max(self.multiple, 1)
        up = -(-max(wanted, self.least, 1) // multiple) * multiple
        return up if not self.most or up <= self.most else self.most // multiple * multiple


@dataclasses.dataclass
class Limits:
    """Holds the sizes that a function serves."""

    seqlen_q: Extents = dataclasses.field(default_factory=Extents)
    seqlen_k: Extents = dataclasses.field(default_factory=Extents)
    head_dim: Extents = dataclasses.field(default_factory=Extents)
    num_heads_q: Extents = dataclasses.field(default_factory=Extents)
    batch: Extents = dataclasses.field(default_factory=Extents)
    head_dims: Tuple[int, ...] = ()

    def nearest_head_dim(self, wanted: int) -> int:
        """Returns the least served head dimension from `wanted` on, else the largest."""
        if not self.head_dims:
            return self.head_dim.nearest(wanted)
        return min((one for one in self.head_dims if one >= wanted), default=max(self.head_dims))


def limits_of(words: Optional[Iterable[str]]) -> Limits:
    """Returns what the words say. Raises ValueError for one that makes no sense."""
    limits = Limits()
    for word in words or ():
        found = _WORD.fullmatch(word)
        if not found or found[1] not in _NAMES:
            raise ValueError(f"limits: {word!r} is none; write {', '.join(_NAMES)} with >=, <=, % or =, as in "
                             "'seqlen_q%128' or 'head_dim=64|128'")
        name, sign, numbers = found[1], found[2], [int(one) for one in found[3].split("|")]
        if not all(0 < one <= _MOST for one in numbers):
            raise ValueError(f"limits: {word!r} has a number that is not from 1 to {_MOST}")
        if name == "head_dim" and sign == "=":
            limits.head_dims = _dims(word, numbers)
        elif len(numbers) > 1:
            raise ValueError(f"limits: {word!r} has several numbers; head_dim= alone takes them")
        elif name in ("num_heads_q", "batch") and sign != "<=":
            raise ValueError(f"limits: {word!r} is none; {name} has a largest value alone, as in '{name}<={numbers[0]}'")
        else:
            _set(getattr(limits, name), sign, numbers[0])
    for name in _NAMES:
        extents = getattr(limits, name)
        if extents.nearest(1) < max(extents.least, 1):
            raise ValueError(f"limits leave no {name}: it is from {max(extents.least, 1)} to {extents.most} in multiples of "
                             f"{max(extents.multiple, 1)}; make the largest larger")
    return limits


def _dims(word: str, numbers: List[int]) -> Tuple[int, ...]:
    if len(numbers) > _MOST_DIMS:
        raise ValueError(f"limits: {word!r} has more than {_MOST_DIMS} head dimensions")
    return tuple(numbers)


def _set(extents: Extents, sign: str, number: int) -> None:
    fields: Dict[str, Tuple[str, ...]] = {">=": ("least",), "<=": ("most",), "%": ("multiple",), "=": ("least", "most")}
    for field in fields[sign]:
        setattr(extents, field, number)
