"""Runs campaigns on functions in Python; the C library draws the cases and judges."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
import sys
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from attest import _executors, _library, _place
from attest._emulation.autotune import Choice
from attest._claims import claims_of
from attest._conventions import Convention, convention
from attest._features import Numerics, contract_text
from attest._function import Function
from attest._isolated import IsolatedKernel
from attest._kernel import Kernel
from attest._later import refusing_by_name
from attest._report import Report, finding_text, problem_in


@refusing_by_name
def certify(fn: Callable[..., Any], *, like: Union[str, Convention, None] = None,
            device: Optional[str] = None, autotune: Union[str, Choice, None] = None,
            isolate: bool = True, timeout: Optional[int] = None, memory_limit: Optional[int] = None,
            numerics: Numerics = "f32", dtypes: Optional[Iterable[str]] = None, claims: Optional[Iterable[str]] = None,
            limits: Optional[Iterable[str]] = None, gradients: Optional[bool] = None,
            backward: Optional[Callable[..., Any]] = None, empty_row: Optional[str] = None,
            past_length: Optional[str] = None, lse_base: Optional[str] = None, tier: str = "smoke",
            seed: int = 1, cases: Optional[int] = None, shapes: Optional[str] = None,
            jobs: Optional[int] = None, problems: Iterable[str] = (), only: Optional[str] = None,
            executor: Union[Executor, Callable[[], Executor], None] = None,
            shards: Optional[int] = None) -> Report:
    """Runs the campaign of `attest certify` on a function of attention and returns its report.

    `fn`         called as fn(q, k, v, **keywords); returns out or (out, lse). lse is judged where a
                 first call returned it. NotImplementedError and ValueError refuse a problem, which
                 leaves a gap in the certificate; any other exception is a finding.
    `like`       its convention: a name of `attest.CONVENTIONS` or a `Convention`; None: the one all of
                 whose keywords its signature names, else "plain".
    `device`     of torch or jax, like "cuda" or "cuda:1": arrays are copied there, results come back.
                 "emulated:sm_80": kernels in Triton run as within `emulated_gpu`. None: the host.
    `autotune`   on an emulated device: one of `configurations(fn)`, as in `emulated_gpu`. None: autotuned
                 kernels take the configuration that moves the fewest words.
    `isolate`    the function is called in fresh interpreters: a crash, a hang, an exit, a write into
                 an input or outside an output is a finding. A function that is not at the top of a
                 module needs cloudpickle. False: in this process, and the certificate says what that
                 does not see.
    `timeout`, `memory_limit`  seconds of one call (30) and MiB (4096) of such an interpreter.
    `numerics`   its arithmetic, as in `assert_close`.
    `dtypes`     "f64", "f32", "bf16", "f16"; None: those that come back from a first call.
    `claims`     features as the certificate names them ("causal", "gqa", "lse", ...); None: those of
                 its keywords whose first call raises nothing.
    `limits`     the sizes that it serves, in words of the certificate: "seqlen_q%128" (multiples),
                 "seqlen_k>=16", "seqlen_k<=4096", "head_dim=64|128", "batch<=4", "num_heads_q<=8".
    `gradients`  judges them too: by torch's autograd or `jax.vjp`, whose calls forward then is made by
                 as well. None: where a first call has some; True: an error where it has none.
    `backward`   computes them instead, called as backward(q, k, v, out, lse, dout, **keywords) with out
                 and lse (None without) as `fn` returned them; returns (dq, dk, dv), then dsinks and dbias
                 where it is given sinks and a bias.
    `empty_row`  what rows without a visible key hold, as in `assert_close`: claims such rows.
    `past_length`  "not_written": rows past query lengths hold anything in what it returns.
    `tier`, `seed`, `cases`, `shapes`, `jobs`, `problems`, `only` are options of `attest certify --help`.
    `executor`   of `concurrent.futures`, Dask or mpi4py: its workers run the campaign in so many
                 `shards` (32), each with one job unless told otherwise. A lost shard runs again; in
                 a pool that broke, where a function that makes the executor is given in its place.
    Ctrl-C ends at the next check: the report is partial.
    Raises ValueError, TypeError for what makes no sense, and what `fn` raises on a plain problem.
    """
    given = given_options(like=like, device=device, autotune=autotune, numerics=numerics, dtypes=dtypes,
                   claims=claims, limits=limits, gradients=gradients, backward=backward,
                   empty_row=empty_row, past_length=past_length, lse_base=lse_base)
    function = Function(fn, convention(like, fn), limits=limits)
    if isinstance(problems, str):
        raise TypeError(f"problems is {problems!r}; give a list of problems")
    words = {"tier": tier, "seed": seed, "cases": cases, "shapes": shapes, "only": only,
             "jobs": 1 if jobs is None and executor is not None else jobs}
    options = " ".join([*(f"{name}={value}" for name, value in words.items() if value is not None),
                        *(f"problem={problem}" for problem in problems)])
    isolation = {"isolate": isolate, "timeout": timeout, "memory_limit": memory_limit}
    run = functools.partial(_campaign, given=given, isolation=isolation, options=options)
    if executor is None and shards is not None:
        raise ValueError("shards without an executor to run them; give executor=")
    with _Progress(function.name, "checks" if executor is None else "shards") as progress:
        if executor is None:
            text = run(fn, progress=progress)
        else:
            text = _executors.certify(run, fn, function.arrays, executor, shards, progress)
    report = Report(json.loads(text))
    for finding in report.findings:
        finding["reproduce"] = replay_line(fn, finding, {**given, **given_options(**isolation)})
    return report


def _campaign(fn: Callable[..., Any], *, given: Dict[str, Any], isolation: Dict[str, Any], options: str,
              progress: Any, arrays: Optional[str] = None, shard: Optional[str] = None,
              shards: Optional[List[str]] = None) -> str:
    """Returns the certificate (JSON) of a campaign, of a shard of it, or of what `shards` make.

    `arrays` are those of the function, where its module is not at hand to tell.
    """
    if arrays is not None:
        like = convention(given.get("like"), fn)
        given = {**given, "like": dataclasses.replace(like, arrays=arrays)}
    if shard is not None:
        options += f" shard={shard}"
    with _subject(fn, given, **isolation) as (kernel, contract):
        if shards is None:
            return _interruptible(
                lambda: _library.certify(kernel.struct, contract, options, progress.told), progress)
        return _interruptible(
            lambda: _library.merge(kernel.struct, contract, options, shards, progress.told), progress)


@refusing_by_name
def replay(fn: Callable[..., Any], problem: str, *, law: str = "reference_forward",
           values: str = "normal", seed: int = 1, threads: int = 1, repeat: int = 1,
           after: Iterable[str] = (),
           like: Union[str, Convention, None] = None, device: Optional[str] = None,
           autotune: Union[str, Choice, None] = None, isolate: bool = True, timeout: Optional[int] = None,
           memory_limit: Optional[int] = None, numerics: Numerics = "f32", dtypes: Optional[Iterable[str]] = None,
           claims: Optional[Iterable[str]] = None, limits: Optional[Iterable[str]] = None,
           gradients: Optional[bool] = None,
           backward: Optional[Callable[..., Any]] = None,
           empty_row: Optional[str] = None, past_length: Optional[str] = None,
           lse_base: Optional[str] = None) -> None:
    """Checks one law on one case again, as the last line of a finding has it.

    `repeat`     how often in one process, until it fails: a function may change with its calls.
    `after`      cases that are checked before it there, "PROBLEM values=V seed=S threads=T"; what is
                 left out is as in the case itself.
    With isolate=False a debugger sees the call. Raises AssertionError with the finding, NothingProved
    where the case has nothing to judge, and what `certify` raises.
    """
    __tracebackhide__ = True
    given = given_options(like=like, device=device, autotune=autotune, numerics=numerics, dtypes=dtypes,
                   claims=claims, limits=limits, gradients=gradients, backward=backward,
                   empty_row=empty_row, past_length=past_length, lse_base=lse_base)
    if isinstance(after, str):
        raise TypeError(f"after is {after!r}; give a list of cases")
    case = "\n".join([f"{problem} values={values} seed={seed} threads={threads}", f"repeat={repeat}",
                      *(f"after={earlier}" for earlier in after)])
    with _subject(fn, given, isolate, timeout, memory_limit) as (kernel, contract):
        text = _library.check(kernel.struct, contract, case, law)
    if text:
        finding = json.loads(text)
        isolation = given_options(isolate=isolate, timeout=timeout, memory_limit=memory_limit)
        finding["reproduce"] = replay_line(fn, finding, {**given, **isolation})
        raise AssertionError(f"{kernel.name} is refused\n" + finding_text(finding))


_LISTS = ("dtypes", "claims", "limits")


def given_options(**options: Any) -> Dict[str, Any]:
    """Returns the options that were given, iterables as lists, so that a line can spell them."""
    usual = {"numerics": "f32", "isolate": True}
    for name in _LISTS:
        if isinstance(options.get(name), str):
            raise TypeError(f"{name} is {options[name]!r}; give a list of words, like [{options[name]!r}]")
    return {name: sorted(value) if name in _LISTS else value
            for name, value in options.items() if value is not None and value != usual.get(name)}


@contextlib.contextmanager
def _subject(fn: Callable[..., Any], given: Dict[str, Any], isolate: bool, timeout: Optional[int],
             memory_limit: Optional[int]) -> Iterator[Tuple[Any, Optional[str]]]:
    """Yields the kernel of a function, and the text of its contract where it has none of its own."""
    if not callable(fn):
        raise TypeError(f"fn is a {type(fn).__name__}; give a function")
    if not isolate:
        if timeout is not None or memory_limit is not None:
            raise ValueError("timeout and memory_limit are of a fresh interpreter; leave out "
                             "isolate=False")
        yield prepared(fn, **given)
        return
    kernel = IsolatedKernel(fn, given, timeout, memory_limit)
    try:
        yield kernel, None
    finally:
        kernel.close()


def prepared(fn: Callable[..., Any], known: bool = False, like: Union[str, Convention, None] = None,
             device: Optional[str] = None, autotune: Union[str, Choice, None] = None,
             numerics: Numerics = "f32", dtypes: Optional[List[str]] = None,
             claims: Optional[List[str]] = None, limits: Optional[List[str]] = None,
             gradients: Optional[bool] = None,
             backward: Optional[Callable[..., Any]] = None, **conventions: str) -> Tuple[Kernel, str]:
    """Returns the kernel of a function and the text of its contract.

    `known`: its features are not asked for, and the kernel claims none; a first call is made.
    """
    function = Function(fn, convention(like, fn), device, autotune, limits)
    if known:
        claims = []
    kernel = Kernel(function, claims_of(function, dtypes, claims, "empty_row" in conventions,
                                        gradients, backward),
                    leaves_rows=conventions.get("past_length") == "not_written")
    function.keep_to_choice()
    return kernel, contract_text(numerics, conventions)


def replay_line(fn: Callable[..., Any], finding: Dict[str, Any], given: Dict[str, Any]) -> str:
    """Returns the line of Python that checks a finding's case again, with what its process did before."""
    case = finding["shrunk"]
    words = {"law": finding["law"], **{key: case[key] for key in ("values", "seed", "threads")}}
    if finding["checks"] > 1:
        words["repeat"] = finding["checks"]
    if finding["after"]:
        words["after"] = [f"{problem_in(one)} values={one['values']} seed={one['seed']} threads={one['threads']}"
                          for one in finding["after"]]
    words.update(given)
    options = ", ".join(f"{key}={_spelled(key, value)}" for key, value in words.items())
    return f"attest.replay({_spelled('fn', fn)}, {problem_in(case)!r}, {options})"


def _spelled(keyword: str, value: Any) -> str:
    """Returns Python for a keyword's value; what a variable holds goes by its name."""
    named = isinstance(value, Convention) or callable(value)
    return _place.name_of(value, keyword) if named else repr(value)


class _Progress:
    """Shows how far a campaign is, on a standard error that is a terminal; and ends it."""

    def __init__(self, name: str, unit: str):
        self.ended = False
        self._name, self._unit, self._begin, self._shown = name, unit, time.monotonic(), 0.0
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def told(self, _: Any, done: int, total: int) -> int:
        now = time.monotonic()
        if self._terminal and done and now - self._shown > 0.2:
            self._shown, rate = now, done / (now - self._begin)
            left = datetime.timedelta(seconds=round((total - done) / rate))
            print(f"\r{self._name}: {done} of {total} {self._unit}, "
                  f"{rate:.{0 if rate > 10 else 2}f}/s, {left} left \033[K", end="", file=sys.stderr,
                  flush=True)
        return int(self.ended)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _interruptible(work: Callable[[], str], progress: Any) -> str:
    """Runs the work in a thread, for Python tells of Ctrl-C in the first one alone."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            progress.ended = True
            return future.result()
