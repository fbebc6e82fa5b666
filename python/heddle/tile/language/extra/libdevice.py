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


for _name in ("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "floor", "ceil", "trunc", "round",
              "rint"):
    _define(_name, _name)
for _name, _op in (("nearbyint", "rint"), ("fast_sinf", "sin"), ("fast_cosf", "cos"), ("fast_tanf", "tan"), ("fast_tanhf", "tanh"),
                   ("fast_expf", "exp"), ("fast_exp10f", "exp10"), ("fast_logf", "log"), ("fast_log2f", "log2"),
                   ("fast_log10f", "log10"), ("rsqrt_rn", "rsqrt")):
    _define(_name, _op)
for _name in ("pow", "atan2", "hypot", "copysign", "nextafter", "fdim"):
    _define(_name, _name, 2)
_define("fmod", "rem", 2)
_define("fast_powf", "pow", 2)
_define("fast_dividef", "div", 2)
_define("div_rn", "div", 2, ieee=1)
_define("sqrt_rn", "sqrt", ieee=1)
for _name, _op in (("add_rn", "add"), ("sub_rn", "sub"), ("mul_rn", "mul")):
    _define(_name, _op, 2)
_define("fma", "fma", 3)
_define("fma_rn", "fma", 3)
_define("clz", "clz", types=_INTS, result=_t.int32)
_define("popc", "popc", types=_INTS, result=_t.int32)
_define("ffs", "ffs", types=_INTS, result=_t.int32)
_define("brev", "brev", types=_INTS)
_define("mulhi", "mulhi", 2, types=_INTS)


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


isnan, isinf = _truth("isnan"), _truth("isinf")


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
rcp_rn = _builtin(lambda x: _a.elementwise("div", _constant(1.0, x.type), x, ieee=1))


@_builtin
def norm3d(x, y, z):
    """The length of vectors of three."""
    return globals()["sqrt"](_a.add(_a.add(_a.mul(x, x), _a.mul(y, y)), _a.mul(z, z)))


@_builtin
def norm4d(x, y, z, w):
    """The length of vectors of four."""
    return globals()["sqrt"](_a.add(_a.add(_a.mul(x, x), _a.mul(y, y)), _a.add(_a.mul(z, z), _a.mul(w, w))))


rnorm3d, rnorm4d = _reciprocal(norm3d), _reciprocal(norm4d)


@_builtin
def remainder(x, y):
    """x - y * n, n being the integer nearest to x / y."""
    x, y = _operands(x, y)
    n = _a.elementwise("rint", _a.elementwise("div", x, y, ieee=1))
    return _a.elementwise("fma", _a.elementwise("neg", n), y, x)


@_builtin
def ldexp(x, exponent):
    """x times two to the power of an integer."""
    x = _to_tensor(x)
    return _a.mul(x, globals()["exp2"](_cast(_to_tensor(exponent), x.type.scalar)))


scalbn = ldexp


@_builtin
def normcdf(x):
    """The distribution function of the normal distribution."""
    return _a.mul(0.5, globals()["erfc"](_a.mul(_to_tensor(x), -0.7071067811865476)))


def _define_cast(name, source, target, rounding):
    """Names such as float2int_rd: from, to, and how what lies between two results is rounded."""
    @_builtin
    def convert(x):
        x = _to_tensor(x)
        _check(name, [x], (source,))
        if source.is_floating() and target.is_int():
            step = {"rn": "rint", "rd": "floor", "ru": "ceil", "rz": "trunc"}[rounding]
            return _cast(_a.elementwise(step, x), target)
        return _cast(x, target, "rtz" if rounding == "rz" and source.is_floating() else None)

    globals()[name] = convert


_WORDS = {"int": _t.int32, "uint": _t.uint32, "ll": _t.int64, "ull": _t.uint64}
for _word, _type in _WORDS.items():
    for _float, _source in (("float", _t.float32), ("double", _t.float64)):
        for _rounding in ("rn", "rz", "rd", "ru"):
            _define_cast(f"{_float}2{_word}_{_rounding}", _source, _type, _rounding)
        _define_cast(f"{_word}2{_float}_rn", _type, _source, "rn")
_define_cast("double2float_rn", _t.float64, _t.float32, "rn")
_define_cast("double2float_rz", _t.float64, _t.float32, "rz")


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
    return _cast(_a.elementwise("rint", _to_tensor(x)), _t.int64)


@_builtin
def llround(x):
    """Each element rounded to the nearest integer, halves away from zero, as int64."""
    return _cast(_a.elementwise("round", _to_tensor(x)), _t.int64)


