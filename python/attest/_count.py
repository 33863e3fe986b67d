"""Counts words beside lower bounds: of a schedule, or of a function's kernels in Triton: `count`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from attest import _command, _library
from attest._emulation.autotune import Choice, chosen, require_taken
from attest._certify import given_options, prepared, replay_line
from attest._conventions import Convention
from attest._emulation.devices import emulated_target
from attest._emulation.gpu import EmulatedGpu, Launch, emulated_gpu
from attest._report import finding_text

DEVICE = "emulated:sm_80"
_WIDEST = 255  # registers of a thread that PTX's targets have
_REGISTERS = 1 << 16  # of a multiprocessor
_REGISTER_BYTES = 4


def count(subject: Union[str, Callable[..., Any]], problem: str, *, fast_words: Optional[int] = None,
          fast_bytes: Optional[int] = None, best: bool = True, device: str = DEVICE,
          autotune: Union[str, Choice, None] = None, like: Union[str, Convention, None] = None, numerics: Any = "f32",
          limits: Optional[Iterable[str]] = None, gradients: Optional[bool] = None,
          backward: Optional[Callable[..., Any]] = None) -> Dict[str, Any]:
    """Returns the words that a schedule or a function moves, and every kernel must.

    `subject`  a schedule like "flash2" or "flash2:bq=64,bk=64" (`attest list schedules`), or a function
               whose kernels are Triton's
    `problem`  a line like "sq=4096,d=64", or what `attest.problem` returns

    For a schedule the result is that of `attest count --json` (certify/schemas/count.schema.json), and one size of
    fast memory is needed. For a function it has, of its forward pass:

    `autotune`       the configuration of an autotuned kernel that was asked for, or None
    `launches`       of one call, each with its words by tensor, and the registers of a thread
                     (and `local_bytes`, where ptxas found too few of them)
    `moved`          words and bytes of all of them together
    `fast_bytes`     shared memory, registers and local memory of a block, of the launch that has most
    `registers_by`   "ptxas" where one was found, else "target": the most that a thread can have
    `lower_bound`    for every kernel of the class with that fast memory: the greatest, in bytes
    `ratio`          bytes moved over it; both are None where no bound applies
    `class`, `best_schedule`  as `attest count --json` has them
    `backward`       the same fields of the backward pass, where `gradients=True` asks for it or `backward=`
                     computes it; else None. Its launches are those that torch's autograd makes, or that
                     function; bounds and schedules are of backward passes.

    The function is called as `certify` calls it (`autotune`, `like`, `numerics`, `limits`, `gradients`, `backward`), and
    judged before it is counted. Raises AssertionError where a result is outside its bound, and ValueError or
    TypeError with the reason where there is nothing to count. `best=False` leaves out the best tiles of
    every schedule, which take long on large masks.
    """
    if isinstance(subject, str):
        if gradients is not None or backward is not None or autotune is not None:
            raise ValueError("gradients, backward and autotune are for functions; a schedule is of one pass, like "
                             "two_pass of the backward one")
        return _command.count_schedule(subject, problem, fast_words, fast_bytes, best)
    if not callable(subject):
        raise TypeError(f"count takes a schedule's name or a function, not a {type(subject).__name__}")
    if fast_words is not None or fast_bytes is not None:
        raise ValueError("fast_words and fast_bytes are for schedules; a function's blocks have what they "
                         "were compiled for")
    return _of_function(subject, problem, best, {"device": device, "autotune": autotune, "like": like, "numerics": numerics,
                                                 "limits": limits, "gradients": gradients, "backward": backward})


def _of_function(fn: Callable[..., Any], problem: str, best: bool, given: Dict[str, Any]) -> Dict[str, Any]:
    target = emulated_target(given["device"])
    choice = chosen(given["autotune"])
    with emulated_gpu(target, choice or None) as gpu:
        of_forward, of_backward = _judged_launches(fn, problem, given, gpu, choice)
    # The bound for kernels that declare nothing is the same beside any schedule of the pass.
    beside = functools.partial(_beside_bounds, problem=problem, target=target, best=best)
    return {"schema": "attest-function-count-1", "function": getattr(fn, "__name__", type(fn).__name__),
            "device": given["device"], "autotune": choice or None, **beside(of_forward, schedule="flash2"),
            "backward": beside(of_backward, schedule="two_pass") if of_backward else None}


def _beside_bounds(launches: List[Launch], schedule: str, problem: str, target: str, best: bool) -> Dict[str, Any]:
    """Returns what one pass moves, beside the bounds for its fast memory."""
    kernels = [_with_registers(one, target) for one in launches]
    fast_bytes = max(_fast_bytes(one) for one in kernels)
    beside = _command.count_schedule(schedule, problem, None, fast_bytes, best)
    lower = beside["lower_of_every"]
    moved = {"words": sum(sum(one["read"].values()) + sum(one["written"].values()) for one in kernels),
             "bytes": sum(one["moved_bytes"] for one in kernels)}
    return {"problem": beside["problem"], "launches": kernels, "moved": moved, "fast_bytes": fast_bytes,
            "registers_by": "ptxas" if all(one["registers_by"] == "ptxas" for one in kernels) else "target",
            "lower_bound": lower, "ratio": moved["bytes"] / lower["bytes"] if lower else None,
            "class": beside["class"], "best_schedule": beside["best_schedule"]}


def _judged_launches(fn: Callable[..., Any], problem: str, given: Dict[str, Any],
                     gpu: EmulatedGpu, choice: Choice) -> Tuple[List[Launch], List[Launch]]:
    """Returns the launches of a forward and of a backward call, which the reference judged; the latter may be none."""
    calls: List[Tuple[int, int]] = []  # where the launches of each forward call begin and end

    @functools.wraps(fn)
    def watched(*arrays: Any, **words: Any) -> Any:
        begin = len(gpu.launches)
        returned = fn(*arrays, **words)
        calls.append((begin, len(gpu.launches)))
        return returned

    gpu.keeps_to_choice = False  # in first calls, which are small
    gradients = bool(given["gradients"]) if given["backward"] is None else given["gradients"]
    kernel, contract = prepared(watched, like=given["like"], numerics=given["numerics"], limits=given["limits"],
                                gradients=gradients, backward=given["backward"])
    gpu.keeps_to_choice = True
    if choice:
        require_taken(choice, gpu.configurations)
    if not kernel.claims_lse:
        raise ValueError(f"{kernel.name} returns no lse, and the bounds are of kernels that write it; "
                         "return (out, lse)")

    def judged(law: str) -> None:
        text = _library.check(kernel.struct, contract, f"{problem} values=normal seed=1 threads=1", law)
        if text:
            finding = json.loads(text)
            finding["reproduce"] = replay_line(fn, finding, given_options(**given))
            raise AssertionError(f"{kernel.name} is not counted, for it is refused\n" + finding_text(finding))

    def required(launches: List[Launch], of: str) -> List[Launch]:
        if not launches:
            raise ValueError(f"{of} launched no kernel in Triton, so there is nothing to count")
        return launches

    judged("reference_forward")
    forward = required(gpu.launches[slice(*calls[-1])], kernel.name)
    if not kernel.differentiates:
        return forward, []
    judged("reference_backward")
    after_forward = calls[-1][1]
    return forward, required(gpu.launches[after_forward:], f"the backward pass of {kernel.name}")


def _with_registers(launch: Launch, target: str) -> Dict[str, Any]:
    """Returns the fields of a launch with the registers of its threads."""
    fields = dataclasses.asdict(launch)
    found = _allotted(fields.pop("ptx"), target)
    fields["registers"], fields["local_bytes"] = found or (min(_WIDEST, _REGISTERS // launch.threads), 0)
    fields["registers_by"] = "ptxas" if found else "target"
    return fields


def _fast_bytes(launch: Dict[str, Any]) -> int:
    """Returns what a block holds: what is spilled is not counted as moved, so it is held."""
    of_a_thread = launch["registers"] * _REGISTER_BYTES + launch["local_bytes"]
    held: int = launch["shared_bytes"] + launch["threads"] * of_a_thread
    return held


@functools.lru_cache(maxsize=None)
def _allotted(ptx: str, target: str) -> Optional[Tuple[int, int]]:
    """Returns registers and bytes of local memory of a thread as ptxas allots them; None without ptxas."""
    program = _ptxas()
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ptx)
        done = subprocess.run([program, "-v", "--gpu-name", target, "-o", os.path.join(folder, "kernel"), path],
                              capture_output=True, text=True)
    found = re.search(r"Used (\d+) registers", done.stderr)
    stack = re.search(r"(\d+) bytes stack frame", done.stderr)
    return (int(found[1]), int(stack[1]) if stack else 0) if done.returncode == 0 and found else None


def _ptxas() -> Optional[str]:
    """Returns Triton's ptxas, or the one in the path."""
    with contextlib.suppress(Exception):  # where Triton has none it raises one of several
        path: str = importlib.import_module("triton").knobs.nvidia.ptxas.path
        if os.access(path, os.X_OK):
            return path
    return shutil.which("ptxas")
