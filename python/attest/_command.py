"""Runs the `attest` command that the package holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional, Sequence

from attest._library import PACKAGE, InternalError

_PROGRAM = str(PACKAGE / "bin" / "attest")
_BAD_INPUT = 2


def main() -> None:
    """Becomes the command, with this process's arguments; functions are those of this Python."""
    os.environ.setdefault("ATTEST_PYTHON", sys.executable)
    os.execv(_PROGRAM, ["attest", *sys.argv[1:]])


def count_schedule(schedule: str, problem: str, fast_words: Optional[int], fast_bytes: Optional[int],
                   best: bool) -> Dict[str, Any]:
    """Returns what `attest count --json` prints; raises ValueError with the command's message."""
    options = ["--schedule", schedule, "--problem", problem]
    options += _option("--fast-words", fast_words) + _option("--fast-bytes", fast_bytes)
    return _run("count", options + ([] if best else ["--no-best"]))


def regime(*, devices: Sequence[str] = (), models: Sequence[str] = (), dtypes: Sequence[str] = (),
           fast_bytes: Optional[int] = None, head_dim: Optional[int] = None,
           head_dim_v: Optional[int] = None, seqlen: Optional[int] = None, mask: Optional[str] = None,
           direction: Optional[str] = None) -> Dict[str, Any]:
    """Returns on which side of d^2 fast memories lie, as `attest regime --json` says.

    The fields of the result are described in certify/schemas/regime.schema.json, the keywords by
    `attest regime --help`. Raises ValueError with the command's message where they make no sense.
    """
    options = [word for name, values in (("--device", devices), ("--model", models),
                                         ("--dtype", dtypes))
               for value in values for word in (name, value)]
    for name, value in (("--fast-bytes", fast_bytes), ("--head-dim", head_dim),
                        ("--head-dim-v", head_dim_v), ("--seqlen", seqlen), ("--mask", mask),
                        ("--direction", direction)):
        options += _option(name, value)
    return _run("regime", options)


def _option(name: str, value: Any) -> List[str]:
    return [] if value is None else [name, str(value)]


def _run(command: str, options: List[str]) -> Dict[str, Any]:
    done = subprocess.run([_PROGRAM, command, *options, "--json"], capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    message = done.stderr.strip()
    raise (ValueError if done.returncode == _BAD_INPUT else InternalError)(message)
