"""Makes a kernel of the C library's out of a function in Python."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import threading
import traceback
from types import TracebackType
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from attest import _abi
from attest._claims import Claims, refusals
from attest._conventions import Asked, Ends
from attest._dtypes import DTYPES
from attest._function import Function, WrongResult
from attest._library import PACKAGE

_CALLS = threading.Lock()

_NOT_THE_USERS = (str(PACKAGE), str(importlib.__file__), "<frozen importlib", str(contextlib.__file__))


class Kernel:
    """Holds the struct, and all that it points to, for as long as it is used.

    Calls come from any thread, one at a time in the process: several may run shards in it.
    """

    def __init__(self, function: Function, claims: Claims, leaves_rows: bool = False):
        self.name = function.name
        self._leaves_rows = leaves_rows
        self._function = function
        self._forward = _abi.Forward(lambda _, args: self._call(self._compute, args.contents))
        self._backward = _abi.Backward(lambda _, args: self._call(self._differentiate, args.contents))
        self._limits = _abi.limits(claims.only, claims.limits)
        self.struct = _abi.Kernel(struct_size=ctypes.sizeof(_abi.Kernel), abi_version=_abi.VERSION,
                                  forward=self._forward, backward=self._backward)
        described = self.struct.description
        described.struct_size = ctypes.sizeof(_abi.Description)
        described.numerics.struct_size = ctypes.sizeof(_abi.Numerics)
        described.name = function.name.encode()
        described.summary = f"a function in Python, with arrays of {function.arrays}{function.place}".encode()
        described.device, described.directions = _abi.CPU, _abi.FORWARD
        if function.differentiator:
            described.directions |= _abi.BACKWARD
        described.dtypes = sum(1 << list(DTYPES).index(word) for word in claims.dtypes)
        described.features = sum(_abi.FEATURES[word] for word in claims.features)
        described.limits = ctypes.pointer(self._limits)
        self.claims_lse = "lse" in claims.features
        self.differentiates = function.differentiator is not None

    def _call(self, work: Callable[[Any], None], args: Any) -> int:
        try:
            with _CALLS:
                work(args)
            return _abi.OK
        except WrongResult as error:
            return _say(args, str(error), _abi.FAILED)
        except refusals() as error:
            return _say(args, f"{type(error).__name__}: {error}", _abi.UNSUPPORTED)
        except BaseException as error:  # nothing may leave a callback, not even SystemExit
            return _say(args, users_traceback(error), _abi.FAILED)

    def _compute(self, args: _abi.ForwardArgs) -> None:
        Q, K, V = (_abi.view(tensor.contents) for tensor in (args.Q, args.K, args.V))
        dtype = list(DTYPES)[args.problem.contents.dtype]
        out, lse = self._function(Q, K, V, dtype, _asked(args))
        rows = self._rows(args)
        for at in rows:
            np.copyto(_abi.view(args.O.contents)[at], out[at])
        if args.LSE:
            if lse is None:
                raise WrongResult(f"{self._function.name} returned no lse, which it does elsewhere")
            for at in rows:
                np.copyto(_of_rows(_abi.view(args.LSE.contents))[at], _of_rows(lse)[at])

    def _differentiate(self, args: _abi.BackwardArgs) -> None:
        Q, K, V, O, dO = (_abi.view(tensor.contents)
                          for tensor in (args.Q, args.K, args.V, args.O, args.dO))
        lse = _abi.view(args.LSE.contents) if args.LSE else None
        dtype = list(DTYPES)[args.problem.contents.dtype]
        rows = self._rows(args)
        gradients = self._function.gradients((Q, K, V), (O, lse), dO, dtype, _asked(args), rows)
        for at in rows:
            np.copyto(_abi.view(args.dQ.contents)[at], gradients[0][at])
        outputs = (args.dK, args.dV, *(one for one in (args.dSinks, args.dBias) if one))
        for tensor, gradient in zip(outputs, gradients[1:]):
            np.copyto(_abi.view(tensor.contents), gradient)

    def _rows(self, args: Any) -> List[Any]:
        """Returns indices (batch, row) of what is written: all, or of each entry those within its query length."""
        problem = args.problem.contents
        if not self._leaves_rows or not problem.mask.query_lengths:
            return [...]
        batch = range(problem.batch)
        lengths = _abi.memory(problem.mask.query_lengths, (problem.batch,), "<i4")
        if not problem.mask.cu_seqlens_q:
            return [(b, slice(lengths[b])) for b in batch]
        begins = _abi.memory(problem.mask.cu_seqlens_q, (problem.batch + 1,), "<i4")
        return [(0, slice(begins[b], begins[b] + lengths[b])) for b in batch]


def _of_rows(lse: Any) -> Any:
    """Views (batch, heads, rows) as (batch, rows, heads)."""
    return np.swapaxes(lse, 1, 2)


def _asked(args: Any) -> Asked:
    problem = args.problem.contents
    mask = problem.mask
    bias, bias_dtype = _abi.broadcast(args.bias.contents) if args.bias else (None, "")

    def of(address: Optional[int], shape: Any, kind: str) -> Optional[np.ndarray]:
        return _abi.memory(address, shape, kind) if address else None

    paged = problem.paged_kv.contents if problem.paged_kv else None
    boolean = of(mask.boolean, (problem.seqlen_q, problem.seqlen_k), "|b1")
    per_head = _abi.head_mask(mask.per_head.contents, (problem.batch, problem.num_heads_q, problem.seqlen_q,
                                                       problem.seqlen_k)) if mask.per_head else None
    window, offset_window = _windows(mask)
    return Asked(problem.seqlen_q, problem.seqlen_k, problem.softmax_scale,
                 grouped=problem.num_heads_q != problem.num_heads_kv,
                 window=window, offset_window=offset_window,
                 align="top_left" if mask.align == _abi.TOP_LEFT else "bottom_right", mask=boolean,
                 head_mask=per_head, query_lengths=of(mask.query_lengths, (problem.batch,), "<i4"),
                 key_lengths=of(mask.key_lengths, (problem.batch,), "<i4"), softcap=problem.softcap,
                 alibi_slopes=of(problem.alibi_slopes, (problem.num_heads_q,), "<f4"),
                 sinks=of(problem.sinks, (problem.num_heads_q,), "<f4"), bias=bias, bias_dtype=bias_dtype,
                 block_table=paged and of(paged.block_table, (problem.batch, paged.max_pages), "<i4"),
                 num_splits=problem.num_splits,
                 cu_seqlens_q=of(mask.cu_seqlens_q, (problem.batch + 1,), "<i4"),
                 cu_seqlens_k=of(mask.cu_seqlens_k, (problem.batch + 1,), "<i4"))


def _windows(mask: _abi.Mask) -> Tuple[Tuple[int, int], Optional[Ends]]:
    """Returns the window with -1 for an end that it lacks, (-1, -1) where that cannot say it, and with None for one."""
    left, right = mask.window_left, mask.window_right
    lacks = [left < 0, right < 0]
    if mask.window_ends:
        lacks = [mask.window_ends.contents.left_unbounded, mask.window_ends.contents.right_unbounded]
    ends = None if lacks[0] else left, None if lacks[1] else right
    if ends == (None, None):
        return (-1, -1), None
    if min(end for end in ends if end is not None) < 0:
        return (-1, -1), ends
    return (-1 if lacks[0] else left, -1 if lacks[1] else right), ends


def _say(args: Any, text: str, status: int) -> int:
    """Hands the text back, its end where it is too long, and returns the status."""
    if args.message and args.message_bytes:
        words = text.encode()[-(args.message_bytes - 1):] if args.message_bytes > 1 else b""
        ctypes.memmove(args.message, words + b"\0", len(words) + 1)
    return status


def users_traceback(error: BaseException) -> str:
    """Returns the text of the traceback from the user's first line on."""
    return "".join(traceback.format_exception(type(error), error, users_frames(error))).strip()


def users_frames(error: BaseException) -> Optional[TracebackType]:
    """Returns the traceback from the first line that is neither this package's nor the import's."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frames = frames.tb_next
    return frames
