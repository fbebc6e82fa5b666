"""Elementwise operators, and what makes tensors from numbers."""
import math
from typing import Any, Optional

import torch

from heddle._hir import FLOATS, Value
from heddle.torch.lowering.context import Context, TABLE, Unsupported, count, dtype_name, exact_numbers, is_float, lowers, overload_of, promoted, rounded_once, wide

aten, prims = torch.ops.aten, torch.ops.prims


def _float(c: Context, x: Value) -> Value:
    return c.cast(x, promoted(x, to_float=True))


def _add_unary(name: str, op: str, to_float: bool = True) -> None:
    def lower(c: Context, x: Value) -> Value:
        if to_float:
            return c.unary(op, _float(c, x))
        return x if not is_float(x) and op in ("floor", "ceil", "trunc", "round") else c.unary(op, x)
    TABLE[getattr(aten, name).default] = lower


for _name in ("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"):
    _add_unary(_name, _name)
for _name in ("neg", "abs", "sign", "floor", "ceil", "trunc", "round"):
    _add_unary(_name, _name, to_float=False)


@lowers(aten.round.decimals)
@rounded_once
def round_decimals(c: Context, x: Value, *, decimals: int = 0) -> Value:
    if decimals == 0 or not is_float(x):
        return c.unary("round", x) if is_float(x) else x
    scale = float(10 ** abs(decimals))
    to, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return c.binary(back, c.unary("round", c.binary(to, x, scale)), scale)


@lowers(aten.log10.default)
@rounded_once
def log10(c: Context, x: Value) -> Value:
    return c.binary("mul", c.unary("log", _float(c, x)), 1 / math.log(10))


@lowers(aten.reciprocal.default)
def reciprocal(c: Context, x: Value) -> Value:
    x = _float(c, x)
    return c.binary("div", c.writer.constant(1, x.dtype, x.shape), x)


@lowers(aten.sigmoid.default)
@rounded_once
def sigmoid(c: Context, x: Value) -> Value:
    x = _float(c, x)
    one = c.writer.constant(1, x.dtype, x.shape)
    return c.binary("div", one, c.binary("add", c.unary("exp", c.unary("neg", x)), 1))


@lowers(aten.relu.default)
def relu(c: Context, x: Value) -> Value:
    return c.binary("max", x, 0)


@lowers(aten.isnan.default)
def isnan(c: Context, x: Value) -> Value:
    return c.emit("is_nan", [x], "bool", x.shape) if is_float(x) else c.writer.constant(0, "bool", x.shape)


@lowers(aten.isinf.default)
def isinf(c: Context, x: Value) -> Value:
    if not is_float(x):
        return c.writer.constant(0, "bool", x.shape)
    return c.emit("is_inf", [x], "bool", x.shape, positive=1, negative=1)


@lowers(aten.logical_not.default)
def logical_not(c: Context, x: Value) -> Value:
    return c.emit("not", [c.cast(x, "bool")], "bool", x.shape)


@lowers(aten.bitwise_not.default)
def bitwise_not(c: Context, x: Value) -> Value:
    return c.unary("not", x)


def _both(c: Context, x: Any, y: Any, to_float: bool = False) -> Any:
    dtype = promoted(x, y, to_float=to_float)
    return c.tensor(x, dtype), c.tensor(y, dtype)


def _arithmetic(c: Context, op: str, x: Value, y: Value) -> Value:
    if x.dtype == "bool":
        return c.binary({"add": "or", "mul": "and", "max": "or", "min": "and"}[op], x, y)
    return c.binary(op, x, y)


@rounded_once
def _with_multiple(c: Context, x: Value, y: Value, op: str, alpha: Any) -> Value:
    return c.binary(op, x, c.binary("mul", y, alpha))


@lowers(aten.add.Tensor, aten.add.Scalar)
@exact_numbers
def add(c: Context, x: Any, y: Any, alpha: Any = 1) -> Value:
    x, y = _both(c, x, y)
    return _arithmetic(c, "add", x, y) if alpha == 1 else _with_multiple(c, x, y, "add", alpha)


@lowers(aten.sub.Tensor, aten.sub.Scalar)
@exact_numbers
def sub(c: Context, x: Any, y: Any, alpha: Any = 1) -> Value:
    x, y = _both(c, x, y)
    return c.binary("sub", x, y) if alpha == 1 else _with_multiple(c, x, y, "sub", alpha)


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(c: Context, x: Any, y: Any, alpha: Any = 1) -> Value:
    return sub(c, y, x, alpha)


@lowers(aten.mul.Tensor, aten.mul.Scalar)
@exact_numbers
def mul(c: Context, x: Any, y: Any) -> Value:
    return _arithmetic(c, "mul", *_both(c, x, y))


@lowers(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
@exact_numbers
def div(c: Context, x: Any, y: Any) -> Value:
    return c.binary("div", *_both(c, x, y, to_float=True))


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
@rounded_once
def div_mode(c: Context, x: Any, y: Any, rounding_mode: Optional[str] = None) -> Value:
    if rounding_mode is None:
        return div(c, x, y)
    x, y = _both(c, x, y)
    if is_float(x):
        return c.unary("floor" if rounding_mode == "floor" else "trunc", c.binary("div", x, y))
    if rounding_mode == "trunc":
        return c.binary("div", x, y)
    # The remainder has the sign of the divisor, so that what is left divides without a rest.
    return c.binary("div", c.binary("sub", x, c.binary("mod", x, y)), y)


@lowers(aten.floor_divide.default)
def floor_divide(c: Context, x: Any, y: Any) -> Value:
    return div_mode(c, x, y, "floor")


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(c: Context, x: Any, y: Any) -> Value:
    return c.binary("mod", *_both(c, x, y))


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(c: Context, x: Any, y: Any) -> Value:
    return c.binary("rem", *_both(c, x, y))


@lowers(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
@rounded_once
def power(c: Context, x: Any, y: Any) -> Value:
    if isinstance(x, Value) and not isinstance(y, Value):
        if y == 2:
            return _arithmetic(c, "mul", x, x)
        base = c.tensor(x, promoted(x, y))
        if is_float(base) and y in (0.5, -0.5):
            return c.unary("sqrt" if y > 0 else "rsqrt", base)
        if is_float(base) and y in (1, -1):
            return base if y > 0 else reciprocal(c, base)
        if y == 3:
            return c.binary("mul", c.binary("mul", base, base), base)
    if x == 2 and is_float(y):
        return c.unary("exp2", c.cast(y, promoted(x, y)))
    return c.binary("pow", *_both(c, x, y))


@lowers(aten.atan2.default)
def atan2(c: Context, x: Value, y: Value) -> Value:
    return c.binary("atan2", *_both(c, x, y, to_float=True))


@lowers(aten.maximum.default)
def maximum(c: Context, x: Value, y: Value) -> Value:
    return _arithmetic(c, "max", *_both(c, x, y))


@lowers(aten.minimum.default)
def minimum(c: Context, x: Value, y: Value) -> Value:
    return _arithmetic(c, "min", *_both(c, x, y))


@lowers(aten.clamp.default, aten.clamp.Tensor, aten.hardtanh.default)
def clamp(c: Context, x: Value, low: Any = None, high: Any = None) -> Value:
    x = c.cast(x, c.dtype)
    if low is not None:
        x = c.binary("max", x, c.tensor(low, c.dtype))
    return x if high is None else c.binary("min", x, c.tensor(high, c.dtype))


@lowers(aten.clamp_min.default)
def clamp_min(c: Context, x: Value, low: Any) -> Value:
    return clamp(c, x, low)


@lowers(aten.clamp_max.default)
def clamp_max(c: Context, x: Value, high: Any) -> Value:
    return clamp(c, x, None, high)


@lowers(aten.where.self)
def where(c: Context, mask: Value, x: Any, y: Any) -> Value:
    x, y = c.tensor(x, c.dtype), c.tensor(y, c.dtype)
    return c.select(c.cast(mask, "bool"), x, y)


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(c: Context, x: Value, mask: Value, value: Any) -> Value:
    return c.select(mask, c.tensor(value, x.dtype), x)


def _add_comparison(op: str) -> None:
    def lower(c: Context, x: Any, y: Any) -> Value:
        x, y = _both(c, x, y)
        if x.dtype == "bool" and op not in ("eq", "ne"):
            x, y = c.cast(x, "u8"), c.cast(y, "u8")
        return c.compare(op, x, y)
    for overload in ("Tensor", "Scalar"):
        TABLE[getattr(getattr(aten, op), overload)] = lower


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _add_comparison(_name)


def _add_logic(name: str, op: str) -> None:
    def logical(c: Context, x: Value, y: Value) -> Value:
        return c.binary(op, c.cast(x, "bool"), c.cast(y, "bool"))

    def bitwise(c: Context, x: Any, y: Any) -> Value:
        return c.binary(op, *_both(c, x, y))
    TABLE[getattr(aten, "logical_" + name).default] = logical
    for overload in ("Tensor", "Scalar"):
        TABLE[getattr(getattr(aten, "bitwise_" + name), overload)] = bitwise


for _name in ("and", "or", "xor"):
    _add_logic(_name, _name)


@lowers(aten._to_copy.default, prims.convert_element_type.default)
def to_copy(c: Context, x: Value, *_: Any, **__: Any) -> Value:
    return c.cast(x, c.dtype)


@lowers(overload_of(prims, "fma"))
@rounded_once
def fma(c: Context, x: Any, y: Any, z: Any) -> Value:
    return add(c, mul(c, x, y), z)


@lowers(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(c: Context, *arguments: Any, **_: Any) -> Value:
    return c.writer.constant(arguments[-1], c.dtype, c.shape)


@lowers(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, aten.empty.memory_format, aten.empty_like.default,
        aten.new_empty.default, aten.empty_strided.default, aten.new_empty_strided.default, aten.empty_permuted.default)
def zeros(c: Context, *_: Any, **__: Any) -> Value:
    return c.writer.constant(0, c.dtype, c.shape)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(c: Context, *_: Any, **__: Any) -> Value:
    return c.writer.constant(1, c.dtype, c.shape)


@lowers(aten.scalar_tensor.default)
def scalar_tensor(c: Context, value: Any, **_: Any) -> Value:
    return c.writer.constant(value, c.dtype)


@lowers(aten.fill.Scalar)
def fill(c: Context, x: Value, value: Any) -> Value:
    return c.writer.constant(value, x.dtype, x.shape)


@lowers(aten.arange.start_step)
def arange(c: Context, start: Any, end: Any, step: Any = 1, **_: Any) -> Value:
    return _counted(c, start, step, c.dtype)


@lowers(prims.iota.default)
def iota(c: Context, length: int, *, start: int, step: int, dtype: torch.dtype, **_: Any) -> Value:
    return _counted(c, start, step, dtype_name(dtype))


def _counted(c: Context, start: Any, step: Any, dtype: str) -> Value:
    if count(c.shape) == 0:
        return c.writer.constant(0, dtype, c.shape)
    if dtype not in FLOATS and not (float(start).is_integer() and float(step).is_integer()):
        raise Unsupported("a range of integers with a fraction")
    x = c.iota(wide(dtype), c.shape, 0)
    x = x if step == 1 else c.binary("mul", x, step)
    return c.cast(x if start == 0 else c.binary("add", x, start), dtype)
