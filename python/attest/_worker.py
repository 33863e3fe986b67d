"""Serves one function to a certifier: `python -m attest._worker NAME PLACE OPTIONS PATH [--described]`.

NAME is the kernel's, PLACE a word of `attest._place`, OPTIONS those of `certify` that say how the function is called
(JSON), PATH the folders to import from (JSON), [] for this interpreter's own.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import List

from attest import _library, _place
from attest._emulation import devices
from attest._certify import prepared
from attest._kernel import users_frames, users_traceback


def main(words: List[str]) -> None:
    name, place, options, path, *described = words
    sys.path[:] = json.loads(path) or sys.path
    try:
        given = json.loads(options)
        with devices.importing(given.get("device")):
            fn, given = _place.at(place, given)
        devices.load(given.get("device"))
        gc.freeze()  # what is imported stays: no collection looks at it again in each process
        _library.fork_here()  # all is imported, and nothing called: calls start threads
        kernel, contract = prepared(fn, known=bool(described), **given)
    except BaseException as error:  # the certifier shows it; nothing else would
        of_package = users_frames(error) is None and isinstance(error, (TypeError, ValueError))
        _library.serve(None, "", str(error) if of_package else users_traceback(error))
    else:
        kernel.struct.description.name = name.encode()
        _library.serve(kernel.struct, contract, "", _place.file_of(place))


if __name__ == "__main__":
    main(sys.argv[1:])
