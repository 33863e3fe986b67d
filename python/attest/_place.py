"""Names functions so that a fresh interpreter finds them: MODULE:NAME, FILE.py:NAME, or pickled."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import operator
import os
import pathlib
import pickle
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Optional, Tuple

_PICKLED = "pickled:"

loading = False
"""A function is being looked up: the file that holds it must not begin a campaign."""


def place_of(option: Any) -> Optional[str]:
    """Returns the word by which `at` finds a function or a convention; None where no word does."""
    module, name = _variable_of(option)
    if module is None:
        return None
    if module.__name__ not in ("__main__", "__mp_main__"):  # the latter in a pool's processes
        return f"{module.__name__}:{name}"
    file = getattr(module, "__file__", None)
    return f"{file}:{name}" if file and pathlib.Path(file).is_file() else None


def name_of(option: Any, otherwise: str) -> str:
    """Returns the name of the variable that holds a function or a convention, for a line of Python."""
    name = _variable_of(option)[1] or getattr(option, "__name__", "")
    return name if name.replace(".", "").isidentifier() else otherwise


def word_of(option: Any) -> str:
    """Returns the word for an option that is a function or a convention.

    Raises TypeError where there is none.
    """
    place = place_of(option)
    if place is None:
        raise TypeError(f"{option!r} has no place")
    return place


def _variable_of(option: Any) -> Tuple[Optional[ModuleType], str]:
    """Returns the module and the name in it of what holds the option; (None, "") where none does.

    Looks for what its own name does not find, as the result of jax.jit or a convention: among modules
    of its package first, in others the youngest first, for the older ones import from it.
    """
    home, name = getattr(option, "__module__", None) or "", getattr(option, "__qualname__", "")
    try:
        if home in sys.modules and operator.attrgetter(name)(sys.modules[home]) is option:
            return sys.modules[home], name
    except AttributeError:
        pass
    modules = [one for word, one in reversed(list(sys.modules.items()))
               if isinstance(one, ModuleType) and one.__name__ == word]
    package = home.partition(".")[0]
    modules.sort(key=lambda one: (one.__name__ != home, one.__name__.partition(".")[0] != package))
    return next(((module, name) for module in modules for name, held in list(vars(module).items())
                 if held is option), (None, ""))


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
    words = {key: value for key, value in given.items() if key in ("backward", "like") and ":" in value}
    return _found(word), {**given, **{key: _found(value) for key, value in words.items()}}


def file_of(word: str) -> str:
    """Returns the file of the module in which `at` found the function; "" where there is none.

    A module inside an extension, as torch._C._nn, has the extension's.
    """
    if word.startswith(_PICKLED):
        return ""
    place = word.rpartition(":")[0]
    if place.endswith(".py"):
        return os.path.abspath(place)
    while place:
        file = getattr(sys.modules.get(place), "__file__", None)
        if file:
            return os.path.abspath(file)
        place = place.rpartition(".")[0]
    return ""


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
