"""Holds results of a kernel against the exact ones; the C library alone judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Tuple

from attest import _library
from attest._call import Call, Results
from attest._features import Features, Numerics
from attest._pages import gathered
from attest._parts import Part, parts_of, whole_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Bounds(NamedTuple):
    """Holds the largest errors of each element.

    `proved`: every kernel that keeps the contract is within. `probable`: exceeded with probability
    below 1e-12 where roundings are independent; `assert_close` refuses what is beyond it.
    """

    proved: Results
    probable: Results


def assert_close(out: Any, q: Any, k: Any, v: Any, *, lse: Any = None, numerics: Numerics = "f32",
                 **features: Unpack[Features]) -> None:
    """Asserts that `out`, and `lse` where it is given, lie within their bounds of the exact result.

    Shapes:  q, out (batch, seqlen_q, heads_q, head_dim), k, v (batch, seqlen_k, heads_kv, head_dim)
             or as `layout` says; head_dim of v and out may be another, heads_q is a multiple of
             heads_kv; lse (batch, heads_q, seqlen_q). Packed sequences: see `Features`.
    Dtypes:  q, k, v, out one of float64, float32, float16, bfloat16; lse float32 or float64. Arrays of
             numpy, torch or jax, of any strides; those of a device are copied to the host.
    Raises:  AssertionError with the worst element, its error and bound, the term that dominates the
             bound, known mistakes whose result it is, and presets under which it would pass.
             NothingProved, an AssertionError, where these inputs cannot tell right from wrong.
             ValueError, TypeError where the call makes no sense: shapes, dtypes, NaN in inputs.
    Cost:    a few float64 references on all threads, and some fifty where it is refused. Sequences of
             more than 2^22 pairs of a query and a key are judged by a sample of their rows. A
             problem that needs more memory than the machine has is a ValueError.
    """
    __tracebackhide__ = True
    _judge(q, k, v, numerics, features, out=out, lse=lse)


def assert_grads_close(grads: Tuple[Any, Any, Any], q: Any, k: Any, v: Any, dout: Any, *, out: Any,
                       lse: Any = None, dlse: Any = None, dsinks: Any = None, dbias: Any = None,
                       numerics: Numerics = "f32", **features: Unpack[Features]) -> None:
    """Asserts that gradients lie within their bounds of the exact ones: (dq, dk, dv), dsinks with sinks, dbias with a bias.

    They are those of sum(dout * out), plus sum(dlse * lse) where dlse is given. The bounds start from
    what the kernel's forward pass stored, so `out` is needed, and judged as well; so is `lse` where it
    is given. Else they hold for every lse within forward's bound, and are wider.
    Shapes:  dq as q, dk as k, dv as v, dout as out, dlse as lse, dsinks (heads_q) of float32 or float64;
             dbias as bias, summed over the axes that it lacks;
             the others, dtypes, errors and cost as `assert_close`.
    """
    __tracebackhide__ = True
    try:
        dq, dk, dv = grads
    except (TypeError, ValueError):
        raise TypeError("grads must be the three arrays (dq, dk, dv)") from None
    for name, gradient in (("dq", dq), ("dk", dk), ("dv", dv)):
        if gradient is None:
            raise TypeError(f"{name} is None; give an array (torch leaves grad None where an input lacks "
                            "requires_grad)")
    if dout is None:
        raise TypeError("dout is None; give the gradient of out")
    for name, gradient in (("sinks", dsinks), ("bias", dbias)):
        if (gradient is None) != (features.get(name) is None):
            raise TypeError(f"d{name} is None; give the gradient of {name}" if gradient is None else
                            f"d{name} is given without {name}; give both")
    _judge(q, k, v, numerics, features, dout=dout, dlse=dlse, out=out, lse=lse, dq=dq, dk=dk, dv=dv, dsinks=dsinks,
           dbias=dbias)


def reference(q: Any, k: Any, v: Any, *, dout: Any = None, dlse: Any = None,
              **features: Unpack[Features]) -> Results:
    """Returns the exact results in float64: out and lse, and dq, dk, dv where `dout` is given.

    With `sinks` their gradient is `dsinks` of the results, with `bias` `dbias`.

    Shapes, dtypes, errors as `assert_close`.
    Cost:    4 (forward) or 12 (with gradients) floating-point operations in float64 for every query,
             visible key and head dimension, on all threads.
    """
    k, v, features = _in_order(k, v, features, dout)
    parts, made = parts_of(q, k, features, dout is not None), []
    for part in parts:
        call = _call(part, q, k, v, "f32")
        struct, arrays = call.to_write(dout is not None)
        _library.write_reference(call.asking(**part.of_all(dout=dout, dlse=dlse)), struct)
        made.append(arrays)
    return whole_of(parts, made)


def bounds(q: Any, k: Any, v: Any, *, dout: Any = None, out: Any = None, lse: Any = None,
           dlse: Any = None, numerics: Numerics = "f32", **features: Unpack[Features]) -> Bounds:
    """Returns the bounds of each element of out and lse, and of the gradients where `dout` is given.

    Bounds of gradients start from what the kernel's forward pass stored: `out` is needed with `dout`,
    `lse` narrows them. Shapes, dtypes, errors as `assert_close`.
    Cost:    a few references; of gradients, memory for 24 float64 matrices (seqlen_q, seqlen_k).
    """
    stored = {} if out is None else {"out": out, "lse": lse}
    k, v, features = _in_order(k, v, features, dout)
    parts, made = parts_of(q, k, features, dout is not None), []
    for part in parts:
        call = _call(part, q, k, v, numerics)
        structs, arrays = zip(*(call.to_write(dout is not None) for _ in range(2)))
        _library.write_bounds(call.asking(**part.of_all(dout=dout, dlse=dlse, **stored)), *structs)
        made.append(arrays)
    return Bounds(*(whole_of(parts, kind) for kind in zip(*made)))


def _in_order(k: Any, v: Any, features: Mapping[str, Any], dout: Any) -> Tuple[Any, Any, Any]:
    """Returns k and v as they are without pages, and the other features."""
    if dout is not None and features.get("block_table") is not None:
        raise ValueError("block_table: gradients of k and v in pages are not judged; leave dout out, or give k and v in "
                         "their order")
    return gathered(k, v, features)


def _call(part: Part, q: Any, k: Any, v: Any, numerics: Numerics) -> Call:
    return Call(*part.of_all(q=q, k=k, v=v).values(), numerics, part.features)


def _judge(q: Any, k: Any, v: Any, numerics: Numerics, features: Mapping[str, Any], **given: Any) -> None:
    """Judges each part of a problem; raises NothingProved where that is so of all."""
    __tracebackhide__ = True
    unproved = []
    k, v, features = _in_order(k, v, features, given.get("dout"))
    parts = parts_of(q, k, features, "dout" in given)
    for part in parts:
        try:
            _library.judge(_call(part, q, k, v, numerics).asking(**part.of_all(**given)))
        except _library.NothingProved as error:
            unproved.append(error)
        except (AssertionError, ValueError) as error:
            if not part.name:
                raise
            raise type(error)(f"{error}\nindices count from {part.name}, which has a mask of its own") from None
    if len(unproved) == len(parts):
        raise unproved[0]
