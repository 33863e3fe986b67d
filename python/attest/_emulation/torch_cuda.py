"""Answers code that asks torch for CUDA on an emulated GPU: its tensors stay the host's."""

from __future__ import annotations

import contextlib
import re
import types
from typing import Any, Dict, Iterator, Tuple
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

_CUDA = re.compile(r"cuda(:\d+)?")


@contextlib.contextmanager
def on_the_host(capability: Tuple[int, int], name: str) -> Iterator[None]:
    """Has `is_cuda` be true, `device="cuda"` and `.cuda()` mean the host, and torch.cuda answer for one GPU.

    Raises RuntimeError from what torch.cuda offers beyond that.
    """
    properties = types.SimpleNamespace(name=name, major=capability[0], minor=capability[1], multi_processor_count=1)
    answers: Dict[str, Any] = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "device": lambda *_: contextlib.nullcontext(), "set_device": lambda *_: None, "synchronize": lambda *_: None,
        "current_stream": lambda *_: types.SimpleNamespace(cuda_stream=0), "empty_cache": lambda: None,
        "get_device_capability": lambda *_: capability, "get_device_name": lambda *_: name,
        "get_device_properties": lambda *_: properties, "is_bf16_supported": lambda *_: True,
        "_lazy_init": _refuse, "Event": _refuse, "Stream": _refuse}
    with contextlib.ExitStack() as stack:
        for word, answer in answers.items():
            stack.enter_context(mock.patch.object(torch.cuda, word, answer))
        stack.enter_context(_HostForCuda())
        yield


def _refuse(*_: Any, **__: Any) -> None:
    raise RuntimeError("this part of torch.cuda has no place on an emulated GPU, where tensors lie on the host; "
                       "leave it out there (docs/how-to/triton-without-a-gpu.md)")


class _HostForCuda(TorchFunctionMode):
    """Puts the host in the place of each CUDA device that a call of torch names."""

    def __torch_function__(self, function: Any, kinds: Any, given: Any = (), words: Any = None) -> Any:
        if function == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return True
        if function is torch.Tensor.cuda:
            return given[0]
        if function is torch.Tensor.get_device:
            return 0
        if function is torch.device:
            return function(*given, **(words or {}))
        return function(*map(_host, given), **{word: _host(value) for word, value in (words or {}).items()})


def _host(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and _CUDA.fullmatch(value):
        return torch.device("cpu")
    return value
