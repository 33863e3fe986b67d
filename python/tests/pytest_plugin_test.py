"""Runs pytest on kernels, where it is installed: it finds the plugin by itself."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

from other_arrays_test import needs

TESTS = '''
import sys
sys.path.insert(0, {folder!r})
from certify_test import SMALL, attention, top_left

SMALL = dict(SMALL, cases=1)

def fails(q, k, v):
    raise KeyError("of the user's")

def refuses(q, k, v):
    if q.shape != (2, 6, 4, 8):
        raise NotImplementedError("other shapes")
    return attention(q, k, v, scale=q.shape[-1]**-0.5)

def test_right(attest_certify):
    report = attest_certify(attention, **SMALL)
    assert report.certificate["seed"] == 1

def test_broken(attest_certify):
    attest_certify(top_left, **SMALL)

def test_error(attest_certify):
    attest_certify(fails, **SMALL)

def test_option(attest_certify):
    attest_certify(attention, **SMALL, tier="quick")

def test_nothing(attest_certify):
    attest_certify(refuses, isolate=False, dtypes=["f32"], claims=[], cases=0)

def test_other():
    pass
'''


@needs("pytest")
class Plugin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        text = TESTS.format(folder=str(pathlib.Path(__file__).parent))
        (self.folder / "test_kernels.py").write_text(text)

    def pytest(self, *words):
        done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", *words],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_a_refused_kernel_is_one_failed_test(self):
        printed = self.pytest("-k", "right or broken", "--junit-xml=junit.xml", "--attest-out=certificates")
        self.assertIn("1 failed, 1 passed, 4 deselected", printed)
        message = printed.split("test_broken ___")[1].split("short test summary")[0]
        self.assertRegex(message, r"_\ntop_left is refused\nreference_forward: outside the proved bound: O\[.*"
                         r" is .*, exact .*, bound (?s:.*)\nattest\.replay\(top_left, 'b=1,.*\)\n")
        self.assertLess(len(message.splitlines()), 12, message)
        self.assertNotIn("Traceback", printed)
        cases = {case.get("name"): case for case in xml.parse(self.folder / "junit.xml").iter("testcase")}
        self.assertIn("top_left is refused", cases["test_broken"].find("failure").get("message"))
        self.assertIsNone(cases["test_right"].find("failure"))
        self.assertEqual([one.attrib for one in cases["test_right"].iter("property")],
                         [{"name": "attest", "value": "attention: incomplete"}])
        self.assertEqual(sorted(path.name for path in (self.folder / "certificates").iterdir()),
                         ["test_kernels.py_test_broken-top_left.json", "test_kernels.py_test_right-attention.json"])

    def test_errors_of_the_user_and_of_use(self):
        printed = self.pytest("-k", "error or option or nothing")
        self.assertIn("3 failed", printed)
        self.assertIn('raise KeyError("of the user\'s")', printed)
        self.assertRegex(printed, "ValueError: unknown tier 'quick'")
        self.assertNotIn("_claims.py", printed)
        self.assertNotIn("_certify.py", printed)
        self.assertRegex(printed, "nothing is proved\nrefuses  ")

    def test_selection_and_options(self):
        self.assertIn("1 passed, 5 deselected", self.pytest("-m", "not attest"))
        self.assertRegex(self.pytest("-k", "broken or other", "-x"), "1 failed, 4 deselected")
        self.assertRegex(self.pytest("-k", "right", "--attest-seed=2"), "assert 2 == 1")
        self.assertRegex(self.pytest("-k", "right", "-rP"), "- Captured attest call -.*\nattention  INCOMPLETE\n")

    def test_the_file_of_the_documentation(self):
        docs = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to"
        text = (docs / "pytest" / "test_my_kernels.py").read_text()
        blocks = re.findall(r"^```py\n(.*?)^```", (docs / "python.md").read_text(), re.M | re.S)
        shown = [block for block in blocks if "attest_certify" in block]
        self.assertEqual(len(shown), 1)
        self.assertIn(shown[0], text)
        path = self.folder / "test_kernels.py"
        for content, outcome in ((text, "2 passed"), (text.replace("* scale", "* scale * 2"), "2 failed")):
            path.write_text(content)
            self.assertIn(outcome, self.pytest("--attest-cases=1", "--attest-shapes=none"))

    @needs("xdist")
    def test_xdist(self):
        self.assertIn("1 failed, 2 passed", self.pytest("-n", "2", "-k", "right or broken or other"))


if __name__ == "__main__":
    unittest.main()
