"""Turns arrays from the library's order of axes to that of a function, and back."""

from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Tuple

import numpy as np

Shape = Tuple[int, ...]


class Layout(NamedTuple):
    """Turns an array of a shape in the library's order; `shape` is in the function's.

    A view where that takes strides.
    """

    shape: Callable[[Shape], Shape]
    there: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray, Shape], np.ndarray]


def _same_shape(shape: Shape) -> Shape:
    return shape


def _swapped(array: np.ndarray, *_: Shape) -> np.ndarray:
    return array.swapaxes(1, 2)


PLAIN = Layout(_same_shape, lambda array: array, lambda array, _: array)
"""Keeps any array as it is."""

ARRAYS: Dict[str, Layout] = {
    "bshd": PLAIN,
    "bhsd": Layout(lambda shape: (shape[0], shape[2], shape[1], shape[3]), _swapped, _swapped),
    "thd": Layout(lambda shape: (shape[0] * shape[1], *shape[2:]),
                  lambda array: array.reshape(array.shape[0] * array.shape[1], *array.shape[2:]),
                  lambda array, shape: array.reshape(shape)),
}
"""Layouts of (batch, seqlen, heads, head_dim), by name."""

LSE: Dict[str, Layout] = {
    "bshd": PLAIN,
    "bhsd": PLAIN,
    "thd": Layout(lambda shape: (shape[1], shape[0] * shape[2]),
                  lambda lse: lse.swapaxes(0, 1).reshape(lse.shape[1], lse.shape[0] * lse.shape[2]),
                  lambda lse, shape: lse.reshape(shape[1], shape[0], shape[2]).swapaxes(0, 1)),
}
"""Layouts of (batch, heads, seqlen), by the name of the arrays'."""
