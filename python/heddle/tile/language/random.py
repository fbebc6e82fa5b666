"""Random numbers by Philox 4x32-10: the words depend on the seed and on an offset, which is the counter, and on nothing else."""
from heddle.tile.language import arithmetic as a
from heddle.tile.language import math
from heddle.tile.language import types as t
from heddle.tile.language.promotion import bitcast, broadcast_together, cast, constant, to_tensor
from heddle.tile.language.shaping import builtin
from heddle.tile.language.values import tuple

N_ROUNDS_DEFAULT = 10
# bits: (steps of the two keys, factors of the two products)
_PHILOX = {
    32: (0x9E3779B9, 0xBB67AE85, 0xD2511F53, 0xCD9E8D57),
    64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, 0xD2E7470EE14C6C93, 0xCA5A826395121157),
}


def _plus(x, y):
    return a.elementwise("add", x, y)


@builtin
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds=N_ROUNDS_DEFAULT):
    """Rounds of Philox on a counter of four words with a key of two, of 32 or 64 bits."""
    if c0.type.scalar not in (t.uint32, t.uint64):
        raise TypeError(f"dtype {c0.type.scalar} not supported in philox_impl: words are uint32 or uint64")
    c0, k0, k1 = (to_tensor(one) for one in (c0, k0, k1))
    step_a, step_b, factor_a, factor_b = _PHILOX[c0.type.scalar.int_bitwidth]
    word = c0.type.scalar
    for _ in range(n_rounds):
        high0, low0 = a.umulhi(constant(factor_b, word), c2), a.elementwise("mul", *broadcast_together(constant(factor_b, word), c2))
        high2, low2 = a.umulhi(constant(factor_a, word), c0), a.elementwise("mul", *broadcast_together(constant(factor_a, word), c0))
        c0, c1 = a.bit_xor(a.bit_xor(high0, c1), k0), low0
        c2, c3 = a.bit_xor(a.bit_xor(high2, c3), k1), low2
        k0, k1 = _plus(*broadcast_together(k0, constant(step_a, word))), _plus(*broadcast_together(k1, constant(step_b, word)))
    return tuple([c0, c1, c2, c3])




@builtin
def philox(seed, c0, c1, c2, c3, n_rounds=N_ROUNDS_DEFAULT):
    """Four words for a seed, which is the key, and a counter of four words."""
    seed = to_tensor(seed)
    if not seed.type.scalar.is_int():
        raise TypeError(f"a seed is an integer, not a {seed!r}")
    seed = cast(seed, t.uint64)
    counter = [to_tensor(one) for one in (c0, c1, c2, c3)]
    bits = counter[0].type.scalar.primitive_bitwidth
    if bits not in _PHILOX:
        raise TypeError(f"bitwidth {bits} not supported in philox: words have 32 or 64")
    word = t.get_int_dtype(bits, False)
    if bits == 32:
        low, high = cast(seed, word), cast(a.shr(seed, 32), word)
    else:
        low, high = seed, constant(0, word)
    return philox_impl(*(bitcast(one, word) for one in counter), low, high, n_rounds)


@builtin
def randint4x(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """Four tiles of random words for a seed and a tile of offsets."""
    offset = to_tensor(offset)
    low = cast(offset, t.uint32)
    zero = constant(0, low.type)
    high = cast(a.shr(offset, 32), t.uint32) if offset.type.scalar.primitive_bitwidth > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


@builtin
def randint(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """A tile of random words for a seed and a tile of offsets."""
    return randint4x(seed, offset, n_rounds)[0]


@builtin
def uint_to_uniform_float(x):
    """A random word as an fp32 in [0, 1)."""
    bits = x.type.scalar.primitive_bitwidth
    scale = {32: 4.6566127342e-10, 64: 1.0842020432385337e-19}[bits]  # so that the largest word stays below 1
    x = bitcast(x, t.get_int_dtype(bits, True))
    positive = a.where(a.compare("lt", x, 0), a.sub(a.neg(x), 1), x)
    return a.mul(cast(positive, t.float32), scale)


@builtin
def rand(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """A tile of fp32 in [0, 1), all equally likely."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@builtin
def rand4x(seed, offsets, n_rounds=N_ROUNDS_DEFAULT):
    """Four tiles of fp32 in [0, 1), all equally likely."""
    return tuple([uint_to_uniform_float(word) for word in randint4x(seed, offsets, n_rounds)])


@builtin
def pair_uniform_to_normal(u1, u2):
    """Two independent normal numbers of two uniform ones (Box and Muller)."""
    u1 = a.maximum(1.0e-7, u1)
    angle = a.mul(6.283185307179586, u2)
    radius = math.sqrt(a.mul(-2.0, math.log(u1)))
    return tuple([a.mul(radius, math.cos(angle)), a.mul(radius, math.sin(angle))])


@builtin
def randn(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """A tile of normal fp32 with mean 0 and variance 1."""
    words = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(words[0]), uint_to_uniform_float(words[1]))[0]


@builtin
def randn4x(seed, offset, n_rounds=N_ROUNDS_DEFAULT):
    """Four tiles of normal fp32 with mean 0 and variance 1."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    return tuple([*pair_uniform_to_normal(u1, u2), *pair_uniform_to_normal(u3, u4)])
