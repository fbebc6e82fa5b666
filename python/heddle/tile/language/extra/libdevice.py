"""Functions of each element by the names of CUDA's libdevice; on a CPU and on a GPU the same ones of Heddle."""
from heddle.tile.language import arithmetic as _a
from heddle.tile.language import types as _t
from heddle.tile.language.promotion import bitcast as _bitcast
from heddle.tile.language.promotion import broadcast_together as _broadcast_together
from heddle.tile.language.promotion import cast as _cast
from heddle.tile.language.promotion import constant as _constant
from heddle.tile.language.promotion import operands as _operands
from heddle.tile.language.promotion import to_tensor as _to_tensor
from heddle.tile.language.shaping import builtin as _builtin

_FLOATS = (_t.float32, _t.float64)
_INTS = (_t.int32, _t.uint32, _t.int64, _t.uint64)


def _check(name, values, types):
    for value in values:
        if value.type.scalar not in types:
            raise ValueError(f"input arg type does not match: {name} takes {' or '.join(map(str, types))}, not {value!r}")


def _define(name, op, count=1, types=_FLOATS, result=None, **attributes):
    @_builtin
    def compute(*arguments):
        if len(arguments) != count:
            raise TypeError(f"{name} takes {count} arguments, not {len(arguments)}")
        values = [_to_tensor(one) for one in arguments]
        if count == 2:
            values = list(_operands(*values))
        values = _broadcast_together(*values) if count > 1 else values
        _check(name, values, types)
        type = values[0].type
        return _a.elementwise(op, *values, result=type.with_element_ty(result) if result else type, **attributes)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{name} of each element, of {' or '.join(map(str, types))}."
    globals()[name] = compute


def _define_with_integer(name, op, integer):
    """Of floats and int32; `integer`: which argument those are."""
    @_builtin
    def compute(x, y):
        values = _broadcast_together(_to_tensor(x), _to_tensor(y))
        number, count = values[1 - integer], values[integer]
        _check(name, [number], _FLOATS)
        _check(name, [count], (_t.int32,))
        return _a.elementwise(op, number, count)

    compute.__name__ = compute.__qualname__ = name
    globals()[name] = compute


for _name in ("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "erfcx", "erfinv", "erfcinv", "normcdf",
              "normcdfinv", "lgamma", "tgamma", "sinpi", "cospi", "j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1", "logb",
              "floor", "ceil", "trunc"):
    _define(_name, _name)
for _name, _op in (("rint", "round"), ("nearbyint", "round"), ("round", "round_away"), ("fast_sinf", "sin"), ("fast_cosf", "cos"), ("fast_tanf", "tan"), ("fast_tanhf", "tanh"),
                   ("fast_expf", "exp"), ("fast_exp10f", "exp10"), ("fast_logf", "log"), ("fast_log2f", "log2"),
                   ("fast_log10f", "log10")):
    _define(_name, _op)
for _name in ("pow", "atan2", "hypot", "copysign", "nextafter", "fdim", "remainder"):
    _define(_name, _name, 2)
_define("fmod", "rem", 2)
_define("fast_powf", "pow", 2)
_define("fast_dividef", "div", 2)
_define("fma", "fma", 3)
for _name, _integer in (("ldexp", 1), ("jn", 0), ("yn", 0)):
    _define_with_integer(_name, _name, _integer)
_define_with_integer("scalbn", "ldexp", 1)
_define("clz", "clz", types=_INTS, result=_t.int32)
_define("popc", "popc", types=_INTS, result=_t.int32)
_define("ffs", "ffs", types=_INTS, result=_t.int32)
_define("brev", "brev", types=_INTS)
_define("mulhi", "mulhi", 2, types=_INTS)

_ROUNDINGS = {"rn": "rtne", "rz": "rtz", "rd": "rtn", "ru": "rtp"}
for _function, _count in (("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("rcp", 1), ("sqrt", 1), ("fma", 3)):
    for _suffix, _to in _ROUNDINGS.items():
        _define(f"{_function}_{_suffix}", "rounded", _count, function=_function, to=_to)


@_builtin
def rsqrt_rn(x):
    """1 / sqrt(x) of each float32, rounded to the nearest."""
    x = _to_tensor(x)
    _check("rsqrt_rn", [x], (_t.float32,))
    return _cast(_a.truediv(1.0, _a.elementwise("sqrt", _cast(x, _t.float64))), _t.float32)


@_builtin
def abs(x):
    """The absolute value of each element."""
    return _a.absolute(_to_tensor(x))


def _truth(op):
    @_builtin
    def test(x):
        x = _to_tensor(x)
        _check(op, [x], _FLOATS)
        return _cast(_a.elementwise(op, x, result=x.type.with_element_ty(_t.int1)), _t.int32)

    test.__doc__ = f"{op} of each element as 1 or 0."
    return test


isnan, isinf = _truth("is_nan"), _truth("is_inf")


@_builtin
def isfinited(x):
    """Whether each element is a number and finite, as 1 or 0."""
    x = _to_tensor(x)
    return _cast(_a.compare("lt", _a.absolute(x), _constant(float("inf"), x.type.scalar)), _t.int32)


finitef = isfinited


@_builtin
def signbit(x):
    """The sign of each element as 1 or 0."""
    x = _to_tensor(x)
    return _cast(_a.compare("lt", _bitcast(x, _t.get_int_dtype(x.type.scalar.primitive_bitwidth, True)), 0), _t.int32)


@_builtin
def saturatef(x):
    """Each element, at least 0 and at most 1."""
    return _a.clamp(x, 0.0, 1.0)


def _reciprocal(of):
    def compute(*arguments):
        return _a.truediv(1.0, of(*arguments))

    return _builtin(compute)


rhypot, rcbrt = _reciprocal(globals()["hypot"]), _reciprocal(globals()["cbrt"])


@_builtin
def norm3d(x, y, z):
    """The length of vectors of three."""
    hypot = globals()["hypot"]
    return hypot(hypot(x, y), z)


@_builtin
def norm4d(x, y, z, w):
    """The length of vectors of four."""
    hypot = globals()["hypot"]
    return hypot(hypot(x, y), hypot(z, w))


rnorm3d, rnorm4d = _reciprocal(norm3d), _reciprocal(norm4d)


@_builtin
def ilogb(x):
    """The exponent of each element as int32: the least int32 of 0 and NaN, the largest of infinity."""
    x = _to_tensor(x)
    exponent = _cast(globals()["logb"](x), _t.int32)
    return _a.where(_a.compare("eq", x, x), exponent, -0x80000000)


def _define_cast(name, source, target, rounding):
    """Names such as float2int_rd: from, to, and how what lies between two results is rounded."""
    @_builtin
    def convert(x):
        x = _to_tensor(x)
        _check(name, [x], (source,))
        if source.is_floating() and target.is_int():
            step = {"rn": "round", "rd": "floor", "ru": "ceil", "rz": "trunc"}[rounding]
            return _cast(_a.elementwise(step, x), target)
        return _a.elementwise("rounded", x, result=x.type.with_element_ty(target), function="cast", to=_ROUNDINGS[rounding])

    globals()[name] = convert


_WORDS = {"int": _t.int32, "uint": _t.uint32, "ll": _t.int64, "ull": _t.uint64}
for _word, _type in _WORDS.items():
    for _float, _source in (("float", _t.float32), ("double", _t.float64)):
        for _rounding in ("rn", "rz", "rd", "ru"):
            _define_cast(f"{_float}2{_word}_{_rounding}", _source, _type, _rounding)
            if _word in ("ll", "ull") or _float == "float" or _rounding == "rn":  # a double has every integer of 32 bits
                _define_cast(f"{_word}2{_float}_{_rounding}", _type, _source, _rounding)
for _rounding in _ROUNDINGS:
    _define_cast(f"double2float_{_rounding}", _t.float64, _t.float32, _rounding)


def _define_bits(name, source, target):
    globals()[name] = _builtin(lambda x: _bitcast(x, target))
    globals()[name].__doc__ = f"The bits of {source} as {target}."


for _name, _source, _target in (
        ("int_as_float", _t.int32, _t.float32), ("float_as_int", _t.float32, _t.int32), ("uint_as_float", _t.uint32, _t.float32),
        ("float_as_uint", _t.float32, _t.uint32), ("longlong_as_double", _t.int64, _t.float64),
        ("double_as_longlong", _t.float64, _t.int64)):
    _define_bits(_name, _source, _target)


@_builtin
def llrint(x):
    """Each element rounded to the nearest integer, as int64."""
    return _cast(_a.elementwise("round", _to_tensor(x)), _t.int64)


@_builtin
def llround(x):
    """Each element rounded to the nearest integer, halves away from zero, as int64."""
    return _cast(_a.elementwise("round_away", _to_tensor(x)), _t.int64)


# -- words and their parts

def _define_words(name, compute, count, types):
    @_builtin
    def words(*arguments):
        if len(arguments) != count:
            raise TypeError(f"{name} takes {count} arguments, not {len(arguments)}")
        values = _broadcast_together(*map(_to_tensor, arguments))
        _check(name, values, types)
        return compute(*values)

    words.__name__ = words.__qualname__ = name
    words.__doc__ = f"{name} of each element, of {' or '.join(map(str, types))}."
    globals()[name] = words


def _low_24(x):
    """The low 24 bits, with the sign that the highest of them is in an int32."""
    return _a.shr(_a.shl(x, 8), 8)


def _distance(x, y, z):
    """|x - y| + z"""
    larger, smaller = (_bitcast(pick(x, y), _t.uint32) for pick in (_a.maximum, _a.minimum))
    return _bitcast(_a.add(_a.sub(larger, smaller), _bitcast(z, _t.uint32)), x.type.scalar)


def _pick_bytes(x, y, selector):
    """Byte i of the result is the one of y, x (8 bytes) that bits 4 i to 4 i + 2 of the selector count."""
    x, y, selector = (_bitcast(word, _t.uint32) for word in (x, y, selector))
    result = None
    for i in range(4):
        at = _a.bit_and(_a.shr(selector, 4 * i), 7)
        word = _a.where(_a.compare("lt", at, 4), x, y)
        byte = _a.bit_and(_a.shr(word, _a.mul(_a.bit_and(at, 3), 8)), 0xff)
        result = byte if result is None else _a.bit_or(result, _a.shl(byte, 8 * i))
    return _bitcast(result, _t.int32)


def _join_words(high, low):
    high, low = _cast(high, _t.int64), _cast(_bitcast(low, _t.uint32), _t.int64)
    return _bitcast(_a.bit_or(_a.shl(high, 32), low), _t.float64)


def _without_low_word(x):
    return _bitcast(_a.bit_and(_bitcast(x, _t.int64), -0x100000000), _t.float64)


def _mean(x, y):
    """(x + y) >> 1 without overflow."""
    return _a.add(_a.bit_and(x, y), _a.shr(_a.bit_xor(x, y), 1))


def _mean_up(x, y):
    """(x + y + 1) >> 1 without overflow."""
    return _a.sub(_a.bit_or(x, y), _a.shr(_a.bit_xor(x, y), 1))


_WORD, _UNSIGNED = (_t.int32, _t.uint32), (_t.uint32,)
for _name, _compute, _count, _types in (
        ("mul24", lambda x, y: _a.mul(_low_24(x), _low_24(y)), 2, _WORD), ("sad", _distance, 3, _WORD),
        ("hadd", _mean, 2, _WORD), ("rhadd", _mean_up, 2, _WORD), ("byte_perm", _pick_bytes, 3, _WORD),
        ("hiloint2double", _join_words, 2, _WORD),
        ("double2hiint", lambda x: _cast(_a.shr(_bitcast(x, _t.int64), 32), _t.int32), 1, (_t.float64,)),
        ("double2loint", lambda x: _cast(_bitcast(x, _t.int64), _t.int32), 1, (_t.float64,)),
        # The reciprocal of the high word, whose low word is 0.
        ("rcp64h", lambda x: _without_low_word(_a.truediv(1.0, _without_low_word(x))), 1, (_t.float64,))):
    _define_words(_name, _compute, _count, _types)
    if _types is _WORD and _name in ("mul24", "sad", "hadd", "rhadd"):
        _define_words({"mul24": "umul24", "sad": "usad", "hadd": "uhadd", "rhadd": "urhadd"}[_name], _compute, _count, _UNSIGNED)
