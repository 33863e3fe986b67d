"""Executes Triton's kernels on the host as they were compiled for a GPU: `emulated_gpu`."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import linecache
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple, Union

import numpy as np

from attest._emulation import autotune as _autotune

LEAST_TRITON = (3, 5)


class EmulationError(RuntimeError):
    """Says what an emulated GPU found in a kernel, or which of its instructions it does not carry out.

    `findings`  each with "fault", "text", "file", "line" and "block"; empty for an instruction
    """

    def __init__(self, message: str, findings: Tuple[Dict[str, Any], ...] = ()):
        super().__init__(message)
        self.findings = findings


@dataclasses.dataclass(frozen=True)
class Launch:
    """Holds what a launch moved and took.

    Words are elements of the tensor, by the argument's name; tensors that share their storage are
    counted together under a name like "q, k".
    """

    kernel: str
    grid: Tuple[int, int, int]
    read: Dict[str, int]
    written: Dict[str, int]
    shared_bytes: int
    """Shared memory of a block."""
    moved_bytes: int = dataclasses.field(default=0, compare=False)
    """Read and written, of all tensors."""
    threads: int = dataclasses.field(default=0, compare=False)
    """Threads of a block."""
    ptx: str = dataclasses.field(default="", repr=False, compare=False)
    """The text that was executed."""


class Target(NamedTuple):
    """Describes a GPU as Triton asks for it."""

    name: str
    capability: int
    shared_bytes: int  # that a block may have


TARGETS = {one.name: one for one in (Target("sm_80", 80, 163 << 10), Target("sm_90", 90, 227 << 10))}
_LATER = {"sm_100": "tcgen05"}


class NumpyTensor:
    """Shows an array of numpy to Triton as a tensor, without a copy."""

    def __init__(self, array: np.ndarray):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array takes arrays of numpy, not a {type(array).__name__}; tensors of torch are "
                            "handed over as they are")
        self.array, self.dtype, self.nbytes = array, array.dtype, array.nbytes

    def data_ptr(self) -> int:
        return self.array.ctypes.data


@dataclasses.dataclass
class EmulatedGpu:
    """Holds the launches within one `emulated_gpu`, in their order; those that failed are none."""

    target: Target
    launches: List[Launch] = dataclasses.field(default_factory=list)
    configurations: _autotune.Configurations = dataclasses.field(default_factory=dict)
    """All configurations of the autotuned kernels that were launched, by kernel."""
    keeps_to_choice: bool = True
    """Refuses a launch for which the kernel prunes the configuration that was chosen; else it takes another."""

    @staticmethod
    def array(array: np.ndarray) -> NumpyTensor:
        """Returns an array of numpy as kernels in Triton take it: they read and write its memory."""
        return NumpyTensor(array)


@contextlib.contextmanager
def emulated_gpu(target: str = "sm_80", autotune: Union[str, _autotune.Choice, None] = None) -> Iterator[EmulatedGpu]:
    """Executes Triton's kernels on tensors of the CPU, compiled for the target, within the context.

        with attest.emulated_gpu("sm_80") as gpu:
            my_triton_function(q, k, v)
        print(gpu.launches[0].read)

    `autotune`  has what names one configuration of autotuned kernels, like {"BLOCK_M": 64, "num_warps": 4},
                {"my_kernel": {"BLOCK_M": 64}} or "my_kernel.BLOCK_M=64"; kernels without these words, and
                all where it is None, take the one that moves the fewest words

    Raises EmulationError at the launch that races, accesses what lies outside its tensors, reads
    shared memory before it is written, or never ends. There is no GPU, no CUDA and no ptxas needed.
    """
    gpu, choice = EmulatedGpu(_target(target)), _autotune.chosen(autotune)
    _require_triton()
    from attest._emulation import triton_driver
    with triton_driver.installed(gpu, choice):
        yield gpu


def finding_error(kernel: str, target: Target, findings: Tuple[Dict[str, Any], ...],
                  given_up: int, file: str = "") -> EmulationError:
    """Returns the error of a launch: its first finding with the line of the source, and how many more.

    `file` is the kernel's; what was compiled before, in another folder, names a file there.
    """
    first = findings[0]
    message = (f"kernel '{kernel}' on {target.name}: {first['fault']}: {first['text']} "
               f"in block {','.join(map(str, first['block']))}")
    if first["line"]:
        name = os.path.basename(first["file"])
        path = file if name == os.path.basename(file) else first["file"]
        source = linecache.getline(path, first["line"]).strip()
        message += f"\n  {name}:{first['line']}" + (f": {source}" if source else "")
    if len(findings) > 1:
        message += f"\n  and {len(findings) - 1} more: EmulationError.findings"
    if given_up:
        message += f"\n  blocks that did not come to their end: {given_up}"
    return EmulationError(message, findings)


def _target(name: str) -> Target:
    if name in TARGETS:
        return TARGETS[name]
    known = ", ".join(TARGETS)
    if name in _LATER:
        raise ValueError(f"target {name!r} is not emulated yet ({_LATER[name]}); give one of: {known}")
    raise ValueError(f"no target {name!r}; give one of: {known}")


def _require_triton() -> None:
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        raise ImportError("emulated_gpu needs Triton, which compiles without a GPU too: pip install triton") from None
    if tuple(map(int, triton.__version__.split(".")[:2])) < LEAST_TRITON:
        raise ImportError(f"emulated_gpu needs Triton {'.'.join(map(str, LEAST_TRITON))} or later, this is "
                          f"{triton.__version__}: pip install --upgrade triton")
    if triton.knobs.runtime.interpret:
        raise ValueError("TRITON_INTERPRET is set, so Triton interprets the source of kernels and compiles "
                         "none; unset it before Triton is imported")
