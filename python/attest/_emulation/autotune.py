"""Chooses which configuration an autotuned kernel in Triton takes: `configurations`.

A choice is a dict of what names one configuration, like {"BLOCK_M": 64, "num_warps": 4}: of each kernel that has
these words, or by the kernel's name, like {"my_kernel": {"BLOCK_M": 64}}. As text: "BLOCK_M=64,num_warps=4",
"my_kernel.BLOCK_M=64".
"""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Union

Configurations = Dict[str, List[Dict[str, Any]]]
"""All of them, by kernel."""
Choice = Dict[str, Any]

EACH = "each"


def chosen(given: Union[str, Choice, None]) -> Choice:
    """Returns the choice that was given as a dict or as text. Raises ValueError, TypeError."""
    if given is None:
        return {}
    if isinstance(given, dict) and given and all(isinstance(key, str) for key in given):
        return given
    if not isinstance(given, str):
        raise TypeError(f"autotune is {given!r}; give what names a configuration, like {{'BLOCK_M': 64}}")
    if given == EACH:
        raise ValueError("autotune='each' is for `attest certify` and `attest count`; here give one of "
                         "attest.configurations(fn) after the other")
    kernel = given.partition("=")[0].rpartition(".")[0]
    choice: Choice = {}
    for word in given.removeprefix(kernel + ".").split(","):
        key, equals, value = word.partition("=")
        if not (key.strip().isidentifier() and equals):
            raise ValueError(f"autotune is {given!r}, where {word!r} is no name=value; write BLOCK_M=64,num_warps=4 or "
                             "my_kernel.BLOCK_M=64")
        choice[key.strip()] = _value(value.strip())
    return {kernel.strip(): choice} if kernel else choice


def _value(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def spelled(choice: Choice) -> str:
    """Returns the text of a choice that `chosen` reads."""
    kernel, words = next(iter(choice.items()))
    if not isinstance(words, dict):
        kernel, words = "", choice
    return f"{kernel}." * bool(kernel) + ",".join(f"{key}={value}" for key, value in words.items())


def wanted_of(kernel: str, known: List[Dict[str, Any]], choice: Choice) -> Optional[Dict[str, Any]]:
    """Returns what names the kernel's configuration; None where the choice is of other kernels.

    Raises ValueError where it names none of the `known`, or several.
    """
    own = choice.get(kernel)
    wanted = own if isinstance(own, dict) else \
        {key: value for key, value in choice.items() if not isinstance(value, dict)}
    if not wanted or own is None and not any(key in one for one in known for key in wanted):
        return None
    many = sum(wanted.items() <= one.items() for one in known)
    if many != 1:
        raise ValueError(f"autotune={wanted} names {many or 'none'} of the configurations of '{kernel}'; they are: "
                         + "; ".join(map(str, known)))
    return wanted


def require_taken(choice: Choice, seen: Configurations) -> None:
    """Raises ValueError where no kernel of the choice was among those that were launched."""
    if any(wanted_of(kernel, known, choice) for kernel, known in seen.items()):
        return
    autotuned = "; ".join(f"'{kernel}' by {', '.join(_differing(known))}" for kernel, known in seen.items())
    raise ValueError(f"autotune={choice}, but first calls launched no autotuned kernel of it; "
                     + (f"they launched {autotuned}" if autotuned else "they launched none that is autotuned"))


def choices(seen: Configurations) -> List[Choice]:
    """Returns a choice for each configuration of each kernel, in the words that tell them apart."""
    return [{kernel: {key: one[key] for key in _differing(known)}} for kernel, known in seen.items() for one in known]


def _differing(known: List[Dict[str, Any]]) -> List[str]:
    first = known[0]
    return [key for key in first if any(one.get(key) != first[key] for one in known)] or list(first)


def configurations(fn: Callable[..., Any], *, device: str = "emulated:sm_80", **options: Any) -> List[Choice]:
    """Returns the configurations of the autotuned kernels that small calls of a function launch.

        for one in attest.configurations(my_attention):
            attest.certify(my_attention, device="emulated:sm_80", autotune=one).raise_if_refused()

    Each names one configuration of one kernel; with it the others take what moves the fewest words. The options
    are `like`, `dtypes`, `claims`, `limits`, `gradients` and `backward` of `certify`. Raises ValueError where
    nothing is autotuned, and what `fn` raises on a plain problem.
    """
    from attest._certify import prepared  # which takes a choice itself
    from attest._emulation.devices import emulated_target
    from attest._emulation.gpu import emulated_gpu
    with emulated_gpu(emulated_target(device)) as gpu:
        prepared(fn, **options)
    if not gpu.configurations:
        raise ValueError(f"small calls of {getattr(fn, '__name__', 'the function')} launch no autotuned kernel")
    return choices(gpu.configurations)
