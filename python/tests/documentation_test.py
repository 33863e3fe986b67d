"""Runs the examples of docs/how-to/python.md; a text block after an example is what it must print.

Blocks that begin with a file's name are that file, which the others import.
"""

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "python.md"
MODULE = "numpy_attention.py"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)


def matches(expected, printed):
    """Tells whether the texts are equal; in the expected one, … stands for any text."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


class Documentation(unittest.TestCase):
    @unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "a campaign for each; in ci/nightly")
    def test_examples(self):
        blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
        of_module = [code for code, _ in blocks if code.startswith(f"# {MODULE}\n")]
        calls = [block for block in blocks if block[0] not in of_module]
        self.assertGreater(min(len(of_module), len(calls)), 3)
        names = {}
        with tempfile.TemporaryDirectory() as folder, mock.patch("sys.path", [folder, *sys.path]):
            (pathlib.Path(folder) / MODULE).write_text("\n".join(of_module), encoding="utf-8")
            for code, expected in calls:
                with self.subTest(code), contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(code, names)
                    self.assertTrue(matches(expected, printed.getvalue()),
                                    f"printed:\n{printed.getvalue()}\nexpected:\n{expected}")

    def test_another_text_is_noticed(self):
        self.assertTrue(matches("a … c\n", "a b c\n"))
        self.assertFalse(matches("a … c\n", "a b d\n"))
        self.assertFalse(matches("", "a\n"))


if __name__ == "__main__":
    unittest.main()
