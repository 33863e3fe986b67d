"""Mirrors the structs of attest_kernel.h that a kernel is made of, for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Tuple

import numpy as np

from attest._dtypes import DTYPES
from attest._library import Tensor

VERSION = 2
OK, UNSUPPORTED, FAILED = range(3)
CPU, FORWARD, BACKWARD = 1, 1, 2
TOP_LEFT = 0  # of attest_align
FEATURES = {  # that a convention has a way to ask for
    "causal_top_left": 1 << 0, "causal_bottom_right": 1 << 1, "window": 1 << 2, "key_lengths": 1 << 3,
    "packed_sequences": 1 << 4, "boolean_mask": 1 << 5, "gqa": 1 << 6, "head_dim_v": 1 << 7,
    "softcap": 1 << 8, "alibi": 1 << 9, "any_scale": 1 << 10, "any_strides": 1 << 11,
    "lse": 1 << 12, "cross_lengths": 1 << 14, "empty_rows": 1 << 15, "sinks": 1 << 21, "paged_kv": 1 << 22,
    "bias": 1 << 23, "head_mask": 1 << 24, "query_lengths": 1 << 25, "offset_window": 1 << 26, "shared_kv": 1 << 27, "batch_invariant": 1 << 28, "split_invariant": 1 << 29,
    "nonfinite": 1 << 30}
ONLY = {"top_left": 2, "bottom_right": 4, "one_scale": 8}  # of attest_limits

_NUMPY = {dtype.dlpack: dtype.numpy for dtype in DTYPES.values()}


class HeadMask(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("visible", c_void_p), ("strides", c_int64 * 4)]


class WindowEnds(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("left_unbounded", c_int32), ("right_unbounded", c_int32)]


class Mask(ctypes.Structure):
    _fields_ = [("window_left", c_int64), ("window_right", c_int64), ("align", c_int),
                ("key_lengths", c_void_p), ("cu_seqlens_q", c_void_p), ("cu_seqlens_k", c_void_p),
                ("boolean", c_void_p), ("sparse", c_void_p * 3), ("per_head", POINTER(HeadMask)),
                ("query_lengths", c_void_p), ("window_ends", POINTER(WindowEnds)), ("reserved", c_void_p * 2)]


class PagedKv(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("page_size", c_int64), ("pages", c_int64), ("max_pages", c_int64),
                ("block_table", c_void_p)]


class Problem(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t),
                *((name, c_int64) for name in ("batch", "num_heads_q", "num_heads_kv", "seqlen_q",
                                               "seqlen_k", "head_dim_qk", "head_dim_v")),
                ("dtype", c_int), ("softmax_scale", c_double), ("softcap", c_double),
                ("alibi_slopes", c_void_p), ("mask", Mask), ("num_threads", c_int32),
                ("sinks", c_void_p), ("paged_kv", POINTER(PagedKv)), ("num_splits", c_int64)]


class Limits(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("only", c_uint32), ("softmax_scale", c_double),
                ("seqlen_q", c_int64 * 3), ("seqlen_k", c_int64 * 3), ("head_dim", c_int64 * 3),
                ("head_dims", c_int64 * 8), ("most_heads_q", c_int64), ("most_batch", c_int64)]


def limits(only: int, sizes: Any) -> Limits:
    """Returns the struct of what a function serves, of sizes in a Limits of _limits.py."""
    held = Limits(struct_size=ctypes.sizeof(Limits), only=only, most_heads_q=sizes.num_heads_q.most,
                  most_batch=sizes.batch.most)
    for name in ("seqlen_q", "seqlen_k", "head_dim"):
        of = getattr(sizes, name)
        getattr(held, name)[:] = of.least, of.most, of.multiple
    held.head_dims[:len(sizes.head_dims)] = sizes.head_dims
    return held


class Numerics(ctypes.Structure):
    """Holds a size alone: the contract's text says the rest."""

    _fields_ = [("struct_size", c_size_t), ("fields", c_int64 * 20)]


class Description(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("summary", c_char_p),
                ("device", c_int), ("directions", c_uint32), ("dtypes", c_uint32),
                ("features", c_uint32), ("max_head_dim", c_int64), ("head_dim_multiple", c_int64),
                ("empty_row", c_int), ("numerics", Numerics), ("schedule", c_char_p),
                ("fast_memory_bytes", c_int64), ("schedule_backward", c_char_p),
                ("limits", POINTER(Limits)), ("may_change", c_uint32), ("reserved_bits", c_uint32),
                ("past_length", c_int), ("more_reserved_bits", c_uint32), ("reserved", c_int64 * 4)]


class ForwardArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("problem", POINTER(Problem)),
                *((name, POINTER(Tensor)) for name in ("Q", "K", "V", "O", "LSE")),
                ("workspace", c_void_p), ("workspace_bytes", c_size_t), ("stream", c_void_p),
                ("message", c_void_p), ("message_bytes", c_size_t), ("bias", POINTER(Tensor))]


class BackwardArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("problem", POINTER(Problem)),
                *((name, POINTER(Tensor)) for name in ("Q", "K", "V", "O", "LSE", "dO", "dLSE", "dQ", "dK",
                                                       "dV")), *ForwardArgs._fields_[-6:-1],
                *((name, POINTER(Tensor)) for name in ("dSinks", "bias", "dBias"))]


Forward = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(ForwardArgs))
Backward = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(BackwardArgs))


class Kernel(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("abi_version", c_uint32), ("description", Description),
                ("self", c_void_p), ("workspace_bytes", c_void_p), ("forward", Forward),
                ("backward", Backward), ("loss_gradient", c_void_p)]


class _Memory:
    """Offers memory to numpy, any strides included, and keeps nothing alive."""

    def __init__(self, address: int, shape: Tuple[int, ...], kind: str, strides: Any = None):
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape,
                                    "typestr": kind, "strides": strides}


def memory(address: int, shape: Tuple[int, ...], kind: str) -> np.ndarray:
    """Views packed memory."""
    return np.asarray(_Memory(address, shape, kind))


def head_mask(mask: HeadMask, shape: Tuple[int, ...]) -> np.ndarray:
    """Views a mask of heads of this shape, with extent 1 along the axes of stride 0."""
    strides = tuple(mask.strides)
    extents = tuple(extent if stride else min(extent, 1) for extent, stride in zip(shape, strides))
    if 0 in extents:
        return np.empty(extents, "|b1")
    return np.asarray(_Memory(mask.visible, extents, "|b1", strides))


def broadcast(tensor: Tensor) -> Tuple[np.ndarray, str]:
    """Views a tensor with extent 1 along the axes of stride 0; returns its dtype's word too."""
    array = view(tensor)
    word = next(word for word, dtype in DTYPES.items() if dtype.dlpack == (tensor.dtype_code, tensor.dtype_bits))
    repeats = (stride == 0 for stride in tensor.strides[:tensor.ndim])
    return array[tuple(slice(0, 1) if repeated else slice(None) for repeated in repeats)], word


def view(tensor: Tensor) -> np.ndarray:
    """Views a tensor of a call without a copy; a bf16 element is seen as 16 bits."""
    kind = _NUMPY[tensor.dtype_code, tensor.dtype_bits]
    shape, size = tuple(tensor.shape[:tensor.ndim]), int(kind[2:])
    if 0 in shape:
        return np.empty(shape, kind)
    strides = tuple(stride * size for stride in tensor.strides[:tensor.ndim])
    return np.asarray(_Memory(tensor.data + tensor.byte_offset, shape, kind, strides))
