"""Runs the examples of docs/how-to/python.md; a text block after an example is what it must print."""

import contextlib
import io
import pathlib
import re
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)


def matches(expected, printed):
    """Tells whether the texts are equal; in the expected one, … stands for any text."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


class Documentation(unittest.TestCase):
    def test_examples(self):
        names, blocks = {}, BLOCK.findall(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(blocks), 4)
        for code, expected in blocks:
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
