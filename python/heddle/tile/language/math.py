"""Mathematical functions of each element. They take fp32 and fp64; cast what is narrower."""
from heddle.tile.language import arithmetic as _a
from heddle.tile.language import types as _t
from heddle.tile.language.promotion import operands as _operands
from heddle.tile.language.promotion import to_tensor as _to_tensor
from heddle.tile.language.shaping import builtin as _builtin

_FLOATS = (_t.float32, _t.float64)


def _checked(name, x, types=_FLOATS):
    x = _to_tensor(x)
    if x.type.scalar not in types:
        raise ValueError(f"Expected dtype {[str(type) for type in types]} but got {x.type.scalar}: {name} of another type is computed "
                         "in one of these; cast with `.to(tl.float32)`")
    return x


def _function(name, does, types=_FLOATS, op=None, **attributes):
    @_builtin
    def compute(x):
        return _a.elementwise(op or name, _checked(name, x, types), **attributes)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{does} of each element."
    return compute


exp = _function("exp", "e to the power")
exp2 = _function("exp2", "2 to the power")
log = _function("log", "The natural logarithm")
log2 = _function("log2", "The logarithm to base 2")
cos = _function("cos", "The cosine")
sin = _function("sin", "The sine")
sqrt = _function("sqrt", "The square root")
sqrt_rn = _function("sqrt_rn", "The square root, rounded as IEEE 754 says,", (_t.float32,), op="sqrt", ieee=1)
rsqrt = _function("rsqrt", "1 over the square root")
erf = _function("erf", "The error function")
floor = _function("floor", "The integer at or below")
ceil = _function("ceil", "The integer at or above")


@_builtin
def abs(x):
    """The absolute value of each element."""
    return _a.absolute(_to_tensor(x))


@_builtin
def fma(x, y, z):
    """x * y + z, rounded once."""
    return _a.fma(x, y, z)


@_builtin
def fdiv(x, y, ieee_rounding=False):
    """x / y of floats; rounded as IEEE 754 says where asked."""
    return _a.fdiv(x, y, ieee_rounding)


@_builtin
def div_rn(x, y):
    """x / y of fp32, rounded as IEEE 754 says."""
    x, y = _operands(_checked("div_rn", x, (_t.float32,)), _checked("div_rn", y, (_t.float32,)))
    return _a.elementwise("div", x, y, ieee=1)


@_builtin
def umulhi(x, y):
    """The upper half of the product of two integers without sign."""
    return _a.umulhi(x, y)
