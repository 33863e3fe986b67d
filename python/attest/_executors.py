"""Runs campaigns on the workers of an executor: a task is a shard, and the last one merges them."""

from __future__ import annotations

import collections
import contextlib
import importlib
import importlib.util
import os
import pickle
import traceback
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

_SHARDS = 32
_MOST_LOSSES = 3
_GRACE = 10.0  # seconds for shards that Ctrl-C reached too; they end at their next check

Run = Callable[..., str]  # run(fn, arrays=, shard=, shards=, progress=) gives a certificate
Executors = Union[Executor, Callable[[], Executor]]


class RemoteTraceback(Exception):
    """Shows, as a cause, where an exception was raised in a worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def certify(run: Run, fn: Callable[..., Any], arrays: str, executor: Executors,
            shards: Optional[int], progress: Any) -> str:
    """Returns the certificate of the campaign: the same, but for its times, as without an executor.

    Raises what a task raises, and RuntimeError where tasks are lost for good. Ctrl-C cancels those
    that have not begun and merges, in this process, what is known; a second one waits for no others.
    """
    count = _SHARDS if shards is None else shards
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"shards is {shards!r}; it must be a whole number from 1")
    names = [f"{index}/{count}" for index in range(1, count + 1)]
    tasks = _Tasks(executor, _packed(run, fn, arrays))
    try:
        parts = tasks.results({f"shard {name}": {"shard": name} for name in names},
                              lambda done: progress.told(None, done, count))
        return tasks.results({"the merge of all shards": {"shards": parts}})[0]
    except KeyboardInterrupt:
        progress.ended = True
        parts = tasks.known() or None
        run, fn, by_value = _unpacked(tasks.packed)  # the function as the shards' workers had it
        return run(fn, arrays=by_value, shards=parts, progress=progress)
    finally:
        tasks.close()


class _Failure(NamedTuple):
    """Holds what a task raised, and where."""

    error: Exception
    text: str


class _Unseen:
    """Ends a campaign in a worker, and shows nothing."""

    ended = False

    def told(self, *_: Any) -> int:
        return int(self.ended)


_ended: Set[str] = set()  # campaigns of which Ctrl-C reached this worker


def _task(packed: bytes, asked: Dict[str, Any], campaign: str, attempt: int) -> Union[str, _Failure]:
    """Runs a part of a campaign, in a worker, and returns its certificate.

    Exceptions are returned too: one that the executor raises then means a lost worker. Dask takes
    equal calls for one, so `campaign` and `attempt` make each another.
    """
    progress = _Unseen()
    try:
        if campaign in _ended:
            raise RuntimeError(f"the campaign was interrupted before attempt {attempt}")
        run, fn, arrays = _unpacked(packed)
        certificate = run(fn, arrays=arrays, progress=progress, **asked)
        if progress.ended:
            _ended.add(campaign)
        return certificate
    except Exception as error:
        text = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return _Failure(error, text)


class _Tasks:
    """Holds the tasks that an executor was given, until it is closed."""

    def __init__(self, executor: Executors, packed: bytes):
        if not hasattr(executor, "submit") and not callable(executor):
            raise TypeError(f"executor is a {type(executor).__name__}; give one like those of "
                            "concurrent.futures, or a function that makes one")
        self._make: Any = None if hasattr(executor, "submit") else executor
        self._executor: Any = self._make() if self._make else executor
        self.packed, self._campaign = packed, os.urandom(8).hex()
        self._pending: Dict[Future[Any], str] = {}
        self._done: Dict[str, str] = {}

    def results(self, asked: Dict[str, Dict[str, Any]],
                told: Callable[[int], Any] = lambda done: None) -> List[str]:
        """Returns the certificates of the tasks; one that is lost runs again."""
        losses: collections.Counter[str] = collections.Counter()
        again = list(asked)
        while again or self._pending:
            for name in again:
                self._submit(name, losses[name], asked)
            again = []
            for future in wait(self._pending, return_when=FIRST_COMPLETED).done:
                name = self._pending.pop(future)
                loss = _loss(future)
                if loss is None:
                    self._done[name] = _certificate(future)
                    losses.clear()
                    told(len(self._done))
                    continue
                losses[name] += 1
                if losses[name] == _MOST_LOSSES:
                    raise RuntimeError(f"{name} was lost {_MOST_LOSSES} times, the last time with "
                                       f"{_words(loss)}; a call may end its process") from loss
                again.append(name)
        return [self._done[name] for name in asked]

    def known(self) -> List[str]:
        """Cancels what has not begun, and returns the certificates there are."""
        self._cancel()
        with contextlib.suppress(KeyboardInterrupt):
            wait(self._pending, timeout=_GRACE)
        for future, name in self._pending.items():
            if future.done() and _loss(future) is None and isinstance(future.result(), str):
                self._done[name] = future.result()
        return list(self._done.values())

    def close(self) -> None:
        self._cancel()
        if self._make:
            self._executor.shutdown(wait=not self._pending)

    def _submit(self, name: str, attempt: int, asked: Dict[str, Dict[str, Any]]) -> None:
        call = (_task, self.packed, asked[name], self._campaign, attempt)
        try:
            future = self._executor.submit(*call)
        except Exception as error:
            if self._make is None:
                self.known()
                lost = ", ".join(name for name in asked if name not in self._done)
                raise RuntimeError(
                    f"the executor takes no more tasks ({_words(error)}): {lost} are lost; give a "
                    "function that makes an executor in its place, and lost shards run again in a "
                    "new one") from error
            self._executor.shutdown(wait=False)
            self._executor = self._make()
            future = self._executor.submit(*call)
        self._pending[future] = name

    def _cancel(self) -> None:
        for future in self._pending:
            future.cancel()


def _loss(future: Future[Any]) -> Optional[BaseException]:
    """Returns why a task that is over has no result; None where it has one."""
    return CancelledError("cancelled") if future.cancelled() else future.exception()


def _certificate(future: Future[Any]) -> str:
    """Returns the result of a task; raises what the task raised."""
    result = future.result()
    if isinstance(result, str):
        return result
    raise result.error from RemoteTraceback(result.text)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _packed(run: Run, fn: Callable[..., Any], arrays: str) -> bytes:
    """Returns the call for workers: by name where these can import the function, else by value.

    By value its module no longer tells the kind of its arrays. Raises ValueError where neither can
    be.
    """
    by_name = None
    try:
        by_name = pickle.dumps((run, fn, None))
        if getattr(fn, "__module__", "__main__") != "__main__":
            return by_name
    except Exception as error:
        reason = error
    if importlib.util.find_spec("cloudpickle"):
        try:
            return importlib.import_module("cloudpickle").dumps((run, fn, arrays))
        except Exception as error:
            reason = error
    if by_name is not None:  # a pool of processes has this __main__ too
        return by_name
    name = getattr(fn, "__name__", type(fn).__name__)
    raise ValueError(f"{name} and its options cannot be sent to workers ({_words(reason)}); define it at "
                     "the top of a module, or install cloudpickle") from None


def _unpacked(packed: bytes) -> Tuple[Run, Callable[..., Any], Optional[str]]:
    try:
        return pickle.loads(packed)
    except (ImportError, AttributeError) as error:
        raise ImportError(f"a worker cannot load the function ({_words(error)}); let it import the "
                          "function's module, or install cloudpickle here and there") from error
