"""Hands arrays of torch or jax over on a device: "cuda", "cuda:1", for jax any of its platforms.

On "emulated:sm_80" they stay the host's, and kernels in Triton are executed there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from typing import Any, Callable, ContextManager, Iterator, List, Optional, Union

from attest._emulation.autotune import Choice, Configurations, chosen
from attest._emulation.gpu import emulated_gpu

_EMULATED = "emulated:"
_MOST_BYTES = 1 << 30  # between elements of an array that keeps its strides


def placing(arrays: str, word: str) -> Callable[[Any], Any]:
    """Returns what places an array of `arrays` on the device.

    An array is copied there and back first. Raises ValueError where there is no such device, or it
    holds no values.
    """
    if not isinstance(word, str):
        raise TypeError(f"device is {word!r}; give a word like 'cuda' or 'cuda:1'")
    if word.startswith(_EMULATED):
        return lambda array: array
    if arrays not in _KINDS:
        raise ValueError(f"device={word!r}, but arrays of {arrays} lie on the host; give a convention with "
                         "arrays of torch or jax, or leave device out")
    try:
        return _KINDS[arrays](word)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{arrays} has no device {word!r} that holds values; it has "
                         f"{', '.join(_AVAILABLE[arrays]())} ({reason})") from None


def load(word: Optional[str]) -> None:
    """Loads what calls on the device need and starts no thread: a process forked after it has all of it."""
    if word is not None and word.startswith(_EMULATED):
        with contextlib.suppress(ImportError):  # running() says what is missing
            importlib.import_module("attest._emulation.triton_driver").hash_triton()


@contextlib.contextmanager
def importing(word: Optional[str]) -> Iterator[None]:
    """Is what a function's module is imported within, for many ask for their GPU then."""
    if word is None or not word.startswith(_EMULATED):
        yield
        return
    with contextlib.suppress(ImportError):  # its torch.cuda answers too
        importlib.import_module("torch")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(emulated_gpu(emulated_target(word)))
        except ImportError as error:
            raise ValueError(str(error)) from None
        yield


class Emulated:
    """Is what a function is called within, one context a call.

    Raises ValueError where the device cannot be emulated.
    """

    def __init__(self, word: str, autotune: Union[str, Choice, None] = None):
        self._target, self.choice = emulated_target(word), chosen(autotune)
        self.configurations: Configurations = {}
        """Configurations of the kernels that any call has launched."""
        self.keeps_to_choice = False
        """Set once first calls are made: they are too small for some configurations."""
        try:
            with self():  # loads Triton before a call is watched
                importlib.import_module("attest._emulation.triton_driver").set_signals()
        except ImportError as error:
            raise ValueError(str(error)) from None

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with emulated_gpu(self._target, self.choice or None) as gpu:
            gpu.keeps_to_choice = self.keeps_to_choice
            yield
        self.configurations.update(gpu.configurations)


def running(word: Optional[str], autotune: Union[str, Choice, None] = None) -> Callable[[], ContextManager[Any]]:
    """Returns what a function is called within. Raises ValueError where that cannot be."""
    if word is not None and word.startswith(_EMULATED):
        return Emulated(word, autotune)
    if autotune is not None:
        raise ValueError("autotune chooses for kernels in Triton on an emulated device; give one too, like "
                         "device='emulated:sm_80'")
    return contextlib.nullcontext


def emulated_target(word: str) -> str:
    """Returns the target of a word like "emulated:sm_80". Raises ValueError for another device."""
    if not isinstance(word, str) or not word.startswith(_EMULATED):
        raise ValueError(f"device is {word!r}; words are counted on an emulated one, like 'emulated:sm_80'")
    return word[len(_EMULATED):]


def _of_torch(word: str) -> Callable[[Any], Any]:
    torch = importlib.import_module("torch")
    place = functools.partial(_spanning, device=torch.device(word))
    place(torch.zeros(1)).cpu()
    return place


def _spanning(tensor: Any, device: Any) -> Any:
    """Copies all from the first to the last element, so that strides stay as they are."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    if math.prod(tensor.shape) == 0 or span * tensor.element_size() > _MOST_BYTES:
        return tensor.to(device)
    return tensor.as_strided((span,), (1,)).to(device).as_strided(tensor.shape, tensor.stride())


def _of_jax(word: str) -> Callable[[Any], Any]:
    jax = importlib.import_module("jax")
    platform, _, index = word.partition(":")
    there = jax.devices(platform)
    if not 0 <= int(index or 0) < len(there):
        raise IndexError(f"{len(there)} of platform {platform!r}")
    return functools.partial(jax.device_put, device=there[int(index or 0)])


def _available_to_torch() -> List[str]:
    torch = importlib.import_module("torch")
    return ["cpu", *(f"{kind}:{index}" for kind in ("cuda", "xpu") if hasattr(torch, kind)
                     for index in range(getattr(torch, kind).device_count()))]


def _available_to_jax() -> List[str]:
    jax = importlib.import_module("jax")
    platforms = dict.fromkeys(["cpu", jax.default_backend()])
    return [f"{platform}:{index}" for platform in platforms
            for index in range(len(jax.devices(platform)))]


_KINDS = {"torch": _of_torch, "jax": _of_jax}
_AVAILABLE = {"torch": _available_to_torch, "jax": _available_to_jax}
