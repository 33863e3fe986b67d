"""Turns the arguments of a Triton launch into a kernel's parameters and the memory it may touch."""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from attest._ptx import Buffer

_FORMATS = {"i1": "b", "u1": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
            "i64": "q", "u64": "Q", "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d"}


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
        if storage.bytes > 0:
            known = self.storages.setdefault(storage.address, storage)
            known.names += [name] if name not in known.names else []


def collect(kernel: str, signature: Mapping[str, Any], arguments: Tuple[Any, ...],
            scratch: List[int]) -> Arguments:
    """Returns the parameters: the arguments that are not constants, then pointers to scratch memory.

    Raises ValueError for an argument that is not carried over.
    """
    given = Arguments()
    for name, kind, value in _flat(signature.items(), arguments):
        where = f"kernel '{kernel}': argument '{name}'"
        if kind == "constexpr":
            continue
        if kind.startswith("*"):
            given.add_pointer(name, value.data_ptr(), _storage_of(where, value))
        else:
            given.values.append(_packed(where, kind, value))
    for bytes_wanted in scratch:
        memory = ctypes.create_string_buffer(bytes_wanted)
        given.kept.append(memory)
        address = ctypes.addressof(memory) if bytes_wanted else 0
        given.add_pointer("scratch", address, _Storage(address, bytes_wanted, 1, []))
    return given


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
