"""Names functions so that a fresh interpreter finds them: MODULE:NAME, FILE.py:NAME, or pickled."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import operator
import pathlib
import pickle
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Optional

_PICKLED = "pickled:"

loading = False
"""A function is being looked up: the file that holds it must not begin a campaign."""


def place_of(fn: Callable[..., Any]) -> Optional[str]:
    """Returns the word by which `at` finds the function; None where no word does."""
    name = getattr(fn, "__qualname__", "")
    module = sys.modules.get(getattr(fn, "__module__", None) or "")
    if module is None or "<" in name or not name:
        return None
    try:
        found = operator.attrgetter(name)(module)
    except AttributeError:
        return None
    if found is not fn:
        return None
    if module.__name__ != "__main__":
        return f"{module.__name__}:{name}"
    file = getattr(module, "__file__", None)
    return f"{file}:{name}" if file and pathlib.Path(file).is_file() else None


def word_of(option: Any) -> str:
    """Returns the word for an option that is a function; raises TypeError where there is none."""
    place = place_of(option) if callable(option) else None
    if place is None:
        raise TypeError(f"{option!r} has no place")
    return place


def write_pickled(path: pathlib.Path, fn: Callable[..., Any], given: Dict[str, Any]) -> str:
    """Writes the function and its options by cloudpickle, and returns the word for it.

    Raises ValueError where that is not installed, or cannot.
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        cloudpickle = importlib.import_module("cloudpickle")
        path.write_bytes(cloudpickle.dumps((fn, given)))
    except Exception as error:
        raise ValueError(
            f"a fresh interpreter cannot find {name} and its options by name ({type(error).__name__}: "
            f"{error}); define it at the top of a module, install cloudpickle, or say isolate=False"
        ) from None
    return _PICKLED + str(path)


def at(word: str, given: Dict[str, Any]) -> Any:
    """Returns the function that the word stands for, and its options.

    Raises ValueError where there is none, and what importing its module raises.
    """
    if word.startswith(_PICKLED):
        return pickle.loads(pathlib.Path(word[len(_PICKLED):]).read_bytes())
    functions = {key: _found(given[key]) for key in ("backward",) if key in given}
    return _found(word), {**given, **functions}


def _found(word: str) -> Any:
    global loading
    place, _, name = word.rpartition(":")
    loading = True
    try:
        module = _module_of_file(place) if place.endswith(".py") else importlib.import_module(place)
    finally:
        loading = False
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        raise ValueError(f"{place} has no function '{name}'") from None


@functools.lru_cache(maxsize=None)
def _module_of_file(path: str) -> ModuleType:
    file = pathlib.Path(path).resolve()
    if not file.is_file():
        raise ValueError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent))
    spec.loader.exec_module(module)
    return module
