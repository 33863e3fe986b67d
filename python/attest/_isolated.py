"""Starts a fresh interpreter for a function, whose calls the C library judges."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Dict, Optional

from attest import _abi, _library, _place


class IsolatedKernel:
    """Holds the processes in which a function is called, until it is closed."""

    def __init__(self, fn: Callable[..., Any], given: Dict[str, Any], timeout: Optional[int],
                 memory_limit: Optional[int]):
        if _place.loading:
            raise RuntimeError("certify is called while a fresh interpreter imports the function's "
                               "file; put the call under `if __name__ == \"__main__\":`")
        self.name: str = getattr(fn, "__name__", type(fn).__name__).strip("<>")
        self._folder = tempfile.TemporaryDirectory(prefix="attest-")
        place, options = _place.place_of(fn), "{}"
        try:
            options = json.dumps(given, default=_place.word_of)
        except TypeError:
            place = None
        try:
            if place is None:
                place = _place.write_pickled(pathlib.Path(self._folder.name) / "function", fn, given)
            path = json.dumps([folder or os.getcwd() for folder in sys.path])
            limits = {"timeout": timeout, "memory_limit": memory_limit}
            pointer = _library.isolate(
                [sys.executable, "-u", "-m", "attest._worker", self.name, place, options, path],
                " ".join(f"{name}={value}" for name, value in limits.items() if value is not None))
        except BaseException:
            self._folder.cleanup()
            raise
        self._pointer = ctypes.cast(pointer, ctypes.POINTER(_abi.Kernel))
        self.struct: ctypes.Structure = self._pointer.contents

    def close(self) -> None:
        """Ends the processes."""
        _library.release(self._pointer)
        self._folder.cleanup()
