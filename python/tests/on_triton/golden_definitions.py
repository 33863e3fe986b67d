"""Defines the ten kernels of gpu/golden in numpy: each judges outputs, in bits or within a derived bound."""

import math
import pathlib
import re

import numpy as np

import attest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "reference" / "ptx-opcodes.md"
EPS = float(np.finfo(np.float32).eps)  # of a product or sum that is cut off; half of it where it is rounded


def allowed_ulps(opcode):
    """Returns the error that the page of opcodes allows an approximation, in units in the last place."""
    for pattern, ulps in re.findall(r"^(\S+) +([\d.]+) ulp$", PAGE.read_text(encoding="utf-8"), re.M):
        if re.fullmatch(re.sub(r"\\\[(.*?)\\\]", r"(\1)?", re.escape(pattern)), opcode):
            return float(ulps)
    raise LookupError(f"{opcode} has no error in {PAGE.name}")


EX2_ULPS = allowed_ulps("ex2.approx.ftz.f32")
EXPONENTIAL = {"exp_ulps": EX2_ULPS + 0.5}  # of the exact value, where that is of the nearest number


def same(name, found, wanted):
    """Compares bits; one NaN is as good as another."""
    differ = (found != wanted) & ~((found != found) & (wanted != wanted))
    return [f"{name} differs in {differ.sum()} of {differ.size}"] if differ.any() else []


def within(name, found, exact, bound):
    beyond = ~(np.abs(found - exact) <= bound)
    return [f"{name} is outside its bound in {beyond.sum()} of {beyond.size}"] if beyond.any() else []


def integers(given, found):
    a, b = (given[name].astype(np.int64) for name in ("x", "y"))
    quotients = np.sign(a) * (np.abs(a) // b)
    fractions = ((given["x"] & 0x7FFFFF) | 0x3F800000).view(np.float32) - np.float32(1)
    return [*same("mixed", found["mixed"], (((a * b) ^ (a >> 3)) + a - quotients * b).astype(np.int32)),
            *same("quotients", found["quotients"], quotients.astype(np.int32)),
            *same("fractions", found["fractions"], fractions)]


def of_bf16(bits):
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def rounded(given, found):
    """Takes the even one of the two numbers of bf16 beside a value that is halfway between them."""
    x, bits = given["x"], given["x"].view(np.uint32).astype(np.uint64)
    below, rest = bits >> 16, bits & 0xFFFF
    upward = (rest > 0x8000) | ((rest == 0x8000) & (below % 2 == 1))
    bf16 = np.where(np.isnan(x), 0x7FFF, below + upward).astype(np.uint16)
    with np.errstate(over="ignore", invalid="ignore"):
        f16 = x.astype(np.float16)
    return [*same("bf16", of_bf16(found["bf16"]), of_bf16(bf16)), *same("f16", found["f16"], f16)]


def powers(given, found):
    with np.errstate(over="ignore"):
        nearest = np.exp2(given["x"].astype(np.float64)).astype(np.float32)
    finite = np.isfinite(nearest) & (nearest != 0)
    y, n = (array[finite].astype(np.float64) for array in (found["y"], nearest))
    return [*same("ends", found["y"][~finite], nearest[~finite]),
            *within("y", y, n, EX2_ULPS * np.spacing(nearest[finite]).astype(np.float64))]


def attention(out, q, k, v, scale, numerics, **words):
    """Judges attention of one head; softmax to base 2 is that of scores times log 2."""
    out, q, k, v = (array[None, :, None, :] for array in (out, q, k, v))
    try:
        attest.assert_close(out, q, k, v, scale=scale * math.log(2), numerics=numerics, **words)
    except AssertionError as error:
        return [str(error).splitlines()[0]]
    return []


def row_softmax(given, found):
    """Is attention whose keys and values are the unit vectors."""
    one = np.eye(given["x"].shape[1], dtype=np.float32)
    return attention(found["y"], given["x"], one, one, 1.0, EXPONENTIAL)


def causal_flash(given, found):
    return attention(found["out"], given["q"], given["k"], given["v"], 0.25,
                     {"preset": "p_cast_to_input", **EXPONENTIAL}, causal="top_left")


def product(name, found, a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return within(name, found, a @ b, a.shape[1] * EPS * (np.abs(a) @ np.abs(b)))


def bf16_product(given, found):
    return product("c", found["c"], of_bf16(given["a"]), of_bf16(given["b"]))


def f16_product(given, found):
    return product("c", found["c"], given["a"], given["b"])


def f32_products(given, found):
    tf32 = [(given[name].view(np.uint32) & 0xFFFFE000).view(np.float32) for name in ("a", "b")]
    return [*product("ieee", found["ieee"], given["a"], given["b"]), *product("tf32", found["tf32"], *tf32)]


def totals(given, found):
    return same("counts", found["counts"], np.bincount(given["x"] & 15, minlength=16))


def scanned(given, found):
    x = given["x"].astype(np.float64)
    return within("sums", found["sums"], np.cumsum(x, 1), x.shape[1] * EPS / 2 * np.cumsum(np.abs(x), 1))


def moved_bytes(name, launch):
    """Returns the bytes of each tensor's elements, as often as a program asks for them."""
    read, written = (sum(array.nbytes for array in some.values()) for some in (launch.inputs, launch.outputs))
    if name == "totals":  # an atomic addition for each element of x
        written = launch.inputs["x"].nbytes
        read += written
    if name == "causal_flash":  # the second of two programs reads keys and values of the first, too
        read += (launch.inputs["k"].nbytes + launch.inputs["v"].nbytes) // 2
    return {"read_bytes": read, "written_bytes": written}


DEFINITIONS = {one.__name__: one for one in (
    integers, rounded, powers, row_softmax, bf16_product, f16_product, f32_products, totals, scanned,
    causal_flash)}
