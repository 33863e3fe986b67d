#!/usr/bin/env python3
"""Certifies kernels that others wrote, records what comes out, and writes the page of it.

usage: certify.py [MODULE...]   runs torch_sdpa, jax_attention, ... beside this file, all without one
       certify.py --page        writes docs/in-the-wild.md from results.jsonl
       certify.py --one MODULE SUBJECT SECONDS
                                prints one record, a partial one where the seconds are over
A module says in SUBJECTS what is certified: options of attest.certify by a name. One that cannot be
imported is listed as skipped. Exit code 77 of --one: its library or the device is not there, or refuses.
"""
import functools
import importlib
import importlib.metadata
import json
import pathlib
import signal
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
RESULTS, PAGE = FOLDER / "results.jsonl", FOLDER.parents[1] / "in-the-wild.md"
MODULES = {"torch_sdpa": "torch", "jax_attention": "jax", "onnx_attention": "onnxruntime",
           "triton_flash": "triton"}
SKIPPED = 77


def subjects(module):
    """Returns the subjects of a module; none where its library is not installed."""
    try:
        return importlib.import_module(module).SUBJECTS
    except ImportError as error:
        print(f"skipped {module}: {error}")
        return {}


def record(module, name, options):
    """Certifies a subject and returns its record."""
    import attest
    options = dict(options)
    library = options.pop("library", None) or MODULES[module]
    began = time.perf_counter(), time.process_time()
    report = attest.certify(isolate=False, jobs=1, **options)
    seconds = time.perf_counter() - began[0], time.process_time() - began[1]
    kernel = report.certificate["kernels"][0]
    return {"subject": name, "module": module, "date": time.strftime("%Y-%m-%d"),
            "library": f"{library} {importlib.metadata.version(library)}",
            "numerics": options.get("numerics", "f32"), "verdict": report.verdict,
            "partial": report.certificate["interrupted"],
            "claims": kernel["description"]["features"], "cases": kernel["cases"],
            "checks": kernel["checks"]["passed"], "seconds": round(seconds[0], 1),
            "cpu_seconds": round(seconds[1], 1),
            "not_covered": kernel["incomplete"],
            "worst": {key: of["error_over_bound"] for key, of in kernel["worst"].items()},
            "findings": [{"law": one["law"], "message": one["message"], "hints": one["hints"],
                          "case": case_of(one)} for one in report.findings]}


def case_of(finding):
    """Returns the smallest case of a finding, as words of attest.replay."""
    case = {key: finding["shrunk"][key] for key in ("values", "seed", "threads")}
    return {"problem": finding["shrunk"]["problem"].split(";")[-1], "law": finding["law"], **case}


def witness(fn, options, case):
    """Returns ([q, k, v, out], keywords) of every call of a case, as numpy's float64."""
    import attest
    import numpy as np
    calls = []

    @functools.wraps(fn)
    def noted(*given, **words):
        returned = fn(*given, **words)
        out = returned[0] if isinstance(returned, tuple) else returned
        calls.append(([np.array(one.double() if hasattr(one, "double") else one, dtype=float)
                       for one in (*given, out)], words))
        return returned

    words = {name: options[name] for name in ("like", "numerics", "dtypes", "claims") if name in options}
    try:
        attest.replay(noted, isolate=False, **case, **words)  # the calls are noted in this process
    except AssertionError:
        return calls
    raise RuntimeError("the finding is not seen again")


def known():
    """Returns the records by subject."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {row["subject"]: row for row in map(json.loads, lines)}


def run(modules):
    for module in modules:
        for name, options in subjects(module).items():
            made = record(module, name, options)
            rows = {**known(), name: made}
            RESULTS.write_text("".join(json.dumps(rows[key]) + "\n" for key in sorted(rows)),
                               encoding="utf-8")
            print(f"{name}: {rows[name]['verdict']} in {rows[name]['seconds']} s", flush=True)


def one(module, name, seconds):
    """Prints the record of a subject, of whose campaign SIGALRM ends what takes longer."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(int(seconds))
    try:
        print(json.dumps(record(module, name, importlib.import_module(module).SUBJECTS[name])))
    except (ImportError, NotImplementedError, ValueError) as error:
        print(f"skipped: {error}", file=sys.stderr)
        sys.exit(SKIPPED)
    except KeyboardInterrupt:
        sys.exit(f"its first calls were not done after {seconds} s")


def table():
    """Returns the lines of the table of subjects."""
    lines = ["| kernel | library | contract | verdict | first finding | checks | CPU time |",
             "|---|---|---|---|---|---|---|"]
    for row in known().values():
        numerics = row["numerics"]
        words = numerics if isinstance(numerics, str) else ", ".join(
            f"{key}={value}" for key, value in numerics.items())
        law = f"`{row['findings'][0]['law']}`" if row["findings"] else "—"
        lines.append(f"| {row['subject']} | {row['library']} | `{words}` | {row['verdict']} | {law} | "
                     f"{row['checks']} | {row['cpu_seconds']:.0f} s |")
    return lines


def page():
    """Returns the text of the page with its table made anew."""
    begin, end = "<!-- table: docs/how-to/wild/certify.py --page -->\n", "<!-- end of table -->\n"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    return before + begin + "\n".join(table()) + "\n" + end + rest.split(end)[1]


def main(words):
    if words == ["--page"]:
        PAGE.write_text(page(), encoding="utf-8")
        return
    if words[:1] == ["--one"] and len(words) == 4:
        one(*words[1:])
        return
    unknown = [word for word in words if word not in MODULES]
    if unknown:
        sys.exit(f"certify.py: no module '{unknown[0]}'; the modules are {', '.join(MODULES)}")
    run(words or MODULES)


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    main(sys.argv[1:])
