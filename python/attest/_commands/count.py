"""Counts a function for `attest count --kernel`: `python -m attest._commands.count PLACE OPTIONS PROBLEM [FLAG...]`.

PLACE is a word of `attest._place`, OPTIONS those of `certify` that were given (JSON), the flags are --json,
--no-best and --gradients. With autotune=each it counts each configuration, and JSON is a list. Exit codes are the
command's.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List

from attest import _place
from attest._count import DEVICE, count
from attest._emulation import devices
from attest._emulation.autotune import EACH, configurations, spelled
from attest._kernel import users_traceback
from attest._library import NothingProved

_TAKEN = {"autotune", "backward", "device", "like", "limits", "numerics"}
_REFUSED, _BAD_INPUT, _NOTHING_PROVED = 1, 2, 3


def main(words: List[str]) -> int:
    place, options, problem, *flags = words
    try:
        given = json.loads(options)
        with devices.importing(given.get("device", DEVICE)):
            fn, given = _place.at(place, given)
        for word in sorted(set(given) - _TAKEN):
            raise ValueError(f"--{word.replace('_', '-')} is not for a count; it takes --device, --autotune, --like, "
                             "--numerics, --limits and --backward")
        gradients = True if "--gradients" in flags else None
        each = given.get("autotune") == EACH
        if each:
            options = {key: given[key] for key in ("device", "like", "limits", "backward") if key in given}
            choices = configurations(fn, gradients=gradients, **options)
        else:
            choices = [given.get("autotune")]
        counted = [count(fn, problem, best="--no-best" not in flags, gradients=gradients,
                         **{**given, "autotune": choice}) for choice in choices]
    except NothingProved as error:  # an AssertionError too
        return _failed(str(error), _NOTHING_PROVED)
    except AssertionError as error:
        return _failed(str(error), _REFUSED)
    except (ValueError, TypeError) as error:
        return _failed(str(error), _BAD_INPUT)
    except Exception as error:
        return _failed(users_traceback(error), _BAD_INPUT)
    if "--json" in flags:
        print(json.dumps(counted if each else counted[0], indent=2))
    else:
        print("\n\n".join(map(_text, counted)))
    return 0


def _failed(text: str, code: int) -> int:
    print(f"attest: {text}", file=sys.stderr)
    return code


def _text(counted: Dict[str, Any]) -> str:
    tuned = f", autotuned to {spelled(counted['autotune'])}" if counted["autotune"] else ""
    parts = [f"function  {counted['function']} on {counted['device']}{tuned}\n{counted['problem']}", _text_of_pass(counted)]
    if counted["backward"]:
        parts += ["backward pass", _text_of_pass(counted["backward"])]
    return "\n\n".join(parts)


def _text_of_pass(counted: Dict[str, Any]) -> str:
    lines = []
    for launch in counted["launches"]:
        lines.append(f"launch of {launch['kernel']}, grid {'x'.join(map(str, launch['grid']))}")
        lines += [f"  {name:<24} {launch['read'][name]:>16,} words read {launch['written'][name]:>16,} written"
                  for name in launch["read"]]
        by = "as ptxas allots them" if launch["registers_by"] == "ptxas" else "at most, no ptxas was found"
        lines.append(f"  a block: {launch['shared_bytes']:,} bytes of shared memory, {launch['threads']} threads with "
                     f"{launch['registers']} registers each ({by})")
        if launch["local_bytes"]:
            lines.append(f"  and {launch['local_bytes']:,} bytes of local memory a thread, which its registers do not hold: "
                         "counted as fast memory, for its words are not")
    moved, lower, best = counted["moved"], counted["lower_bound"], counted["best_schedule"]
    lines += ["", f"  {'moved':<24} {moved['words']:>16,} words {moved['bytes']:>16,} bytes",
              f"  {'fast memory of a block':<24} {counted['fast_bytes']:>39,} bytes"]
    if lower:
        lines += [f"  {lower['name']:<24} {lower['words']:>16,} words {lower['bytes']:>16,} bytes, lower bound for every "
                  "kernel of the class", f"moved / lower bound: {counted['ratio']:.3f}", "class"]
        lines += [f"  {one['name']}  {one['text']}" for one in counted["class"]["conditions"]]
    else:
        lines.append("no lower bound applies")
    if best:
        moved = best[0]["traffic"]["moved"]
        lines += ["best schedule with that fast memory",
                  f"  {best[0]['schedule']:<24} {moved['words']:>16,} words {moved['bytes']:>16,} bytes"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
