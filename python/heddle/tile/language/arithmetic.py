"""Operators on tensors: what +, /, <, & and the functions beside them mean."""
import warnings

from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.promotion import (
    broadcast_together, cast, constant, described, number_type, operands, to_tensor)
from heddle.tile.language.types import PropagateNan, unwrap
from heddle.tile.language.values import tensor


def elementwise(kind: str, *values: tensor, result=None, **attributes) -> tensor:
    """One op on values of one shape; the result is of the first one's type unless said. Eight-bit floats compute in f32."""
    type = values[0].type if result is None else result
    if values[-1].type.scalar.is_fp8() and kind != "select":
        wide = [cast(value, t.float32) if value.type.scalar.is_fp8() else value for value in values]
        done = elementwise(kind, *wide, result=type.with_element_ty(t.float32) if type.scalar.is_fp8() else type, **attributes)
        return cast(done, type) if type.scalar.is_fp8() else done
    return tensor(ir.builder().one(kind, [value.handle for value in values], type.ir, **attributes), type)


# -- arithmetic

def _offset(pointer: tensor, offset: tensor) -> tensor:
    if offset.type.scalar.is_bool():
        offset = cast(offset, t.int32)
    elif offset.type.scalar.is_int_unsigned() and offset.type.scalar.int_bitwidth < 64:
        offset = cast(offset, t.int64)
    elif offset.type.scalar.int_bitwidth < 32:
        offset = cast(offset, t.int32)
    elif offset.type.scalar == t.uint64:
        offset = cast(offset, t.int64)
    return elementwise("addptr", pointer, offset)


def add(a, b):
    a, b = operands(a, b, True, True)
    if a.type.scalar.is_ptr() and b.type.scalar.is_ptr():
        raise TypeError("cannot add pointers together")
    if b.type.scalar.is_ptr():
        a, b = b, a
    return _offset(a, b) if a.type.scalar.is_ptr() else _checked("add", a, b)


def sub(a, b):
    a, b = operands(a, b, True, False)
    return _offset(a, neg(b)) if a.type.scalar.is_ptr() else _checked("sub", a, b)


def mul(a, b):
    return _checked("mul", *operands(a, b))


def _checked(kind: str, a: tensor, b: tensor) -> tensor:
    """An op on numbers; where the option sanitize_overflow is set, integers that leave their type end the program."""
    type = a.type.scalar
    options = ir.builder().options
    if type.is_int() and not type.is_bool() and type.int_bitwidth < 64 and options.sanitize_overflow and options.debug:
        wide = elementwise(kind, cast(a, t.int64), cast(b, t.int64))
        low, high = (constant(bound, wide.type) for bound in (type.get_int_min_value(), type.get_int_max_value()))
        inside = elementwise("and", compare("ge", wide, low), compare("le", wide, high))
        message = ir.Quoted(f"int{type.int_bitwidth} overflow detected for operation {kind}")
        ir.builder().emit("assert", [inside.handle], (), {"message": message})
    if type.is_bool():  # arithmetic of one bit
        return elementwise("and" if kind == "mul" else "xor", a, b)
    return elementwise(kind, a, b)


def truediv(a, b):
    a, b = operands(a, b, dividing=True)
    if a.type.scalar.is_int():
        a, b = cast(a, t.float32), cast(b, t.float32)
    return elementwise("div", a, b)


def floordiv(a, b):
    a, b = operands(a, b, dividing=True)
    if not a.type.scalar.is_int():
        raise TypeError(f"unexpected type {a.type.scalar}: // is for integers; divide with / and take tl.floor")
    return elementwise("div", a, b)


def mod(a, b):
    a, b = operands(a, b, dividing=True)
    return elementwise("rem", a, b)


def fdiv(a, b, ieee_rounding=False):
    a, b = to_tensor(a), to_tensor(b)
    if not a.type.scalar.is_floating() or not b.type.scalar.is_floating():
        raise TypeError(f"both operands of fdiv must have floating scalar type, not {a.type.scalar} and {b.type.scalar}")
    a, b = operands(a, b, arithmetic=False, dividing=True)
    if a.type.scalar != b.type.scalar:
        a, b = operands(a, b)
    return elementwise("div", a, b, ieee=1 if unwrap(ieee_rounding) else None)


def neg(a):
    type = a.type.scalar
    if type.is_ptr():
        raise ValueError(f"wrong type argument to unary minus ({type})")
    if type.is_bool():
        return a  # -1 and 1 are the same bit
    return elementwise("neg", a) if type.is_floating() else elementwise("sub", constant(0, a.type), a)


def invert(a):
    type = a.type.scalar
    if type.is_ptr() or type.is_floating():
        raise ValueError(f"wrong type argument to unary invert ({type})")
    return elementwise("not", a)


def absolute(a):
    type = a.type.scalar
    if type.is_int_unsigned():
        return a
    if type.is_ptr():
        raise ValueError(f"Unexpected dtype {type}: a pointer has no absolute value")
    return elementwise("abs", a)


# -- bits

def _integers(a, b):
    left, right = operands(a, b)
    if not left.type.scalar.is_int() or not right.type.scalar.is_int():
        raise TypeError(f"invalid operands of type {described(a)} and {described(b)}: bits are those of integers")
    return left, right


def _bitwise(kind, a, b):
    return elementwise(kind, *_integers(a, b))


def bit_and(a, b):
    return _bitwise("and", a, b)


def bit_or(a, b):
    return _bitwise("or", a, b)


def bit_xor(a, b):
    return _bitwise("xor", a, b)


def _check_shift(a, b):
    """A shift by a number that moves all bits out."""
    b = unwrap(b)
    if isinstance(a, tensor) and isinstance(b, int) and not isinstance(b, bool) and b >= a.type.scalar.primitive_bitwidth:
        warnings.warn(f"Value {b} exceeds the maximum bitwidth ({a.type.scalar.primitive_bitwidth}) for type '{a.type.scalar}'. "
                      "This may result in undefined behavior.", stacklevel=2)


def shl(a, b):
    _check_shift(a, b)
    return _bitwise("shl", a, b)


def shr(a, b):
    """Arithmetic for a signed left operand, whatever the type of both together."""
    _check_shift(a, b)
    signed = number_type(unwrap(a)) if not isinstance(a, tensor) else a.type.scalar
    a, b = _integers(a, b)
    type = a.type.scalar
    if type.is_bool() or signed.is_int_signed() == type.is_int_signed():
        return elementwise("shr", a, b)
    kind = t.get_int_dtype(type.int_bitwidth, signed.is_int_signed())
    return cast(elementwise("shr", cast(a, kind), cast(b, kind)), type)


def _truth(a):
    a = to_tensor(a)
    return a if a.type.scalar.is_bool() else cast(a, t.int1)


def logical_and(a, b):
    return bit_and(_truth(a), _truth(b))


def logical_or(a, b):
    return bit_or(_truth(a), _truth(b))


def logical_not(a):
    return invert(_truth(a))


# -- comparisons: numbers are tensors first

def compare(predicate, a, b):
    a, b = operands(to_tensor(a), to_tensor(b))
    if a.type.scalar.is_ptr():
        a, b = cast(a, t.int64), cast(b, t.int64)
    return elementwise(predicate, a, b, result=a.type.with_element_ty(t.int1))


# -- selections

def where(condition, x, y):
    condition = to_tensor(condition)
    if not condition.type.scalar.is_bool():
        warnings.warn("tl.where with a non-boolean condition is deprecated and will error out in a future release. "
                      f"Got {condition.type.scalar}", stacklevel=2)
        condition = cast(condition, t.int1)
    x, y = operands(x, y, True, True)
    if condition.type.is_block() or x.type.is_block():
        condition, x, y = broadcast_together(condition, x, y)
    return elementwise("select", condition, x, y, result=x.type)


def _extreme(kind, a, b, propagate_nan):
    a, b = operands(to_tensor(a), to_tensor(b))
    type = a.type.scalar
    if type.is_bf16():
        a, b = cast(a, t.float32), cast(b, t.float32)
    if type.is_ptr():
        raise TypeError(f"Unexpected dtype {type}")
    if type.is_bool():
        return elementwise("and" if kind == "min" else "or", a, b)
    nan = "propagate" if type.is_floating() and _propagates(propagate_nan) else None
    return elementwise(kind, a, b, nan=nan)


def _propagates(choice):
    choice = unwrap(choice)
    if not isinstance(choice, PropagateNan):
        raise ValueError(f"Unexpected propagate_nan {choice}: PropagateNan.NONE or PropagateNan.ALL")
    return choice is PropagateNan.ALL


def minimum(a, b, propagate_nan=PropagateNan.NONE):
    return _extreme("min", a, b, propagate_nan)


def maximum(a, b, propagate_nan=PropagateNan.NONE):
    return _extreme("max", a, b, propagate_nan)


def clamp(x, low, high, propagate_nan=PropagateNan.NONE):
    x, low, high = (_wide(to_tensor(value)) for value in (x, low, high))
    low, high = operands(low, high)
    x, low = operands(x, low)
    x, high = operands(x, high)
    x, low, high = broadcast_together(x, low, high)
    if not x.type.scalar.is_floating():
        raise TypeError(f"Unexpected dtype {x.type.scalar}. Only floating point clamp is supported; use minimum and maximum")
    return elementwise("clamp", x, low, high, nan="propagate" if _propagates(propagate_nan) else None)


def _wide(x):
    return cast(x, t.float32) if x.type.scalar.is_bf16() else x


def fma(x, y, z):
    x, y = operands(to_tensor(x), to_tensor(y))
    z, x = operands(to_tensor(z), x)
    z, y = operands(z, y)
    x, y, z = broadcast_together(x, y, z)
    return elementwise("fma", x, y, z)


def umulhi(x, y):
    x, y = operands(to_tensor(x), to_tensor(y))
    if x.type.scalar not in (t.int32, t.int64, t.uint32, t.uint64):
        raise TypeError(f"Expected dtype int32, int64, uint32 or uint64, but got {x.type.scalar}")
    unsigned = t.get_int_dtype(x.type.scalar.int_bitwidth, False)
    return cast(elementwise("mulhi", cast(x, unsigned), cast(y, unsigned)), x.type.scalar)


