"""Drives Triton's runtime with the executor of PTX in place of a GPU."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any, Dict, Iterator
from weakref import WeakKeyDictionary

import triton
from triton._C.libtriton import ir
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.runtime import driver as runtime_driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.cache import triton_key

from attest._emulation import autotune, triton_arguments
from attest._emulation.gpu import EmulatedGpu, EmulationError, Launch, finding_error
from attest._emulation.ptx import PtxKernel

_WARP_LANES = 32
_PTX_VERSION = 86
_one_thread = threading.RLock()
_NVIDIA: Backend = backends["nvidia"]


@contextlib.contextmanager
def installed(gpu: EmulatedGpu, choice: autotune.Choice) -> Iterator[None]:
    """Makes the emulated GPU Triton's, then the one before again; for one thread at a time."""
    with _one_thread, _tuned(gpu, choice):
        yield from _exchanged(gpu)


def _exchanged(gpu: EmulatedGpu) -> Iterator[None]:
    before = runtime_driver._active, backends["nvidia"]  # `active` would look for a GPU
    backends["nvidia"] = Backend(_PtxBackend, _NVIDIA.driver)
    runtime_driver.set_active(EmulatedDriver(gpu))
    try:
        with _torch_cuda(gpu):
            yield
    finally:
        runtime_driver._active, backends["nvidia"] = before


def _torch_cuda(gpu: EmulatedGpu) -> Any:
    """Returns what answers for torch.cuda, where torch is there by now."""
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    from attest._emulation.torch_cuda import on_the_host
    return on_the_host(divmod(gpu.target.capability, 10), f"emulated {gpu.target.name}")


@contextlib.contextmanager
def _tuned(gpu: EmulatedGpu, choice: autotune.Choice) -> Iterator[None]:
    """Has autotuned kernels take the configuration that is chosen for them, or that moves the fewest words."""
    run = Autotuner.run

    def run_one(tuner: Any, *arguments: Any, **words: Any) -> Any:
        kernel, configs = tuner.base_fn.__name__, tuner.configs
        known = gpu.configurations[kernel] = [one.all_kwargs() for one in configs]
        wanted = autotune.wanted_of(kernel, known, choice)
        if wanted is not None:
            (one,) = (one for one in configs if wanted.items() <= one.all_kwargs().items())
            if not _prunes(tuner, one, arguments, words):
                configs = [one]  # the only one is neither measured nor remembered
            elif gpu.keeps_to_choice:
                raise NotImplementedError(f"the configuration {wanted} of '{kernel}' is pruned for these arguments")
        taken = _TAKEN.setdefault(tuner, {}).setdefault(gpu.target.name, {})
        with _holding(tuner, configs=configs, cache=taken, do_bench=_words_for_time(gpu)):
            return run(tuner, *arguments, **words)

    Autotuner.run = run_one
    try:
        yield
    finally:
        Autotuner.run = run


_TAKEN: WeakKeyDictionary[Any, Dict[str, Dict[Any, Any]]] = WeakKeyDictionary()
"""The configurations that autotuned kernels took, by target: none is of a GPU's time."""


@contextlib.contextmanager
def _holding(held: Any, **values: Any) -> Iterator[None]:
    """Gives an object these attributes, and then those before again."""
    before = {name: vars(held)[name] for name in values if name in vars(held)}
    vars(held).update(values)
    try:
        yield
    finally:
        for name in values:
            del vars(held)[name]
        vars(held).update(before)


def _words_for_time(gpu: EmulatedGpu) -> Any:
    """Returns what measures a call by the words that it moves, and forgets its launches."""
    def moved(call: Any, quantiles: Any = None, **_: Any) -> Any:
        known = len(gpu.launches)
        call()
        words = sum(sum(one.read.values()) + sum(one.written.values()) for one in gpu.launches[known:])
        del gpu.launches[known:]
        return [float(words)] * len(quantiles) if quantiles else float(words)
    return moved


def _prunes(tuner: Any, config: Any, arguments: Any, words: Dict[str, Any]) -> bool:
    """Tells whether the kernel's own pruning takes the configuration out for this launch."""
    if not tuner.early_config_prune:
        return False
    named = dict(zip(tuner.arg_names, arguments))
    return config not in tuner.early_config_prune(tuner.configs, named, **words)


def hash_triton() -> None:
    """Has Triton hash its own files, 400 MB, for the names in its cache: it remembers them in this process."""
    triton_key()


def set_signals() -> None:
    """Has the compiler take its first step in this process: it handles signals of its own from then on."""
    context = ir.context()
    ir.load_dialects(context)
    module = ir.builder(context).create_module()
    module.context = context  # which must live as long
    _PtxBackend.make_ttir(module, {}, None, 80)


class _PtxBackend(_NVIDIA.compiler):  # type: ignore[misc,name-defined]
    """Compiles to PTX and no further."""

    def __init__(self, target: GPUTarget):
        super().__init__(target)
        self.binary_ext = "ptx"

    def parse_options(self, options: Dict[str, Any]) -> Any:
        """Names a version of PTX; else ptxas is asked for the newest."""
        return super().parse_options({**options, "ptx_version": options.get("ptx_version") or _PTX_VERSION})

    def add_stages(self, stages: Dict[str, Any], *rest: Any) -> None:
        super().add_stages(stages, *rest)
        del stages["cubin"]

    def hash(self) -> str:
        """Keeps what is compiled apart from a GPU's in the cache."""
        return f"attest-ptx-{triton.__version__}-{self.target.arch}"


class _Binary:
    """Reads the PTX at the first launch; an error then comes at every launch."""

    def __init__(self, name: str, text: str):
        self._name, self.text = name, text
        self._kernel: Any = None

    def kernel(self, target: str) -> PtxKernel:
        if self._kernel is None:
            try:
                self._kernel = PtxKernel(self.text, self._name)
            except ValueError as error:
                raise EmulationError(
                    f"kernel '{self._name}' is not carried out as compiled for {target}: {error}\n"
                    f"  Which instructions a kernel becomes depends on the target; see "
                    f"docs/reference/ptx-opcodes.md for those carried out") from None
        return self._kernel


class _Utils:
    def __init__(self, gpu: EmulatedGpu):
        self._gpu = gpu

    def get_device_properties(self, device: Any) -> Dict[str, int]:
        return {"max_shared_mem": self._gpu.target.shared_bytes, "multiprocessor_count": 1,
                "max_num_regs": 1 << 16, "warpSize": _WARP_LANES}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: Any) -> Any:
        """Returns module, function, registers, spills and the most threads of a block."""
        return self, _Binary(name, kernel.decode()), 0, 0, 1024

    def unload_module(self, module: Any) -> None:
        pass


class _Launcher:
    """Launches one compiled kernel on the emulated GPU that is Triton's by then."""

    def __init__(self, source: Any, metadata: Any):
        self._signature, self._metadata = source.signature, metadata
        function = getattr(getattr(source, "fn", None), "fn", None)
        self._file: str = getattr(getattr(function, "__code__", None), "co_filename", "")

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: Any, binary: _Binary, packed: Any,
                 launch_metadata: Any, enter: Any, leave: Any, *arguments: Any) -> None:
        driver, name = runtime_driver.active, self._metadata.name
        if not isinstance(driver, EmulatedDriver):
            raise EmulationError(f"kernel '{name}' was compiled within attest.emulated_gpu; "
                                 "launch it there too")
        kernel = binary.kernel(driver.gpu.target.name)
        grid = grid_x, grid_y, grid_z
        if 0 in grid:
            return
        given = triton_arguments.collect(name, self._signature, arguments, self._scratch(grid),
                                          getattr(self._metadata, "tensordesc_meta", None) or ())
        if enter is not None:
            enter(launch_metadata)
        threads = _WARP_LANES * self._metadata.num_warps
        report = kernel.launch(grid, (threads, 1, 1), self._metadata.shared,
                               given.values, given.buffers)
        if leave is not None:
            leave(launch_metadata)
        if report["findings"] or report["blocks_given_up"]:
            raise finding_error(name, driver.gpu.target, tuple(report["findings"]), report["blocks_given_up"],
                                self._file)
        driver.gpu.launches.append(Launch(
            name, grid, *(given.words(report["buffers"], kind) for kind in ("read_bytes", "written_bytes")),
            report["shared_bytes"], sum(one["read_bytes"] + one["written_bytes"] for one in report["buffers"]),
            threads, binary.text))

    def _scratch(self, grid: Any) -> Any:
        blocks = grid[0] * grid[1] * grid[2]
        return [blocks * getattr(self._metadata, f"{kind}_scratch_size") for kind in ("global", "profile")]


class EmulatedDriver:
    """Answers what Triton's runtime asks of a driver."""

    launcher_cls = _Launcher

    def __init__(self, gpu: EmulatedGpu):
        self.gpu, self.utils = gpu, _Utils(gpu)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.gpu.target.capability, _WARP_LANES)

    def get_current_device(self) -> str:
        """Returns a key that no GPU has, for compiled kernels are kept by it."""
        return f"emulated {self.gpu.target.name}"

    def set_current_device(self, device: Any) -> None:
        pass

    def get_current_stream(self, device: Any) -> int:
        return 0

    def get_device_capability(self, device: Any = None) -> Any:
        return divmod(self.gpu.target.capability, 10)

    def get_active_torch_device(self) -> Any:
        import torch
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        return _words_for_time(self.gpu)

    def get_empty_cache_for_benchmark(self) -> None:
        return None

    def clear_cache(self, cache: Any) -> None:
        pass
