"""Random numbers of seeds: a hash of the position of each element (heddle/torch/random.py)."""
import math
from typing import Any

from heddle._hir import Value, Word
from heddle.torch.lowering.context import Context, Unsupported, count, lowers
from heddle.torch.random import BITS, LAST_SHIFT, NEXT_WORD, NORMAL, ROUNDS, UNIFORM


@lowers(UNIFORM)
def uniform(c: Context, seeds: Value, at: int, _size: Any, dtype: Any) -> Value:
    return c.reshape(c.cast(_fractions(c, seeds, at, BITS[dtype], 0), c.dtype), c.shape)


@lowers(NORMAL)
def normal(c: Context, seeds: Value, at: int, _size: Any, _dtype: Any) -> Value:
    bits = 53 if c.dtype == "f64" else 24
    u, v = (_fractions(c, seeds, at, bits, word) for word in (0, 2))
    radius = c.unary("sqrt", c.binary("mul", c.unary("log", c.binary("add", u, 2.0 ** -bits)), -2))
    return c.reshape(c.cast(c.binary("mul", radius, c.unary("cos", c.binary("mul", v, 2 * math.pi))), c.dtype), c.shape)


def _fractions(c: Context, seeds: Value, at: int, bits: int, word: int) -> Value:
    """Numbers on [0, 1) of `bits` bits of each element's words from number `word` on."""
    first = _words(c, seeds, at, word)
    if bits <= 32:
        return c.binary("mul", c.cast(c.binary("shr", first, 32 - bits), "f32"), 2.0 ** -bits)
    high, low = (c.cast(c.binary("shr", one, shift), "f64") for one, shift in ((first, 5), (_words(c, seeds, at, word + 1), 6)))
    return c.binary("mul", c.binary("add", c.binary("mul", high, 1 << 26), low), 2.0 ** -bits)


def _words(c: Context, seeds: Value, at: int, word: int) -> Value:
    elements = count(c.shape)
    if elements > 1 << 32:
        raise Unsupported("more random numbers than 32 bits can count")
    row = c.reshape(c.slice(seeds, 0, at, at + 1), [2])
    halves = [c.emit("cast", [c.slice(row, 0, i, i + 1)], "u32", [1], to=Word("u32")) for i in range(2)]
    halves[1] = c.binary("add", halves[1], word * NEXT_WORD & 0xFFFFFFFF)
    mixed = _mixed(c, c.binary("xor", c.iota("u32", [elements], 0), halves[0]))
    return _mixed(c, c.binary("add", mixed, halves[1]))


def _mixed(c: Context, x: Value) -> Value:
    for shift, factor in ROUNDS:
        x = c.binary("mul", c.binary("xor", x, c.binary("shr", x, shift)), factor)
    return c.binary("xor", x, c.binary("shr", x, LAST_SHIFT))
