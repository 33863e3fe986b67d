"""Prints the configurations of a function's autotuned kernels: `python -m attest._commands.configurations PLACE OPTIONS`.

PLACE is a word of `attest._place`, OPTIONS those of `certify` that were given (JSON). The last line of the output is
a list of texts that `autotune=` takes (JSON); with exit code 2 it is why there is none.
"""

from __future__ import annotations

import json
import sys
from typing import List

from attest import _place
from attest._emulation import devices
from attest._emulation.autotune import configurations, spelled
from attest._kernel import users_frames, users_traceback

_TAKEN = ("device", "like", "dtypes", "claims", "limits", "backward")


def main(words: List[str]) -> int:
    place, options = words
    try:
        given = json.loads(options)
        with devices.importing(given.get("device")):
            fn, given = _place.at(place, given)
        found = configurations(fn, **{key: given[key] for key in _TAKEN if key in given})
    except Exception as error:
        of_package = users_frames(error) is None and isinstance(error, (TypeError, ValueError))
        print(json.dumps(str(error) if of_package else users_traceback(error)))
        return 2
    print(json.dumps([spelled(one) for one in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
