"""Holds the tables of the package to those of the library, and to each other.

Each comparison takes its tables and returns the words that are not of both. It is seen to name a
word that one of them lacks or tells otherwise.
"""

import dataclasses
import pathlib
import re
import unittest
from unittest import mock

from plain import attention as plain_attention

import attest
from attest import _abi
from attest._claims import _ASKED, _SHAPES, _STATED
from attest._conventions import CONVENTIONS, Keyword
from attest._dtypes import DTYPES

ROWS = pathlib.Path(__file__).resolve().parents[2] / "core" / "dtype" / "dtype.hpp"
NO_WAY_TO_ASK = {"dlse", "loss_dy", "block_mask", "csr_mask", "nm_mask", "layout_bits"}
NO_CALL_ASKS = {"any_strides", "lse", "empty_rows"} | _STATED


def takes_all(q, k, v, **keywords):
    return plain_attention.attention(q, k, v)


def words_of(bit):
    """Returns the library's words of a claim; none where it knows no such bit."""
    with mock.patch.dict(_abi.FEATURES, {"asked": bit, "any_strides": 0}):
        try:
            report = attest.certify(takes_all, isolate=False, cases=0, dtypes=["f32"], claims=["asked"],
                                    only="reference_backward")
        except ValueError as error:
            if "unknown bits" not in str(error):
                raise
            return []
    return report.certificate["kernels"][0]["description"]["features"]


def misnamed(features, library):
    """Returns the words of claims that one of both lacks or has with another bit."""
    return {word for word, _ in features.items() ^ library.items()} - NO_WAY_TO_ASK


def unasked(features, questions, conventions):
    """Returns the claims without a question or a keyword, and the questions without a claim."""
    claims = {"causal" if word.startswith("causal_") else word for word in features} - NO_CALL_ASKS
    keywords = {word for one in conventions.values() for keyword in one.keywords.values() for word in keyword.all_claims}
    return (claims ^ questions) | (claims - set(_SHAPES) - keywords) | (keywords - claims - _STATED)


def misread(dtypes, rows):
    """Returns the dtypes that are not those of the rows of core/dtype/dtype.hpp, in its order."""
    library = [(name, (int(code), int(bits))) for name, code, bits in
               re.findall(r'{DType::\w+, ATTEST_\w+, "(\w+)", "\w+", "\w+", (\d+), (\d+),', rows)]
    package = [(name, dtype.dlpack) for name, dtype in dtypes.items()]
    wrong = {name for name, dtype in dtypes.items() if int(dtype.numpy[2:]) * 8 != dtype.dlpack[1]}
    wrong |= {name for name, _ in set(package) ^ set(library)}
    return wrong or {one[0] for one, other in zip(package, library) if one != other}


def without(table, word):
    return {key: value for key, value in table.items() if key != word}


class Tables(unittest.TestCase):
    def test_words_of_claims_are_those_of_the_library(self):
        library = {word: 1 << place for place in range(32) for word in words_of(1 << place)}
        features = _abi.FEATURES
        self.assertEqual(misnamed(features, library), set())
        self.assertLess(NO_WAY_TO_ASK, library.keys())
        for broken, word in ((without(features, "softcap"), "softcap"),
                             ({**features, "alibi": 2 * features["alibi"]}, "alibi"),
                             ({**features, "dropout": 1 << 31}, "dropout"),
                             ({**features, "cap": features["softcap"]}, "cap")):
            self.assertEqual(misnamed(broken, library), {word})

    def test_every_claim_has_a_question_and_a_keyword(self):
        features, questions = _abi.FEATURES, _ASKED.keys() | set(_SHAPES)
        self.assertEqual(unasked(features, questions, CONVENTIONS), set())
        self.assertEqual(unasked(without(features, "softcap"), questions, CONVENTIONS), {"softcap"})
        self.assertEqual(unasked(features, questions - {"alibi"}, CONVENTIONS), {"alibi"})
        self.assertEqual(unasked(features, questions | {"dropout"}, CONVENTIONS), {"dropout"})
        alone = {name: CONVENTIONS[name] for name in ("sdpa", "sdpa_bias", "flash_attn_varlen_func")}
        self.assertEqual(unasked(features, questions, alone), {"key_lengths", "offset_window"})
        unknown = dataclasses.replace(CONVENTIONS["plain"], keywords={"dropout": Keyword("dropout", abs)})
        self.assertEqual(unasked(features, questions, {**CONVENTIONS, "unknown": unknown}), {"dropout"})

    def test_dtypes_are_those_of_the_library(self):
        rows = ROWS.read_text(encoding="utf-8")
        f64, *others = DTYPES
        self.assertEqual(misread(DTYPES, rows), set())
        self.assertEqual(misread(without(DTYPES, "bf16"), rows), {"bf16"})
        self.assertEqual(misread(DTYPES, rows.replace("{DType::f16, ", "{")), {"f16"})
        self.assertEqual(misread({**DTYPES, "bf16": DTYPES["bf16"]._replace(dlpack=(2, 16))}, rows), {"bf16"})
        self.assertEqual(misread({**DTYPES, "f32": DTYPES["f32"]._replace(numpy="<f8")}, rows), {"f32"})
        self.assertEqual(misread({word: DTYPES[word] for word in (*others, f64)}, rows), set(DTYPES))


if __name__ == "__main__":
    unittest.main()
