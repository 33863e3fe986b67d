"""Differentiates functions of attention: by torch's autograd, jax's vjp, or a backward pass given."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from attest._function import WrongResult, first_two

Words = Dict[str, Any]
"""Keywords of a call."""
Learned = Tuple[str, ...]
"""Keywords among them whose values are differentiated by too, as sinks and a bias are."""


class Pullback(NamedTuple):
    """Holds what a call for gradients returned; `returned`, of forward, is None where that did not run."""

    returned: Any
    gradients: Any


class Autograd:
    """Has torch differentiate: the backward call runs forward again, for its graph."""

    def forward(self, fn: Callable[..., Any], arrays: Sequence[Any], words: Words, learned: Learned) -> Any:
        """Calls the function as training does: its arrays require gradients, what is learned too."""
        with importlib.import_module("torch").enable_grad():
            for array in (*arrays, *_values(words, learned)):
                array.requires_grad_()
            returned = fn(*arrays, **words)
        out = first_two(returned)[0]
        if out is not None and not getattr(out, "requires_grad", False):
            name = getattr(fn, "__name__", "fn")
            raise WrongResult(f"{name} returned out without grad_fn, though q, k and v require gradients: "
                              "it is detached, or computed by what has no backward pass; give "
                              "backward=, or gradients=False")
        return returned

    def backward(self, fn: Callable[..., Any], arrays: Sequence[Any], words: Words, dout: Any,
                 stored: Tuple[Any, Any], learned: Learned) -> Pullback:
        returned = self.forward(fn, arrays, words, learned)
        return Pullback(returned, importlib.import_module("torch").autograd.grad(
            first_two(returned)[0], (*arrays, *_values(words, learned)), dout, allow_unused=True))


class Vjp:
    """Has jax differentiate: forward and backward are both of one `jax.vjp`."""

    def forward(self, fn: Callable[..., Any], arrays: Sequence[Any], words: Words, learned: Learned) -> Any:
        return self._differentiated(fn, arrays, words, learned)[0]

    def backward(self, fn: Callable[..., Any], arrays: Sequence[Any], words: Words, dout: Any,
                 stored: Tuple[Any, Any], learned: Learned) -> Pullback:
        returned, pull_back = self._differentiated(fn, arrays, words, learned)
        return Pullback(returned, pull_back(dout))

    @staticmethod
    def _differentiated(fn: Callable[..., Any], arrays: Sequence[Any], words: Words, learned: Learned) -> Any:
        def called(q: Any, k: Any, v: Any, *values: Any) -> Any:
            return first_two(fn(q, k, v, **{**words, **dict(zip(learned, values))}))

        out, pull_back, lse = importlib.import_module("jax").vjp(called, *arrays, *_values(words, learned),
                                                                 has_aux=True)
        return (out, lse), pull_back


class Given:
    """Calls a backward pass of the user's."""

    def __init__(self, function: Callable[..., Any]):
        if not callable(function):
            raise TypeError(f"backward is a {type(function).__name__}; give a function")
        self._function = function

    def forward(self, fn: Callable[..., Any], arrays: Sequence[Any], words: Words, learned: Learned) -> Any:
        return fn(*arrays, **words)

    def backward(self, fn: Callable[..., Any], arrays: Sequence[Any], words: Words, dout: Any,
                 stored: Tuple[Any, Any], learned: Learned) -> Pullback:
        out, lse = stored
        if lse is None:  # where none is claimed it was not kept, though forward may return one
            lse = first_two(fn(*arrays, **words))[1]
        return Pullback(None, self._function(*arrays, out, lse, dout, **words))


def _values(words: Words, learned: Learned) -> Tuple[Any, ...]:
    """Returns what is learned, where there is some."""
    return tuple(words[name] for name in learned)


def differentiator(arrays: str, wanted: Optional[bool], backward: Optional[Callable[..., Any]]) -> Any:
    """Returns what may differentiate a function of such arrays; None where nothing does, or is wanted.

    Raises ValueError, TypeError for what makes no sense.
    """
    if backward is not None:
        if wanted is False:
            raise ValueError("gradients=False, and backward= is given; leave one of them out")
        return Given(backward)
    if wanted is False:
        return None
    if arrays == "numpy" and wanted:
        raise ValueError("gradients=True, but arrays of numpy do not differentiate themselves; give "
                         "backward=, or a convention with arrays of torch or jax")
    of_arrays = {"torch": Autograd, "jax": Vjp}
    return of_arrays[arrays]() if arrays in of_arrays else None
