"""Turns the arguments of a Triton launch into a kernel's parameters and the memory it may touch."""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from attest._emulation.ptx import Buffer, tensor_map

_FORMATS = {"i1": "b", "u1": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
            "i64": "q", "u64": "Q", "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d"}
_SWIZZLES = (0, 32, 64, 128)  # bytes, as Triton numbers them


@dataclasses.dataclass
class _Storage:
    address: int
    bytes: int
    element_bytes: int
    names: List[str]


@dataclasses.dataclass
class Arguments:
    """Holds a launch's parameters, and each storage once however many tensors view it."""

    values: List[bytes] = dataclasses.field(default_factory=list)
    storages: Dict[int, _Storage] = dataclasses.field(default_factory=dict)
    kept: List[Any] = dataclasses.field(default_factory=list)
    """Memory made for this launch."""

    @property
    def buffers(self) -> List[Buffer]:
        return [Buffer(", ".join(one.names), one.address, one.bytes) for one in self.storages.values()]

    def words(self, moved: List[Dict[str, int]], kind: str) -> Dict[str, int]:
        """Returns elements moved by the names of the tensors."""
        return {", ".join(one.names): bytes_of[kind] // one.element_bytes
                for one, bytes_of in zip(self.storages.values(), moved)}

    def add_pointer(self, name: str, pointer: int, storage: _Storage) -> None:
        self.values.append(struct.pack("Q", pointer))
        self.add_storage(name, storage)

    def add_storage(self, name: str, storage: _Storage) -> None:
        if storage.bytes > 0:
            known = self.storages.setdefault(storage.address, storage)
            known.names += [name] if name not in known.names else []


def collect(kernel: str, signature: Mapping[str, Any], arguments: Tuple[Any, ...],
            scratch: List[int], descriptors: Sequence[Any] = ()) -> Arguments:
    """Returns the parameters: the arguments that are not constants, then pointers to scratch memory.

    `descriptors` has, of each tensor descriptor, how the kernel copies its boxes. Raises ValueError
    for an argument that is not carried over.
    """
    given, boxes = Arguments(), iter(descriptors)
    for name, kind, value in _flat(signature.items(), arguments):
        where = f"kernel '{kernel}': argument '{name}'"
        if kind == "constexpr":
            continue
        if kind.startswith("tensordesc"):
            _add_descriptor(given, where, name, value, next(boxes, None))
        elif kind.startswith("*"):
            given.add_pointer(name, value.data_ptr(), _storage_of(where, value))
        else:
            given.values.append(_packed(where, kind, value))
    for bytes_wanted in scratch:
        memory = ctypes.create_string_buffer(bytes_wanted)
        given.kept.append(memory)
        address = ctypes.addressof(memory) if bytes_wanted else 0
        given.add_pointer("scratch", address, _Storage(address, bytes_wanted, 1, []))
    return given


def _add_descriptor(given: Arguments, where: str, name: str, value: Any, box: Any) -> None:
    """Adds a tensor descriptor, as Triton's launcher for a GPU hands one over.

    A kernel that copies without tensor maps takes pointer, extents and strides twice.
    """
    storage, pointer = _storage_of(where, value.base), value.base.data_ptr()
    numbers = [("i32", value.shape), ("i64", value.strides)]
    if box is None:
        given.add_pointer(name, pointer, storage)
        numbers = [("i64", value.shape), ("i64", value.strides), ("i1", [value.padding == "nan"]), *numbers]
    else:
        if value.padding != "zero":
            raise ValueError(f"{where} is padded with {value.padding}, which is not carried out")
        size = storage.element_bytes
        given.values.append(tensor_map(pointer, size, value.shape[::-1], [size * n for n in value.strides[::-1]],
                                       box["block_size"][::-1], _SWIZZLES[box["swizzle"]]))
        given.add_storage(name, storage)
    for kind, several in numbers:
        given.values += [_packed(where, kind, one) for one in several]


def _flat(signature: Any, arguments: Any) -> Iterator[Tuple[str, str, Any]]:
    for (name, kind), value in zip(signature, arguments):
        if isinstance(kind, tuple):
            yield from _flat(((f"{name}[{k}]", one) for k, one in enumerate(kind)), value)
        else:
            yield name, kind, value


def _storage_of(where: str, value: Any) -> _Storage:
    device = str(getattr(value, "device", "cpu"))
    if not device.startswith("cpu"):
        raise ValueError(f"{where} lies on {device}; an emulated GPU works on memory of the host: "
                         "hand tensors of the CPU over, like x.cpu()")
    for tensor in (value, getattr(value, "base", None)):  # triton.reinterpret wraps one
        if hasattr(tensor, "untyped_storage"):
            storage = tensor.untyped_storage()
            return _Storage(storage.data_ptr(), storage.nbytes(), tensor.element_size(), [])
    if not hasattr(value, "nbytes") or not hasattr(value.dtype, "itemsize"):
        raise ValueError(f"{where} has data_ptr() and no extent; give it nbytes and a dtype of numpy, "
                         "or hand a tensor of torch over")
    return _Storage(value.data_ptr(), value.nbytes, value.dtype.itemsize, [])


def _packed(where: str, kind: str, value: Any) -> bytes:
    if kind == "bf16":
        return struct.pack("f", value)[2:]
    if kind not in _FORMATS:
        raise ValueError(f"{where} is of type {kind}, which an emulated GPU does not carry over; hand tensors "
                         "and numbers over")
    return struct.pack(_FORMATS[kind], value)
