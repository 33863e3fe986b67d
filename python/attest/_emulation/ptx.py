"""Executes kernels of PTX on the host: attest_ptx_load and attest_ptx_launch of attest_api.h."""

from __future__ import annotations

import ctypes
import json
import weakref
from typing import Any, Dict, List, NamedTuple, Sequence

from attest import _library


class Buffer(NamedTuple):
    """Holds the extent of memory that a kernel may touch."""

    name: str
    address: int
    bytes: int


class _Buffer(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Value(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("bytes", ctypes.c_size_t)]


class _Shape(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("grid", ctypes.c_uint32 * 3),
                ("block", ctypes.c_uint32 * 3), ("dynamic_shared_bytes", ctypes.c_size_t),
                ("parameters", ctypes.POINTER(_Value)), ("parameter_count", ctypes.c_size_t),
                ("buffers", ctypes.POINTER(_Buffer)), ("buffer_count", ctypes.c_size_t)]


class _Tensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p),
                ("element_bytes", ctypes.c_uint32), ("dimensions", ctypes.c_uint32),
                ("extents", ctypes.c_uint64 * 5), ("stride_bytes", ctypes.c_uint64 * 4),
                ("box", ctypes.c_uint32 * 5), ("swizzle_bytes", ctypes.c_uint32)]


def tensor_map(address: int, element_bytes: int, extents: Sequence[int], strides: Sequence[int],
               box: Sequence[int], swizzle_bytes: int) -> bytes:
    """Returns the value of a parameter that is a tensor map, of dimensions from the innermost on.

    Strides are in bytes, of all dimensions. Raises ValueError where no device has such a map.
    """
    return _library.ptx_tensor_map(_Tensor(
        ctypes.sizeof(_Tensor), address, element_bytes, len(extents), tuple(extents), tuple(strides[1:]),
        tuple(box), swizzle_bytes))


class PtxKernel:
    """Holds a kernel that is read and checked."""

    def __init__(self, text: str, name: str = ""):
        """Raises ValueError with the line of what is not PTX or not carried out."""
        self._pointer = _library.ptx_load(text, name)
        weakref.finalize(self, _library.ptx_release, self._pointer)

    def launch(self, grid: Sequence[int], block: Sequence[int], shared_bytes: int, values: List[bytes],
               buffers: List[Buffer]) -> Dict[str, Any]:
        """Executes a launch and returns its report; raises ValueError where it makes no sense."""
        shape = _Shape(ctypes.sizeof(_Shape), tuple(grid), tuple(block), shared_bytes,
                       (_Value * len(values))(*((value, len(value)) for value in values)), len(values),
                       (_Buffer * len(buffers))(*((one.name.encode(), one.address, one.bytes)
                                                  for one in buffers)), len(buffers))
        return json.loads(_library.ptx_launch(self._pointer, shape))
