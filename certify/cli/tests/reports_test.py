#!/usr/bin/env python3
"""Files of attest certify, read by somebody else's code, and what attest report says of them."""
import html.parser
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ATTEST = os.path.abspath(sys.argv[1])
KERNEL = "broken/top_left_causal"


def attest(*arguments):
    done = subprocess.run([ATTEST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=dict(os.environ, NO_COLOR="1"), timeout=250, check=False)
    return done.returncode, done.stdout


def read_safetensors(path):
    """(metadata, {name: (dtype, shape, bytes)}) by nothing but the format's description."""
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    body = data[8 + length:]
    return metadata, {name: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])])
                      for name, one in header.items()}


def write_safetensors(path, metadata, tensors):
    header, body = {"__metadata__": metadata}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


class Tags(html.parser.HTMLParser):
    """Counts elements."""

    def __init__(self, text):
        super().__init__()
        self.count = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.good, cls.bad = cls.path("good.json"), cls.path("bad.json")
        cls.failures = cls.path("failures")
        cls.good_run = attest("certify", "cpu/standard", "--cases", "6", "--out", cls.good)
        cls.bad_run = attest("certify", KERNEL, "--cases", "6", "--out", cls.bad, "--html",
                             cls.path("report.html"), "--junit", cls.path("junit.xml"),
                             "--failures", cls.failures)
        cls.file = os.path.join(cls.failures,
                                "broken-top_left_causal.reference_forward.safetensors")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def refused(self, why, *arguments):
        code, text = attest(*arguments)
        self.assertEqual(code, 2, text)
        self.assertIn(why, text)

    def test_findings_name_the_mistake_and_the_file(self):
        code, text = self.bad_run
        self.assertEqual(code, 1, text)
        self.assertIn("equals the result with top-left causal alignment", text)
        self.assertIn(self.file, text)
        with open(self.bad, encoding="utf-8") as file:
            finding = json.load(file)["kernels"][0]["findings"][0]
        self.assertEqual(finding["signatures"][0]["name"], "top_left_causal")
        self.assertEqual(finding["file"], self.file)
        self.assertEqual(len(finding["errors"]["error_over_bound"]) > 0, True)

    def test_tensors_are_readable_elsewhere(self):
        metadata, tensors = read_safetensors(self.file)
        self.assertTrue(metadata["problem"].startswith("v1;b=1,"))
        self.assertEqual(metadata["kernel"], KERNEL)
        for name in ("Q", "K", "V", "O", "exact.O", "bound.O", "LSE", "exact.LSE"):
            self.assertIn(name, tensors)
        dtype, shape, data = tensors["O"]
        self.assertEqual(dtype, "F32")
        got = struct.unpack(f"<{len(data) // 4}f", data)
        exact, bound = (struct.unpack(f"<{len(data) // 4}d", tensors[name][2])
                        for name in ("exact.O", "bound.O"))
        self.assertEqual(len(shape), 4)
        # The tensors hold the failure themselves.
        self.assertTrue(any(not abs(g - e) <= b for g, e, b in zip(got, exact, bound)))

    def test_a_file_is_replayed(self):
        code, text = attest("check", "--file", self.file)
        self.assertEqual(code, 1, text)
        self.assertIn("given_inputs             violated", text)
        code, text = attest("check", "--file", self.file, "--kernel", "cpu/standard", "--json")
        self.assertEqual(code, 0, text)
        self.assertEqual(json.loads(text)["kernel"], "cpu/standard")

    def test_bad_files_are_refused(self):
        metadata, tensors = read_safetensors(self.file)
        bad = self.path("bad.safetensors")

        def refused(why, changed_metadata=None, **changed):
            write_safetensors(bad, {**metadata, **(changed_metadata or {})},
                              {**tensors, **changed})
            self.refused(why, "check", "--file", bad)

        dtype, shape, data = tensors["Q"]
        refused("tensor 'Q' has dtype f64", Q=("F64", shape, data * 2))
        refused("dtype 'I32' is not known", Q=("I32", shape, data))
        refused("tensor 'Q' has shape", Q=(dtype, [2, *shape[1:]], data * 2))
        refused("bytes, its shape and dtype need", Q=(dtype, shape, data + data))
        refused("unknown law 'nonsense'", {"law": "nonsense"})
        refused("did you mean", {"kernel": "broken/top_left_casual"})
        refused("does not begin with 'v1;'", {"problem": "sq=1"})
        refused("Q[batch=0, seqlen_q=0, num_heads_q=0, head_dim_qk=0] is nan", Q=(dtype, shape, struct.pack("<f", float("nan")) * (len(data) // 4)))
        with open(self.file, "rb") as file:
            whole = file.read()
        for length in (0, 7, 8, 100, len(whole) - 1):
            with open(bad, "wb") as file:
                file.write(whole[:length])
            self.refused(f"file '{bad}': ", "check", "--file", bad)
        self.refused("cannot be read", "check", "--file", self.path("missing"))
        self.refused("--file", "check", "--file", self.file, "--seed", "3")
        self.refused("no problem given", "check", "--kernel", KERNEL)

    def test_junit(self):
        root = xml.etree.ElementTree.parse(self.path("junit.xml")).getroot()
        suite = root.find("testsuite")
        self.assertEqual(suite.get("name"), KERNEL)
        self.assertGreater(int(root.get("failures")), 0)
        failure = suite.find("testcase[@name='reference_forward']/failure")
        self.assertIn("reproduce: attest check --kernel " + KERNEL, failure.text)

    def test_html(self):
        with open(self.path("report.html"), encoding="utf-8") as file:
            count = Tags(file.read()).count
        self.assertGreater(count["svg"], 0)
        self.assertEqual(count["script"], 1)  # the page's own
        self.assertNotIn("link", count)
        self.assertNotIn("img", count)

    def test_the_first_page_links_what_it_is_given(self):
        os.makedirs(self.path("pages/papers"), exist_ok=True)
        papers, index = self.path("pages/papers/reproduce.json"), self.path("pages/index.html")
        with open(papers, "w", encoding="utf-8") as file:
            json.dump({"schema": "attest-reproduce-1", "experiments": []}, file)
        code, text = attest("report", self.bad, "--index", index, "--papers", papers,
                            "--html", self.path("pages/report.html"))
        self.assertEqual((code, text), (0, ""))
        with open(index, encoding="utf-8") as file:
            page = file.read()
        for link in ("report.html#kernel-1", "papers/index.html", "../" + os.path.basename(self.bad)):
            self.assertIn(f'href="{link}"', page)
        os.remove(index)
        self.refused("pass --index FILE too", "report", self.bad, "--papers", papers)
        self.refused("no object of the schema attest-reproduce-1", "report", self.bad, "--index",
                     index, "--papers", self.good)
        self.refused("no JSON", "report", self.bad, "--index", index, "--papers",
                     self.path("junit.xml"))
        self.assertFalse(os.path.exists(index))

    def test_rendering_again_gives_the_same(self):
        again = self.path("again.html"), self.path("again.xml")
        code, text = attest("report", self.bad, "--html", again[0], "--junit", again[1])
        self.assertEqual((code, text), (0, ""))
        for first, second in (("report.html", again[0]), ("junit.xml", again[1])):
            with open(self.path(first), "rb") as one, open(second, "rb") as other:
                self.assertEqual(one.read(), other.read())
        code, text = attest("report", self.bad)
        self.assertEqual(code, 0)
        self.assertIn("equals the result with top-left causal alignment", text)

    def test_comparison(self):
        self.assertEqual(attest("report", self.good, self.good), (0, "no difference\n"))
        renamed = self.path("renamed.json")
        with open(self.bad, encoding="utf-8") as file:
            certificate = json.load(file)
        certificate["kernels"][0]["kernel"] = "cpu/standard"
        del certificate["sha256"]  # which is of another text now
        with open(renamed, "w", encoding="utf-8") as file:
            json.dump(certificate, file)
        code, text = attest("report", self.good, renamed)
        self.assertEqual(code, 1)
        fault, text = text.split("\n", 1)
        self.assertIn("has no SHA-256 of its own", fault)
        self.assertTrue(text.startswith("regression   cpu/standard: verdict"), text)
        self.assertIn("law reference_forward fails now; also fails: reference_backward\n    reproduce: attest check", text)
        code, text = attest("report", renamed, self.good, "--json")
        self.assertEqual(code, 0, text)
        self.assertEqual(json.loads(text.split("\n", 1)[1])["schema"], "attest-comparison-1")
        self.refused("render one certificate", "report", self.good, self.bad, "--html", "x.html")
        self.refused("is not JSON", "report", self.file)
        self.refused("the standard output is no file here", "report", self.good, "--markdown", "-")
        self.refused("cannot be read", "report", self.path("missing.json"))

    def test_nothing_is_run_for_files_that_cannot_be_written(self):
        missing = self.path("missing/x")
        for option in ("--html", "--junit"):
            self.refused("existing, writable directory", "certify", KERNEL, option, missing)
        self.refused("cannot create the folder", "certify", KERNEL, "--failures",
                     os.path.join(self.good, "folder"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
