"""Loads the C library through ctypes: the structs of attest_api.h and attest_kernel.h, and its calls."""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any, Callable, List, Optional

from attest._dtypes import DTYPES

PACKAGE = pathlib.Path(__file__).parent

_CPU = 1
_TENSOR_MAP_BYTES = 128


class InternalError(RuntimeError):
    """Says that Attest itself made a mistake: please report it with the message."""


class NothingProved(AssertionError):
    """Says that no bound covers the results, or plainly wrong ones would pass on these inputs too."""


class Tensor(ctypes.Structure):
    """Mirrors attest_tensor; keeps the array alive whose memory it points to."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8),
                ("dtype_lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]

    @classmethod
    def of(cls, array: Any, dtype: str) -> Tensor:
        """Describes the numpy array, whose elements have the dtype; a bf16 element is held as 16 bits."""
        extents = ctypes.c_int64 * array.ndim
        tensor = cls(array.ctypes.data, _CPU, 0, array.ndim, *DTYPES[dtype].dlpack, 1,
                     extents(*array.shape),
                     extents(*(stride // array.itemsize for stride in array.strides)), 0)
        tensor.array = array
        return tensor


_TENSOR = ctypes.POINTER(Tensor)


class Results(ctypes.Structure):
    """Mirrors attest_results."""

    _fields_ = [(name, _TENSOR) for name in ("O", "LSE", "dQ", "dK", "dV", "dSinks", "dBias")]


class Attention(ctypes.Structure):
    """Mirrors attest_attention."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("problem", ctypes.c_char_p),
                ("contract", ctypes.c_char_p), ("boolean_mask", ctypes.c_void_p), ("sinks", ctypes.c_void_p),
                *((name, _TENSOR) for name in ("Q", "K", "V", "dO", "dLSE", "bias")), ("head_mask", ctypes.c_void_p),
                ("head_mask_extents", ctypes.c_int64 * 4), ("got", Results)]


def results(**tensors: Tensor) -> Results:
    """Makes results of these tensors; the others are NULL."""
    return Results(**{name: ctypes.pointer(one) for name, one in tensors.items()})


_library = ctypes.CDLL(str(PACKAGE / "libattest.so"))
_library.attest_text.restype = _library.attest_version.restype = ctypes.c_char_p

_PASSED, _REFUSED, _BAD_INPUT, _NOTHING_PROVED = range(4)


def version() -> str:
    """Returns the version of the library."""
    return _library.attest_version().decode()


def judge(call: Attention) -> None:
    """Raises AssertionError where results are refused, NothingProved, or ValueError."""
    __tracebackhide__ = True
    _require(_library.attest_judge(ctypes.byref(call)))


def write_reference(call: Attention, exact: Results) -> None:
    """Writes exact results; raises ValueError where the call makes no sense."""
    _require(_library.attest_reference(ctypes.byref(call), ctypes.byref(exact)))


def write_bounds(call: Attention, proved: Results, probable: Results) -> None:
    """Writes bounds; raises ValueError where the call makes no sense."""
    _require(_library.attest_bounds(ctypes.byref(call), ctypes.byref(proved), ctypes.byref(probable)))


_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


def certify(kernel: ctypes.Structure, contract: Optional[str], options: str,
            progress: Callable[[Any, int, int], int]) -> str:
    """Returns the certificate of a campaign (JSON); raises ValueError where the call makes no sense."""
    return _certificate(_library.attest_certify(ctypes.byref(kernel), _text_or_null(contract),
                                                options.encode(), _PROGRESS(progress), None))


def merge(kernel: ctypes.Structure, contract: Optional[str], options: str, certificates: List[str],
          progress: Callable[[Any, int, int], int]) -> str:
    """Returns the certificate of the whole (JSON), of those of shards; raises as `certify` does."""
    texts = (ctypes.c_char_p * len(certificates))(*(one.encode() for one in certificates))
    return _certificate(_library.attest_merge(
        ctypes.byref(kernel), _text_or_null(contract), options.encode(), texts,
        ctypes.c_size_t(len(certificates)), _PROGRESS(progress), None))


def _certificate(outcome: int) -> str:
    if outcome not in (_PASSED, _REFUSED, _NOTHING_PROVED):
        _require(outcome)
    return _text()


def isolate(command: List[str], limits: str) -> Any:
    """Starts a program that serves a kernel and returns a pointer to it; raises ValueError."""
    words = (ctypes.c_char_p * (len(command) + 1))(*map(os.fsencode, command), None)
    pointer = ctypes.c_void_p()
    _require(_library.attest_isolate(words, limits.encode(), ctypes.byref(pointer)))
    return pointer


def release(pointer: Any) -> None:
    """Ends the processes of a kernel of `isolate`."""
    _library.attest_release(pointer)


def fork_here() -> None:
    """Returns in every process that the certifier has forked from this one, or once where it cannot be."""
    _library.attest_fork_here()


def serve(kernel: Optional[ctypes.Structure], contract: str, refusal: str, file: str = "") -> None:
    """Carries out the certifier's calls, then ends this process. Raises ValueError without one.

    The end of a long refusal is told: of a traceback it says most. `file` holds the function.
    """
    most_bytes = 1000
    _require(_library.attest_serve(None if kernel is None else ctypes.byref(kernel),
                                   contract.encode(), refusal.encode()[-most_bytes:],
                                   os.fsencode(file)))


def check(kernel: ctypes.Structure, contract: Optional[str], case: str, law: str) -> str:
    """Returns the finding of a check (JSON), "" where it passed; raises NothingProved, ValueError.

    Further lines of `case` are those of attest_check: "repeat=11", "after=sq=3,d=64".
    """
    outcome = _library.attest_check(ctypes.byref(kernel), _text_or_null(contract), case.encode(),
                                    law.encode())
    if outcome != _REFUSED:
        _require(outcome)
    return _text()


def ptx_load(text: str, kernel: str) -> Any:
    """Reads a PTX text and returns a pointer to its kernel; raises ValueError with the line."""
    pointer = ctypes.c_void_p()
    _require(_library.attest_ptx_load(text.encode(), kernel.encode(), ctypes.byref(pointer)))
    return pointer


def ptx_release(pointer: Any) -> None:
    """Frees a kernel of `ptx_load`."""
    _library.attest_ptx_release(pointer)


def ptx_tensor_map(tensor: ctypes.Structure) -> bytes:
    """Returns the bytes of a tensor map; raises ValueError where no device has such a one."""
    written = ctypes.create_string_buffer(_TENSOR_MAP_BYTES)
    _require(_library.attest_ptx_tensor_map(ctypes.byref(tensor), written))
    return written.raw


def ptx_launch(pointer: Any, shape: ctypes.Structure) -> str:
    """Returns the report of a launch (JSON); raises ValueError where it makes no sense."""
    outcome = _library.attest_ptx_launch(pointer, ctypes.byref(shape))
    if outcome != _REFUSED:
        _require(outcome)
    return _text()


def _text_or_null(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else text.encode()


def _text() -> str:
    return _library.attest_text().decode("utf-8", "replace")


def _require(outcome: int) -> None:
    """Raises what the outcome of the last call stands for, unless it is that it passed."""
    __tracebackhide__ = True
    if outcome == _PASSED:
        return
    kinds = {_REFUSED: AssertionError, _BAD_INPUT: ValueError, _NOTHING_PROVED: NothingProved}
    raise kinds.get(outcome, InternalError)(_text())
