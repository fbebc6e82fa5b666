"""Each function of tl.extra.libdevice at random and at exceptional values, against exact arithmetic or a reference in more digits. On the
CPU, with HEDDLE_TILE_INTERPRET=1 in the interpreter, or with HEDDLE_TEST_TARGET=cuda on a GPU, emulated or real."""
import math
import operator
import os
import statistics
import struct
import sys
import unittest
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

import heddle
from heddle.tile.language.extra import libdevice
from tile_kernels import module_of

CUDA = os.environ.get("HEDDLE_TEST_TARGET") == "cuda"
if CUDA and not os.environ.get("HEDDLE_CUDA_DRIVER"):
    sys.exit("skipped: there is no GPU or emulator")

N = 32
INF, NAN = math.inf, math.nan
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
GAMMA = Decimal("0.57721566490153286060651209008240243104215933593992359880576723488486772677766467093694706329174674951")
random = np.random.default_rng(0)
TYPES = {"f": np.float32, "d": np.float64, "i": np.int32, "u": np.uint32, "l": np.int64, "L": np.uint64}
tested = set()


# -- References of floats

def in_digits(digits):
    """The reference in Decimal with so many digits."""
    def decorate(function):
        def compute(*arguments):
            with localcontext() as context:
                context.prec = digits
                return float(function(*(Decimal(a) if isinstance(a, float) else a for a in arguments)))
        return compute
    return decorate


def series(first, ratio):
    """The sum of terms of which each is the one before times ratio(k)."""
    total, term, k = first, first, 0
    while term and (abs(term) > abs(total) * Decimal(10) ** -140 or k < 40):
        k += 1
        term *= ratio(k)
        total += term
    return total


def bessel(n, x, sign):
    first = (x / 2) ** n / math.factorial(n) if n else Decimal(1)
    return series(first, lambda k: sign * x * x / 4 / (k * (k + n)))


def neumann(n, x):
    """Of order 0 and 1 by their series, beyond that by recurrence."""
    if n > 1:
        return 2 * (n - 1) / x * neumann(n - 1, x) - neumann(n - 2, x)
    total, term, harmonic = Decimal(0), (x / 2) ** n, Decimal(0)
    for k in range(120):
        following = harmonic + (Decimal(1) / (k + 1) if n else 0)
        total += term * (harmonic + following - 2 * GAMMA)
        term *= -x * x / 4 / ((k + 1) * (k + 1 + n))
        harmonic += Decimal(1) / (k + 1)
    result = 2 * (x / 2).ln() * bessel(n, x, -1) - total
    return (result - (2 / x if n else 0)) / PI


def error_function(x):
    return 2 / PI.sqrt() * series(x, lambda k: -x * x * (2 * k - 1) / (k * (2 * k + 1)))


@in_digits(200)
def scaled_complement(x):
    if x > 20:
        return series(1 / x, lambda k: -(2 * k - 1) / (2 * x * x) if k < 12 else Decimal(0)) / PI.sqrt()
    return (x * x).exp() * (1 - error_function(x))


def inverse_error_function(x, complement):
    """z of erf(z) = x, x = 1 - complement: Newton's steps in Decimal from the standard library's quantile."""
    start = statistics.NormalDist().inv_cdf(float(min(complement, 2 - complement) / 2)) / -math.sqrt(2)
    z = Decimal(start).copy_sign(x)
    for _ in range(4):
        z -= (error_function(z) - x) * PI.sqrt() / 2 * (z * z).exp()
    return z


@in_digits(150)
def erfinv(x):
    return inverse_error_function(x, 1 - x) if x else x


@in_digits(150)
def erfcinv(y):
    return inverse_error_function(1 - y, y) if y != 1 else Decimal(0)


@in_digits(150)
def normcdfinv(p):
    return -Decimal(2).sqrt() * inverse_error_function(1 - 2 * p, 2 * p) if p != Decimal("0.5") else Decimal(0)


def gamma(x):
    if x == -INF or (x < 0 and x == math.floor(x)):
        return NAN
    return math.copysign(INF, x) if x == 0 else math.gamma(x) if x < 172 else INF


def log_gamma(x):
    return INF if math.isinf(x) or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


def of_pi(function, shift):
    """sin or cos of pi x, reduced exactly."""
    def compute(x):
        if math.isinf(x) or math.isnan(x):
            return NAN
        turns = Fraction(x) % 2
        if shift == 0 and turns % 1 == 0:
            return math.copysign(0.0, x)
        if shift == 1 and turns % 1 == Fraction(1, 2):
            return 0.0
        nearest = round(turns * 2)
        rest = float(turns - Fraction(nearest, 2)) * math.pi
        return [math.sin(rest), math.cos(rest), -math.sin(rest), -math.cos(rest)][(nearest + shift) % 4]
    return compute


def exponent(x):
    return INF if math.isinf(x) else -INF if x == 0 else x if math.isnan(x) else float(math.frexp(x)[1] - 1)


def scaled(x, n):
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(INF, x)


def wild(function, otherwise=NAN):
    """Outside of its domain `otherwise`, infinite where it overflows."""
    def compute(*arguments):
        try:
            return function(*arguments)
        except (ValueError, ZeroDivisionError):
            return otherwise
        except OverflowError:
            return INF
    return compute


def power(base):
    return lambda x: float(base) ** x if x < 400 else INF


def log(function):
    return lambda x: -INF if x == 0 else NAN if x < 0 else function(x)


def inverse(function):
    return lambda *x: 1 / function(*x) if function(*x) else INF


@in_digits(40)
def cube_root(x):
    return (abs(x).ln() / 3).exp().copy_sign(x) if x else x


def half_away(x):
    return math.copysign(math.floor(abs(x) + 0.5), x) if abs(x) < 2.0 ** 52 else x


def saturated(low, high, step):
    return lambda x: max(low, min(high, step(x)))


EDGES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e-30, 2.0, 3.0, -2.0]
INPUTS = {  # edges, and the bounds of random values
    "any": (EDGES, -8, 8), "small": (EDGES[:2] + EDGES[5:], -8, 8), "positive": (EDGES[5:6] + [0.0, INF, NAN, 1e-30, 0.5, 2.0], 0.01, 30),
    "unit": ([0.0, -0.0, 0.5, -0.5, 0.25, 1e-30], -0.999, 0.999), "above one": ([1.0, INF, 2.0], 1.001, 50),
    "order": ([0.5, 1.0, 20.0], 0.3, 20), "wave": ([0.0, -0.0, 0.5, 20.0], -20, 20), "growing": ([0.0, -0.0, 0.5, 20.0, 60.0, 85.0], -40, 40),
    "probability": ([0.5, 0.25, 1e-7, 0.9999], 0.001, 0.999), "two": ([0.5, 1.0, 1.5, 1e-7], 0.001, 1.999),
    "turns": (EDGES + [1e9, 0.25, -0.75, 7.5, -8.0], -100, 100), "tail": ([0.0, -0.0, 25.0], -4, 9), "deviations": ([0.0, 6.0, -6.0], -7, 7),
}
# Bessel functions near their zeros, absolute: a GPU's are those that CUDA's programming guide states beyond 8.
ON_GPU = CUDA and os.path.basename(os.environ["HEDDLE_CUDA_DRIVER"]).startswith("libcuda.so")
WAVE = {"f": 2.2e-6, "d": 5e-12} if ON_GPU else {"f": 1e-6, "d": 2e-15}
# name, kinds of the arguments, the inputs of each, the reference, ulps of a float and of a double, an absolute error of both.
F = [
    *((name, ("any",), getattr(math, name), 4, 2) for name in ("atan", "asinh")),
    *((name, ("small",), getattr(math, name), 4, 2) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "expm1", "exp")),
    *((name, ("unit",), getattr(math, name), 4, 2) for name in ("asin", "acos", "atanh")),
    ("acosh", ("above one",), math.acosh, 4, 2), ("log1p", ("positive",), math.log1p, 4, 2),
    ("exp2", ("small",), power(2), 4, 2), ("exp10", ("small",), power(10), 8, 4), ("cbrt", ("small",), cube_root, 4, 4),
    *((name, ("positive",), log(getattr(math, name)), 4, 2) for name in ("log", "log2", "log10")),
    ("sqrt", ("any",), wild(math.sqrt), 1, 1), ("rsqrt", ("positive",), inverse(math.sqrt), 3, 3), ("rcbrt", ("small",), lambda x: 1 / cube_root(x) if x else math.copysign(INF, x), 4, 4),
    *((name, ("small",), lambda x, f=f: f(x), 0, 0) for name, f in (
        ("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc), ("rint", round), ("nearbyint", round), ("round", half_away))),
    ("erfcx", ("tail",), scaled_complement, 1, 4), ("erfinv", ("unit",), erfinv, 2, 4), ("erfcinv", ("two",), erfcinv, 2, 8),
    ("normcdf", ("deviations",), in_digits(100)(lambda x: (1 + error_function(x / Decimal(2).sqrt())) / 2), 1, 4),
    ("normcdfinv", ("probability",), normcdfinv, 2, 8), ("lgamma", ("any",), log_gamma, 2, 4, 4e-15), ("tgamma", ("any",), gamma, 4, 10),
    ("sinpi", ("turns",), of_pi(math.sin, 0), 1, 3), ("cospi", ("turns",), of_pi(math.cos, 1), 1, 3), ("logb", ("any",), exponent, 0, 0),
    *((name, ("wave",), in_digits(60)(lambda x, n=n: bessel(n, x, -1)), 4, 8, WAVE["d"]) for n, name in enumerate(("j0", "j1"))),
    *((name, ("order",), in_digits(60)(lambda x, n=n: neumann(n, x)), 4, 8, WAVE["d"]) for n, name in enumerate(("y0", "y1"))),
    *((name, ("growing",), in_digits(60)(lambda x, n=n: bessel(n, x, 1)), 2, 16) for n, name in enumerate(("cyl_bessel_i0", "cyl_bessel_i1"))),
    ("pow", ("positive", "unit"), wild(math.pow), 16, 2), ("atan2", ("any", "any"), math.atan2, 4, 2), ("hypot", ("any", "any"), math.hypot, 2, 2),
    ("rhypot", ("small", "small"), inverse(math.hypot), 3, 3), ("copysign", ("any", "any"), math.copysign, 0, 0), ("nextafter", ("any", "any"), None, 0, 0),
    ("fdim", ("small", "small"), lambda x, y: x - y if x > y else 0.0, 1, 1), ("fmod", ("any", "any"), wild(math.fmod), 0, 0),
    ("remainder", ("any", "any"), wild(math.remainder), 0, 0),
    ("norm3d", ("small",) * 3, math.hypot, 3, 3), ("norm4d", ("small",) * 4, math.hypot, 3, 3),
    ("rnorm3d", ("small",) * 3, inverse(math.hypot), 4, 4), ("rnorm4d", ("small",) * 4, inverse(math.hypot), 4, 4), ("abs", ("any",), abs, 0, 0),
]
SINGLE = [  # of a float alone
    ("fast_sinf", ("unit",), math.sin, 4), ("fast_cosf", ("unit",), math.cos, 4), ("fast_tanf", ("unit",), math.tan, 4), ("fast_tanhf", ("small",), math.tanh, 4),
    ("fast_expf", ("small",), math.exp, 4), ("fast_exp10f", ("small",), power(10), 8), ("fast_logf", ("positive",), log(math.log), 4),
    ("fast_log2f", ("positive",), log(math.log2), 4), ("fast_log10f", ("positive",), log(math.log10), 4), ("fast_powf", ("positive", "unit"), wild(math.pow), 16),
    ("fast_dividef", ("small", "above one"), wild(operator.truediv), 2), ("saturatef", ("small",), saturated(0.0, 1.0, float), 0),
    ("rsqrt_rn", ("positive",), inverse(math.sqrt), 0.5000001),
]


# -- Exact references

def rounded(value, kind, to):
    """A fraction as the float or double that it is rounded to: rn, rz, rd, ru."""
    digits, least = (24, -149) if kind == "f" else (53, -1074)
    if value == 0:
        return 0.0
    size = abs(value)
    unit = size.numerator.bit_length() - size.denominator.bit_length() - digits
    while size / Fraction(2) ** unit >= 2 ** digits:
        unit += 1
    unit = max(unit, least)
    whole, rest = divmod(size / Fraction(2) ** unit, 1)
    up = {"rz": False, "rd": value < 0, "ru": value > 0, "rn": rest * 2 > 1 or (rest * 2 == 1 and whole % 2 == 1)}[to]
    whole += bool(rest) and up
    limit = 128 if kind == "f" else 1024
    if whole * Fraction(2) ** unit >= Fraction(2) ** limit:
        away = to == "rn" or (to == "ru") == (value > 0) and to != "rz"
        size = INF if away else float((2 ** digits - 1) * Fraction(2) ** (limit - digits))
    else:
        size = float(whole * Fraction(2) ** unit)
    return size if value > 0 else -size


def square_root(x):
    """To more digits than any float has, and not on a boundary between two of them unless it is exact."""
    scale = Fraction(4) ** 700
    root = math.isqrt(int(x * scale))
    exact = root * root == x * scale
    return Fraction(root * 2 + (not exact), 2 * 2 ** 700)


ARITHMETIC = {"add": (2, operator.add), "sub": (2, operator.sub), "mul": (2, operator.mul), "div": (2, operator.truediv),
              "rcp": (1, lambda x: 1 / x), "sqrt": (1, lambda x: square_root(abs(x))), "fma": (3, lambda x, y, z: x * y + z)}


def signed(x, bits=32):
    return (x + 2 ** (bits - 1)) % 2 ** bits - 2 ** (bits - 1)


def low_24(x):
    return signed(x, 24) if x < 2 ** 24 else signed(x % 2 ** 24, 24)


def bytes_of(x, y, selector):
    data = struct.pack("<II", x % 2 ** 32, y % 2 ** 32)
    return struct.unpack("<i", bytes(data[selector % 2 ** 32 >> 4 * i & 7] for i in range(4)))[0]


def bits(value, source, to):
    return struct.unpack("<" + to, struct.pack("<" + source, value))[0]


def reciprocal_of_high_word(x):
    def cut(value):
        return bits(bits(value, "d", "Q") & ~0xffffffff, "Q", "d")
    return cut(1 / cut(x))


WORDS = [  # name, kinds of the arguments and of the result, the reference
    *((name, kind, "i", f) for kind, width in (("i", 32), ("l", 64)) for name, f in (
        ("popc", lambda x, w=width: bin(x % 2 ** w).count("1")), ("clz", lambda x, w=width: w - (x % 2 ** w).bit_length()),
        ("ffs", lambda x: (x & -x).bit_length()))),
    *(("brev", kind, kind, lambda x, w=width: signed(int(format(x % 2 ** w, f"0{w}b")[::-1], 2), w)) for kind, width in (("i", 32), ("l", 64))),
    *(("mulhi", kind * 2, kind, lambda x, y, w=width: x * y >> w) for kind, width in (("i", 32), ("u", 32), ("l", 64), ("L", 64))),
    ("mul24", "ii", "i", lambda x, y: signed(low_24(x) * low_24(y))), ("umul24", "uu", "u", lambda x, y: x % 2 ** 24 * (y % 2 ** 24) % 2 ** 32),
    ("sad", "iiu", "i", lambda x, y, z: signed(abs(x - y) + z)), ("usad", "uuu", "u", lambda x, y, z: (abs(x - y) + z) % 2 ** 32),
    ("hadd", "ii", "i", lambda x, y: x + y >> 1), ("uhadd", "uu", "u", lambda x, y: x + y >> 1),
    ("rhadd", "ii", "i", lambda x, y: x + y + 1 >> 1), ("urhadd", "uu", "u", lambda x, y: x + y + 1 >> 1),
    ("byte_perm", "iii", "i", bytes_of), ("hiloint2double", "ii", "d", lambda x, y: bits((x % 2 ** 32 << 32) + y % 2 ** 32, "Q", "d")),
    ("double2hiint", "d", "i", lambda x: bits(x, "d", "q") >> 32), ("double2loint", "d", "i", lambda x: signed(bits(x, "d", "q") % 2 ** 32)),
    ("rcp64h", "d", "d", reciprocal_of_high_word), ("int_as_float", "i", "f", lambda x: bits(x, "i", "f")), ("uint_as_float", "u", "f", lambda x: bits(x, "I", "f")),
    ("float_as_int", "f", "i", lambda x: bits(x, "f", "i")), ("float_as_uint", "f", "u", lambda x: bits(x, "f", "I")),
    ("longlong_as_double", "l", "d", lambda x: bits(x, "q", "d")), ("double_as_longlong", "d", "l", lambda x: bits(x, "d", "q")),
    *((name, kind, "l", f) for kind in "fd" for name, f in (("llrint", round), ("llround", lambda x: int(half_away(x))))),
    *((name, kind, "i", f) for kind in "fd" for name, f in (
        ("isnan", math.isnan), ("isinf", math.isinf), ("signbit", lambda x: math.copysign(1, x) < 0), ("isfinited", math.isfinite), ("finitef", math.isfinite))),
    *(("ilogb", kind, "i", lambda x: -2 ** 31 if x == 0 or math.isnan(x) else 2 ** 31 - 1 if math.isinf(x) else math.frexp(x)[1] - 1) for kind in "fd"),
    *(("abs", kind, kind, abs) for kind in "il"),
    *((name, kind + "i", kind, lambda x, n, k=kind: scaled(x, n) if k == "d" else float(np.float32(scaled(x, n))) if abs(scaled(x, n)) < 2.0 ** 128 else math.copysign(INF, x))
      for kind in "fd" for name in ("ldexp", "scalbn")),
]


def words(kind):
    """Random values of a type, of all sizes, and its ends."""
    if kind in "fd":
        values = random.standard_normal(N) * 2.0 ** random.integers(-20, 20, N)
        values[:4] = [0.0, -0.0, 1.0, -1.5]
        return values.astype(TYPES[kind])
    info = np.iinfo(TYPES[kind])
    values = random.integers(info.min, info.max, N, TYPES[kind], endpoint=True) >> random.integers(0, info.bits, N).astype(TYPES[kind])
    values[:3] = [info.min, info.max, 1]
    return values


def conversions():
    """(name, kind, result, values, reference) of all casts."""
    for word, to, bits_of in (("int", "i", 31), ("uint", "u", 32), ("ll", "l", 63), ("ull", "L", 64)):
        for name, kind in (("float", "f"), ("double", "d")):
            low = 0 if word.startswith("u") else -1
            values = (random.uniform(low, 1, N) * 2.0 ** random.integers(0, bits_of, N)).astype(TYPES[kind])
            values[:5] = [0.5, 1.5, 2.5, 0.0, abs(low) * -0.5]
            for suffix, step in (("rn", round), ("rz", math.trunc), ("rd", math.floor), ("ru", math.ceil)):
                yield f"{name}2{word}_{suffix}", kind, to, values, lambda x, s=step: s(x)
                if name == "float" or word in ("ll", "ull") or suffix == "rn":
                    yield f"{word}2{name}_{suffix}", to, kind, words(to), lambda x, k=kind, s=suffix: rounded(Fraction(x), k, s)
    values = random.standard_normal(N) * 2.0 ** random.integers(-160, 130, N)
    for suffix in ("rn", "rz", "rd", "ru"):
        yield f"double2float_{suffix}", "d", "f", values, lambda x, s=suffix: rounded(Fraction(x), "f", s)


def run(calls):
    """What calls (name, the arrays of its arguments, the kind of its result) give: one kernel for all."""
    names, body, arrays = [], [], []
    for i, (name, values, result) in enumerate(calls):
        loads = []
        for value in values:
            names.append(f"P{len(arrays)}")
            loads.append(f"tl.load({names[-1]} + at)")
            arrays.append(np.ascontiguousarray(value))
        names.append(f"P{len(arrays)}")
        body.append(f"    tl.store({names[-1]} + at, libdevice.{name}({', '.join(loads)}))")
        arrays.append(np.zeros(N, TYPES[result]))
    text = ("from heddle.tile.language.extra import libdevice\n\n@triton.jit\ndef kernel(" + ", ".join(names) + "):\n"
            f"    at = tl.arange(0, {N})\n" + "\n".join(body) + "\n")
    given = [heddle.tensor(array, device="cuda:0") for array in arrays] if CUDA else arrays
    module_of(text).kernel[(1,)](*given)
    results, at = [], 0
    for _, values, _ in calls:
        at += len(values)
        results.append(given[at].numpy() if CUDA else arrays[at])
        at += 1
    tested.update(name for name, _, _ in calls)
    return results


class Libdevice(unittest.TestCase):
    def compare(self, name, values, got, want, ulps=0.0, absolute=0.0):
        for i, (found, wanted) in enumerate(zip(got.tolist(), want)):
            where = f"{name}({', '.join(repr(value[i].item()) for value in values)}) is {found!r}, not {wanted!r}"
            if isinstance(wanted, float) and math.isnan(wanted):
                self.assertTrue(math.isnan(found), where)
            elif isinstance(wanted, float) and (math.isinf(wanted) or wanted == 0 and not absolute):
                self.assertTrue(found == wanted, where)
            elif isinstance(found, float) and found != wanted:
                unit = float(np.spacing(np.abs(got.dtype.type(wanted))))
                self.assertLessEqual(abs(found - wanted), ulps * unit + absolute, where)
            else:
                self.assertEqual(found, wanted, where)

    def check_floats(self, kind, table):
        """table: (name, inputs, reference, ulps, absolute error)."""
        calls, wanted = [], []
        for name, inputs, reference, *_ in table:
            values = []
            for j, key in enumerate(inputs):
                edges, low, high = INPUTS[key]
                made = np.concatenate([np.roll(edges, 3 * j), random.uniform(low, high, N)])[:N].astype(TYPES[kind])
                values.append(made)
            calls.append((name, values, kind))
            if name == "nextafter":
                wanted.append(np.nextafter(*values).tolist())
                continue
            wanted.append([NAN if any(map(math.isnan, x)) and name not in ("copysign", "hypot", "pow", "fast_powf") else float(reference(*x)) for x in zip(*(v.tolist() for v in values))])
        limit = float(np.finfo(TYPES[kind]).max)
        for (name, values, _), got, want, row in zip(calls, run(calls), wanted, table):
            want = [math.copysign(INF, w) if abs(w) > limit * (1 + 1e-8) else w for w in want]
            self.compare(name, values, got, want, row[3], row[4])

    def test_functions_of_floats(self):
        # Approximate forms of a GPU are less exact; those of zeros between waves have an absolute error.
        table = [(n, i, f, u * (4 if CUDA else 1), WAVE["f"] if i[0] in ("wave", "order") else 1e-6 if n == "lgamma" else 0.0) for n, i, f, u, *_ in F]
        self.check_floats("f", table + [(n, i, f, u * (4 if CUDA and u > 1 else 1), 0.0) for n, i, f, u in SINGLE])

    def test_functions_of_doubles(self):
        self.check_floats("d", [(n, i, f, u, absolute[0] if absolute else 0.0) for n, i, f, _, u, *absolute in F])

    def test_bessel_functions_of_any_order(self):
        orders = np.array([0, 1, 2, 3, 5] * N, np.int32)[:N]
        for kind, absolute in (("f", WAVE["f"]), ("d", WAVE["d"] if ON_GPU else 4e-15)):
            x = random.uniform(2, 20, N).astype(TYPES[kind])
            j, y = run([("jn", [orders, x], kind), ("yn", [orders, x], kind)])
            self.compare("jn", [orders, x], j, [in_digits(60)(lambda x, n=n: bessel(n, x, -1))(v) for n, v in zip(orders.tolist(), x.tolist())], 8, absolute)
            self.compare("yn", [orders, x], y, [in_digits(60)(lambda x, n=n: neumann(n, x))(v) for n, v in zip(orders.tolist(), x.tolist())], 8, absolute)

    def test_arithmetic_rounds_as_asked(self):
        calls, wanted = [], []
        for kind, most in (("f", 126), ("d", 1022)):
            for function, (count, exact) in ARITHMETIC.items():
                for suffix in ("rn", "rz", "rd", "ru"):
                    values = [(random.uniform(1, 2, N) * 2.0 ** random.integers(-most // 2, most // 2, N) * random.choice([-1, 1], N)).astype(TYPES[kind]) for _ in range(count)]
                    for value in values:  # beyond the largest, and below the smallest normal numbers
                        value[:2] = np.finfo(TYPES[kind]).max, np.finfo(TYPES[kind]).tiny * 1.5
                    if function == "sqrt":
                        values = [abs(values[0])]
                    calls.append((f"{function}_{suffix}", values, kind))
                    wanted.append([rounded(Fraction(exact(*map(Fraction, x))), kind, suffix) for x in zip(*(v.tolist() for v in values))])
        for (name, values, _), got, want in zip(calls, run(calls), wanted):
            self.compare(name, values, got, want)
        x = random.standard_normal((3, N))
        self.compare("fma", x, run([("fma", list(x), "d")])[0], [rounded(Fraction(a) * Fraction(b) + Fraction(c), "d", "rn") for a, b, c in x.T.tolist()])

    def test_conversions_round_as_asked(self):
        rows = list(conversions())
        for (name, _, _, values, reference), got in zip(rows, run([(name, [values], result) for name, _, result, values, _ in rows])):
            self.compare(name, [values], got, [reference(value) for value in values.tolist()])

    def test_words(self):
        calls = []
        for name, kinds, result, _ in WORDS:
            values = [words(kind) for kind in kinds]
            if name in ("isnan", "isinf", "signbit", "isfinited", "finitef", "ilogb"):
                values[0][4:8] = [INF, -INF, NAN, 1e-39 if kinds == "f" else 1e-310]
            if name in ("ldexp", "scalbn"):
                values[1] = random.integers(-170, 140, N, np.int32) if kinds[0] == "f" else random.integers(-1100, 1030, N, np.int32)
            if name == "rcp64h":
                values[0][:2] = 3.0, -7.0
            if name in ("int_as_float", "uint_as_float", "longlong_as_double", "hiloint2double"):
                values[0] = abs(words("d" if kinds == "l" else "f")).view(values[0].dtype)
            if name == "abs":
                values[0][0] = 5  # of the least number there is none
            calls.append((name, values, result))
        for (name, values, _), got, (_, _, _, reference) in zip(calls, run(calls), WORDS):
            self.compare(name, values, got, [reference(*x) for x in zip(*(v.tolist() for v in values))])

    def test_zz_each_function_is_tested(self):
        public = {name for name, value in vars(libdevice).items() if callable(value) and not name.startswith("_")}
        self.assertEqual(public - tested, set())


if __name__ == "__main__":
    unittest.main()
