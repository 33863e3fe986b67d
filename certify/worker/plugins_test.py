#!/usr/bin/env python3
"""Runs the attest program on shared libraries and checks exit codes and what is printed.

usage: plugins_test.py ATTEST PLUGINS EXAMPLES
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ATTEST, PLUGINS, EXAMPLES = sys.argv[1:4]
for variable in ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"):
    os.environ.pop(variable, None)  # with them OpenMP may bind threads
# A shell's background job ignores interrupts, and what it starts would not notice a kernel's.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A sanitizer's shadow memory is beyond every limit.
with open(ATTEST, "rb") as program:
    SANITIZED = re.search(rb"__[at]san_init", program.read()) is not None
SLOWER = 10 if SANITIZED else 1  # a sanitized program, beside another test on two processors
SMALL = ["--shapes", "none"]  # the shapes of published models cost most of a campaign of few cases
LIMIT = 300 * SLOWER  # seconds of one command
# A campaign of its own for what the campaign of the whole library finds, too.
IN_WHOLE_LIBRARY = unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "in ci/nightly, for time")


def attest(*words):
    done = subprocess.run([ATTEST, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


def misbehaving(name=""):
    return f"{PLUGINS}/libmisbehaving.so" + (f":{name}" if name else "")


class Examples(unittest.TestCase):
    """The documents' libraries are certified: coverage complete, nothing found.

    Outside nightly one of them; the others by a sixteenth of their campaigns, for time.
    """

    def test_first_page_shows_the_adapter(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        shown = re.search(r"^```c\n(.*?)^```", (root / "README.md").read_text(), re.M | re.S)
        self.assertEqual(shown[1], (root / "docs/how-to/plugins/shim.c").read_text())

    def certified(self, library, shard=None, folder=EXAMPLES):
        part = shard is not None and "ATTEST_NIGHTLY" not in os.environ
        code, text, error = attest("certify", f"{folder}/{library}", "--json",
                                   *(["--shard", f"{shard}/16"] if part else []))
        self.assertEqual([x for x in error.splitlines() if not x.startswith("progress: ")], [])
        certificate = json.loads(text)
        self.assertEqual([k["findings"] for k in certificate["kernels"]], [[]], text)
        self.assertEqual([k["verdict"] for k in certificate["kernels"]], ["shard_passed" if part else "certified"], text)
        self.assertEqual(code, 0, text)

    def test_c(self):
        self.certified("libattention.so", 1)

    def test_cpp(self):
        self.certified("libonline_softmax.so", 5)

    def test_limits(self):
        self.certified("libcausal.so")

    @unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "in ci/nightly, for time")
    def test_packed_qkv(self):
        self.certified("libpacked_qkv.so", 2)

    @unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "in ci/nightly, for time")
    def test_bhsd_f16(self):
        self.certified("libbhsd_f16.so", 3)

    def test_varlen(self):
        self.certified("libvarlen.so", 4)

    def test_version_2(self):
        self.certified("libversion_2.so", 6)

    def test_of_version_1(self):
        """Built with the header of version 1, and certified as it is."""
        self.certified("libof_version_1.so", 1, PLUGINS)

    def test_refusing_everything_proves_nothing(self):
        code, text, _ = attest("certify", f"{PLUGINS}/libnonsense_good.so", "--cases", "3", *SMALL)
        self.assertEqual(code, 3, text)
        self.assertIn("refused although claimed", text)

    def test_wrong_backward_schedules(self):
        """Found without the library's cooperation: it refuses every call."""
        for kind, needed in [("forward_schedule_backward",
                              "description.schedule_backward names 'flash2:bq=32,bk=32', a schedule "
                              "of forward"),
                             ("no_schedule_backward",
                              "description.schedule_backward is no schedule: schedule: 'bq' in "
                              "'two_pass:bq' is not key=value")]:
            library = f"{PLUGINS}/libnonsense_{kind}.so"
            code, text, _ = attest("certify", library, "--cases", "3", *SMALL, "--json")
            self.assertEqual(code, 1, text)
            kernel, = json.loads(text)["kernels"]
            self.assertEqual(kernel["verdict"], "violated")
            self.assertEqual(kernel["description"]["schedule"], "flash2:bq=32,bk=32")
            self.assertEqual(kernel["io"]["violations"], [])
            self.assertIn(needed, kernel["io_backward"]["violations"][0])

    def test_list(self):
        code, text, _ = attest("list", f"{EXAMPLES}/libattention.so")
        self.assertEqual(code, 0)
        self.assertIn(f"{EXAMPLES}/libattention.so:example/attention", text)
        self.assertIn("plain loops in float32", text)
        self.assertRegex(text, r"forward backward f32 .*gqa")


class Versions(unittest.TestCase):
    """A kernel that reads each field of its version passes; one that misreads a field is refused."""

    def judged(self, code, kernel, law, problem):
        found, text, error = attest("check", "--kernel", kernel, "--law", law, "--problem", problem)
        self.assertEqual(found, code, text + error)

    def test_version_1(self):
        for law in "reference_forward", "reference_backward":
            for problem in "sq=5,sk=9,d=8", "hq=4,hkv=2,sq=5,sk=9,d=8,dv=4,mask=causal_br":
                self.judged(0, f"{PLUGINS}/libof_version_1.so", law, problem)
                self.judged(1, f"{PLUGINS}/libof_version_1_wrong.so", law, problem)

    def test_fields_of_version_2(self):
        forward, backward = "reference_forward", "reference_backward"
        for misread, law, problem in [
                ("sink_of_head_0", forward, "hq=2,sq=3,sk=5,d=4,sinks=drawn_7"),
                ("sign_of_sink_gradient", backward, "hq=2,sq=3,sk=5,d=4,sinks=drawn_7"),
                ("bias_without_heads", forward, "hq=2,sq=3,sk=5,d=4,bias=hqk_drawn_7"),
                ("bias_gradient_scaled", backward, "hq=2,sq=3,sk=5,d=4,bias=hqk_drawn_7"),
                ("mask_without_heads", forward, "hq=2,sq=3,sk=5,d=4,head_mask=hqk_60_7"),
                ("page_of_16_bits", forward, "sq=1,sk=5,d=1,paged_kv=1_7_131072"),
                ("queries_of_any_length", forward,
                 "b=2,sq=5,sk=9,d=4,mask=causal_br,query_lengths=3_5"),
                ("minus_one_unbounded", forward, "sq=5,sk=9,d=4,mask=window_3_-1"),
                ("values_at_first_column", forward,
                 "hq=4,hkv=1,sq=2,sk=5,d=12,dv=8,shared_kv=last")]:
            with self.subTest(misread):
                self.judged(0, f"{EXAMPLES}/libversion_2.so", law, problem)
                self.judged(1, f"{PLUGINS}/libmisread.so:{misread}", law, problem)
                self.judged(0, f"{PLUGINS}/libmisread.so:{misread}", law, "hq=2,sq=3,sk=5,d=4")

    def test_claims_of_version_2(self):
        for law, problem in [("batch_invariance", "b=2,hq=2,sq=5,sk=9,d=8,mask=lengths_9_4"),
                             ("split_invariance", "sq=3,sk=9,d=4"),
                             ("hidden_nonfinite", "hq=2,sq=5,sk=9,d=8,mask=causal_br")]:
            self.judged(0, f"{EXAMPLES}/libversion_2.so", law, problem)


class Loading(unittest.TestCase):
    """A library prints and closes as it likes while it loads; a call's own text is told without that."""

    def judged(self, name):
        return attest("certify", f"{PLUGINS}/libloading.so:{name}", "--only", "reference_forward", "--cases", "2",
                      *SMALL)

    def test_printing(self):
        code, text, error = self.judged("quiet")
        self.assertEqual(code, 0, text + error)
        self.assertNotIn("printed", text)
        for name in "prints", "prints_to_stream":
            code, text, _ = self.judged(name)
            self.assertEqual(code, 1, text)
            self.assertIn("printed: 7 bytes, beginning with 'called' in forward", text)

    def test_closing(self):
        code, text, _ = self.judged("replaces_output")
        self.assertEqual(code, 1, text)
        self.assertIn("closed_descriptor: descriptors that it had not opened were closed (1)", text)


class Findings(unittest.TestCase):
    """A campaign over a kernel that misbehaves finishes, names it and reproduces it."""

    def found(self, name, kind, expected, *options):
        kernel = misbehaving(name)
        code, text, _ = attest("certify", kernel, "--cases", "3", *SMALL, *options)
        self.assertEqual(code, expected, text)
        self.assertRegex(text, rf"\b{kind}: ", text)
        self.assertRegex(text, r"\(\d+ cases", text)
        lines = re.findall(r"reproduce: attest (.*)", text)
        self.assertTrue(lines, text)
        self.assertIn(" ".join(options), lines[0])
        again, output, _ = attest(*[word.strip("'") for word in lines[0].split()])
        self.assertEqual(again, expected, output)
        self.assertRegex(output, rf"\b{kind.split(': ')[-1]}: ", output)
        return text

    def test_crash(self):
        self.found("crash", "crash", 4)

    @IN_WHOLE_LIBRARY
    def test_exit(self):
        self.found("exit", "exit", 4)

    def test_inputs_of_a_crash_are_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text, _ = attest("certify", misbehaving("crash"), "--cases", "2", *SMALL, "--failures",
                                   folder)
            self.assertEqual(code, 4, text)
            files = os.listdir(folder)
            self.assertTrue(files)
            for name in files:
                code, text, _ = attest("check", "--file", os.path.join(folder, name))
                self.assertEqual(code, 4, text)
                self.assertIn("crash: segmentation fault", text)

    def test_crash_behind_a_known_failure(self):
        """A law goes on after a failure that is listed, and each kind of failure is a finding."""
        kernel = f"{PLUGINS}/libfailing.so:wrong_then_crashes"
        with tempfile.TemporaryDirectory() as folder:
            known, failures = os.path.join(folder, "known.txt"), os.path.join(folder, "failures")

            def judged(*lines):
                pathlib.Path(known).write_text("".join(f"{kernel} {line}\n" for line in lines))
                code, text, _ = attest("certify", kernel, "--only", "reference_forward", "--cases", "24", *SMALL,
                                       "--known-failures", known, "--failures", failures, "--seed", "2")
                return code, text

            code, text = judged("reference_forward")
            self.assertEqual(code, 4, text)
            self.assertIn("known failure: listed, does not fail the run", text)
            self.assertIn("crash: segmentation fault at the null pointer in forward", text)
            self.assertEqual(len(os.listdir(failures)), 2)
            code, text = judged("reference_forward", "reference_forward crash")
            self.assertEqual(code, 0, text)
            self.assertIn("known failures: 2 of 2 occur", text)

    def test_results_behind_a_known_fault(self):
        """Results of calls with a listed fault are not judged: where no others are, nothing is known of the law."""
        kernel = misbehaving("print")
        with tempfile.TemporaryDirectory() as folder:
            known = os.path.join(folder, "known.txt")
            pathlib.Path(known).write_text(f"{kernel} reference_forward printed\n")
            code, text, _ = attest("certify", kernel, "--only", "reference_forward", "--cases", "4", *SMALL,
                                   "--known-failures", known)
        self.assertEqual(code, 3, text)
        self.assertIn("known failure: listed, does not fail the run", text)
        self.assertIn("incomplete: no case counted for the law reference_forward", text)
        self.assertRegex(text, r"not judged: the results of \d+ checks that met a listed fault")

    def test_hang(self):
        text = self.found("hang", "hang", 4, "--timeout", "1")
        self.assertIn("a call that is slow and does return needs a longer --timeout", text)

    @IN_WHOLE_LIBRARY
    def test_memory(self):
        if SANITIZED:
            self.skipTest("no memory limit")
        self.found("allocate", "memory", 4, "--memory-limit", "200")

    def test_hang_without_descriptors(self):
        """Its closed socket is no reason to wait longer than the timeout."""
        self.hangs_for_its_timeout("close_and_hang")

    def test_hang_in_another_process_group(self):
        self.hangs_for_its_timeout("leave_group_and_hang")

    def hangs_for_its_timeout(self, name):
        begin = time.monotonic()
        code, text, _ = attest("check", "--kernel", misbehaving(name), "--problem", "sq=2,d=2",
                               "--law", "reference_forward", "--timeout", "0.2")
        self.assertEqual(code, 4, text)
        self.assertIn("hang: forward did not return within 0.2 s", text)
        self.assertLess(time.monotonic() - begin, 4 * SLOWER)

    def test_out_of_bounds(self):
        self.found("write_after", "out_of_bounds", 1)

    @IN_WHOLE_LIBRARY
    def test_input(self):
        self.found("restore_input", "input_written", 1)

    @IN_WHOLE_LIBRARY
    def test_input_behind_its_pages(self):
        self.found("unprotect_and_restore", "input_written", 1)
        self.found("write_input_by_descriptor", "input_written", 1)

    @IN_WHOLE_LIBRARY
    def test_thread(self):
        self.found("leave_thread", "left_thread", 1)

    def test_threads_without_end(self):
        code, text, _ = attest("check", "--kernel", misbehaving("leave_more_threads"), "--problem",
                               "sq=2,d=2", "--law", "reference_forward", "--repeat",
                               str(65 + os.cpu_count()))
        self.assertEqual(code, 1, text)
        self.assertIn("left_thread: the number of threads has grown", text)

    @IN_WHOLE_LIBRARY
    def test_signal_to_the_certifier(self):
        """It does not interrupt: the campaign goes on to its end, and so does one check."""
        self.found("signal_certifier", "parent_signal", 1)

    def test_little_memory(self):
        """OpenMP without memory for its threads prints and exits."""
        if SANITIZED:
            self.skipTest("no memory limit")
        code, text, _ = attest("check", "--kernel", "cpu/flash2", "--isolate", "--memory-limit",
                               "1", "--problem", "hq=4,sq=130,d=64", "--threads", "3", "--law",
                               "reference_forward")
        self.assertEqual(code, 4, text)
        self.assertIn("memory: ", text)

    def test_state(self):
        self.found("keep_pointer", "stale_memory", 1)

    def test_state_of_results(self):
        code, text, _ = attest("certify", misbehaving("fail_after_ten"), "--cases", "6", *SMALL)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"state: check \d+ of this case in one process fails", text)
        line = re.search(r"reproduce: attest (.*--repeat \d+)", text).group(1)
        words = [word.strip("'") for word in line.split()]
        self.assertEqual(attest(*words)[0], 1)
        self.assertEqual(attest(*words[:-2])[0], 0)  # once is not enough

    def test_state_of_many_calls(self):
        """One process of a campaign makes more calls than others."""
        words = ["--cases", "32", "--only", "reference_forward", *SMALL]
        code, text, _ = attest("certify", misbehaving("fail_after_hundred"), *words)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"state: check \d+ of this case in one process fails", text)
        code, text, _ = attest("certify", misbehaving("leave_more_threads"), *words)
        self.assertEqual(code, 1, text)
        self.assertIn("left_thread: the number of threads has grown", text)
        code, text, _ = attest("certify", misbehaving("leave_descriptor"), *words)
        self.assertEqual(code, 1, text)
        self.assertIn("left_descriptor: descriptors were left open by", text)

    def test_state_of_other_calls(self):
        """The line names the calls that bring the failure, and needs each of them."""
        kernel = f"{PLUGINS}/libfailing.so:keeps_plan"
        code, text, _ = attest("certify", kernel, "--only", "reference_forward", "--cases", "200", *SMALL)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"state: fails after another check in one process, and not without: ")
        words = shlex.split(re.search(r"reproduce: attest (.*)", text).group(1))
        self.assertEqual(words.count("--after"), 1)
        self.assertEqual(attest(*words)[0], 1)
        at = words.index("--after")
        self.assertEqual(attest(*words[:at], *words[at + 2:])[0], 0)
        code, _, error = attest(*words[:at + 1], "sq=1,d=1 sed=3")
        self.assertEqual(code, 2)
        self.assertIn("sed=3", error)

    def test_what_a_call_says(self):
        with tempfile.TemporaryDirectory() as folder:
            junit, html = os.path.join(folder, "junit.xml"), os.path.join(folder, "report.html")
            code, text, _ = attest("certify", f"{PLUGINS}/libfailing.so:says_why", "--cases", "2", *SMALL,
                                   "--json", "--junit", junit, "--html", html)
            self.assertEqual(code, 1, text)
            finding, = json.loads(text)["kernels"][0]["findings"]
            self.assertEqual(finding["kind"], "failed")
            self.assertIn("it says: no tile fits into the cache", finding["message"])
            failed = {law for law, count in json.loads(text)["kernels"][0]["laws"].items()
                      if count["failed"] > 0}
            self.assertEqual(failed, {finding["law"], *finding["also"]})
            for path in (junit, html):
                with open(path, encoding="utf-8") as file:
                    shown = file.read()
                self.assertIn("no tile fits into the cache", shown)
                self.assertIn("also fails", shown)

    def test_exception(self):
        code, text, _ = attest("certify", f"{PLUGINS}/libfailing.so:throws_error", "--cases", "2", *SMALL)
        self.assertEqual(code, 4, text)
        self.assertIn("exception: std::runtime_error: 'no plan for this shape' was thrown", text)
        self.assertEqual(text.count("reproduce:"), 1, text)

    def test_refusals_are_counted(self):
        code, text, _ = attest("certify", f"{PLUGINS}/libfailing.so:refuses_with_text", "--cases",
                               "6", *SMALL)
        self.assertEqual(code, 3, text)
        lines = [line for line in text.splitlines() if "it says: one query alone" in line]
        self.assertEqual(len(lines), 1, text)
        line = re.search(r"\(\d\d+ checks\), first: attest (.*)", lines[0]).group(1)
        self.assertEqual(attest(*shlex.split(line))[0], 3)

    def test_whole_library(self):
        """One campaign over every misbehaviour finishes; each has the finding that names it."""
        kinds = {"crash": "crash", "abort": "abort", "exit": "exit", "hang": "hang", "fork": "fork",
                 "fork_and_return": "fork", "allocate": "memory", "write_before": "out_of_bounds",
                 "write_after": "out_of_bounds", "read_after": "out_of_bounds",
                 "overrun_workspace": "out_of_bounds", "write_input": "input_written",
                 "restore_input": "input_written", "write_arguments": "input_written",
                 "close_descriptors": "closed_descriptor", "close_and_hang": "hang",
                 "change_rounding": "floating_point", "flush_denormals": "floating_point",
                 "change_locale": "locale", "change_directory": "directory",
                 "change_environment": "environment",
                 "change_signal_handler": "signal_handler", "print": "printed",
                 "keep_pointer": "stale_memory", "fail_after_ten": "state", "divide": "crash",
                 "raise": "crash", "raise_fault": "crash", "unprotect_input": "input_written",
                 "unprotect_and_restore": "input_written",
                 "write_input_by_descriptor": "input_written", "leave_thread": "left_thread",
                 "block_signal": "signal_mask", "leave_timer": "timer",
                 "lower_limit": "resource_limit", "change_umask": "umask",
                 "change_nice": "scheduling", "bind_thread": "scheduling",
                 "signal_certifier": "parent_signal", "exit_without_memory": "memory",
                 "leave_group_and_hang": "hang"}
        code, text, _ = attest("certify", misbehaving(), "--cases", "1", *SMALL, "--timeout", "1",
                               "--memory-limit", "200", "--json")
        self.assertEqual(code, 4)
        findings = {k["kernel"].split(":")[-1]: k["findings"]
                    for k in json.loads(text)["kernels"]}
        self.assertEqual(findings.pop("nothing"), [])
        failing = findings.pop("alternate")
        self.assertIn("repeat", [law for f in failing for law in [f["law"], *f["also"]]])
        for more_calls in ("leave_more_threads", "leave_descriptor", "fail_after_hundred", "fail_by_chance"):
            findings.pop(more_calls)
        if len(os.sched_getaffinity(0)) == 1:
            kinds.pop("bind_thread")
        for name, kind in kinds.items():
            if kind == "memory" and SANITIZED:
                continue
            messages = [f["message"] for f in findings.pop(name)]
            self.assertTrue(any(kind + ": " in m for m in messages), (name, messages))
        self.assertLessEqual(set(findings), {"allocate", "exit_without_memory", "bind_thread"})

    def test_one_fault_is_one_finding(self):
        _, text, _ = attest("certify", misbehaving("abort"), "--cases", "3", *SMALL)
        self.assertEqual(text.count("reproduce:"), 1, text)

    def test_each_kernel_has_files_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/a")
            libraries = [f"{folder}/a/b.so", f"{folder}/a-b.so"]
            for library in libraries:
                shutil.copy(misbehaving(), library)
            _, text, error = attest("certify", *(f"{library}:abort" for library in libraries), "--cases", "1", *SMALL,
                                    "--only", "reference_forward", "--failures", f"{folder}/failures")
            self.assertEqual(len(os.listdir(f"{folder}/failures")), 2, text + error)

    def test_built_in_isolated(self):
        code, text, _ = attest("check", "--kernel", "cpu/flash2", "--isolate", "--problem",
                               "sq=17,sk=33,d=8,mask=causal_br")
        self.assertEqual(code, 0, text)
        self.assertIn("PASSED", text)


class BadInput(unittest.TestCase):
    """Anything that cannot be loaded is bad input: exit code 2 and one line."""

    def refused(self, needed, *words):
        code, text, error = attest(*words)
        self.assertEqual((code, text), (2, ""), error)
        self.assertIn(needed, error)
        self.assertEqual(error.count("\n"), 1, error)

    def test_refused(self):
        for name, needed in [("nonsense_no_symbol", "does not export attest_get_kernel"),
                             ("nonsense_other_abi", "abi_version is 99"),
                             ("nonsense_negative_head_dim", "max_head_dim is -1"),
                             ("nonsense_unknown_dtype", "unknown bits 0x200"),
                             ("nonsense_small_struct", "struct_size is 8"),
                             ("nonsense_missing_dependency", "libneeded.so"),
                             ("nonsense_crashing_initialiser", "died of signal 6"),
                             ("loading_loses", "descriptors that its process is called by (3, 4, 5)")]:
            library = f"{PLUGINS}/lib{name}.so"
            self.refused(needed, "certify", library)
            self.refused(needed, "check", "--kernel", library, "--problem", "sq=1,d=1")
            self.refused(needed, "list", library)

    def test_names(self):
        self.refused("cannot be read", "certify", "./libabsent.so")
        self.refused("is not a shared library", "certify", os.path.abspath(__file__))
        self.refused("did you mean", "certify", misbehaving("crahs"))
        self.refused("choose one", "check", "--kernel", misbehaving(), "--problem", "sq=1,d=1")

    def test_worker_by_hand(self):
        self.refused("is started by the certifier only", "worker")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
