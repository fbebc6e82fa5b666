"""What types operands meet in: numbers become tensors, kinds are promoted, shapes broadcast, values cast."""
import math

from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.types import dtype, unwrap
from heddle.tile.language.values import tensor, tile_type

_NORMAL_F32 = (2.0**-126, (2 - 2.0**-23) * 2.0**127)


def described(value) -> str:
    """A value in a message: its type, or the number itself."""
    value = unwrap(value)
    return repr(value) if isinstance(value, tensor) else f"{type(value).__name__} {value!r}"


def number_type(value) -> dtype:
    """The type of the tensor that a Python number becomes."""
    if isinstance(value, bool):
        return t.int1
    if isinstance(value, int):
        for candidate in (t.int32, t.uint32, t.int64, t.uint64):
            if candidate.get_int_min_value() <= value <= candidate.get_int_max_value():
                return candidate
        raise ValueError(f"Nonrepresentable integer {value}: no type has so many bits")
    if isinstance(value, float):
        small = value != value or math.isinf(value) or value == 0 or _NORMAL_F32[0] <= abs(value) <= _NORMAL_F32[1]
        return t.float32 if small else t.float64
    raise TypeError(f"cannot convert {value!r} of type {type(value).__name__} to a tensor")


def is_number(value) -> bool:
    return isinstance(value, (bool, int, float))


def constant(value, type: dtype) -> tensor:
    """A number as a scalar of a type, or as a tile of it."""
    element = type.scalar
    if element.is_floating():
        value = float(value)
    elif element.is_bool():
        value = int(bool(value))
    else:
        value = int(value)
        if element.is_int_signed() or element.is_int_unsigned():  # wraps, as a cast does
            value &= (1 << element.int_bitwidth) - 1
            if value > element.get_int_max_value():
                value -= 1 << element.int_bitwidth
    return tensor(ir.builder().constant(value, type.ir), type)


def to_tensor(value) -> tensor:
    """A tensor as it is, a number as one of number_type()."""
    value = unwrap(value)
    if isinstance(value, tensor):
        return value
    return constant(value, number_type(value))


def splat(value: tensor, shape) -> tensor:
    if not len(shape):
        return value
    type = tile_type(value.type.scalar, shape)
    return tensor(ir.builder().one("splat", [value.handle], type.ir), type)


def retyped(kind: str, value: tensor, type: dtype, **attributes) -> tensor:
    """A value through a one-operand op that gives another type."""
    return tensor(ir.builder().one(kind, [value.handle], type.ir, **attributes), type)


# -- casts

def cast(value: tensor, to: dtype, rounding=None) -> tensor:
    """A value as another type of elements."""
    source, target = value.type.scalar, to.scalar
    if source == target:
        return value
    narrows = source.is_floating() and target.is_floating() and target.primitive_bitwidth < source.primitive_bitwidth
    if rounding is not None and not narrows:
        raise ValueError(f"fp_downcast_rounding is for casts to a narrower float only, not from {source} to {target}")
    if rounding not in (None, "rtne", "rtz"):
        raise ValueError(f"fp_downcast_rounding {rounding!r} is unknown; there are 'rtne' and 'rtz'")
    type = value.type.with_element_ty(target)
    if source.is_ptr() or target.is_ptr():
        return _cast_pointer(value, source, target, type)
    if source.is_fp16() and target.is_bf16() or source.is_bf16() and target.is_fp16():
        return cast(cast(value, t.float32), target, rounding)
    return retyped("cast", value, type, rounding="rtz" if rounding == "rtz" else None)


def _cast_pointer(value: tensor, source: dtype, target: dtype, type: dtype) -> tensor:
    if source.is_ptr() and target.is_ptr():
        if source.element_ty == target.element_ty:
            return tensor(value.handle, type)
        return retyped("bitcast", value, type)
    if source.is_ptr() and target.is_bool():
        number = cast(value, t.int64)
        return retyped("cast", number, type)
    number = source if target.is_ptr() else target
    if not number.is_int() or number.int_bitwidth != 64:
        if target.is_ptr() and number.is_int():  # sign or zero extension, then the address
            return _cast_pointer(cast(value, t.int64), t.int64, target, type)
        raise TypeError(f"cannot cast {source} to {target}: an address has 64 bits")
    return retyped("bitcast", value, type)


def bitcast(value: tensor, to: dtype) -> tensor:
    source, target = value.type.scalar, to.scalar
    if source == target:
        return value
    if source.is_ptr() or target.is_ptr():
        return cast(value, target)
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise ValueError(f"Cannot bitcast data-type of size {source.primitive_bitwidth} to data-type of size "
                         f"{target.primitive_bitwidth} ({source} to {target})")
    return retyped("bitcast", value, value.type.with_element_ty(target))


# -- shapes

def expand_to_rank(value: tensor, rank: int) -> tensor:
    while len(value.type.shape) < rank:
        type = tile_type(value.type.scalar, (1, *value.type.shape))
        value = retyped("expand_dims", value, type, axis=0)
    return value


def broadcast_to(value: tensor, shape) -> tensor:
    """A scalar or a tile in a shape whose extents are its own or stand in place of ones."""
    shape = tuple(shape)
    if not value.type.is_block():
        return splat(value, shape)
    own = value.type.shape
    if own == shape:
        return value
    if len(own) != len(shape):
        raise ValueError(f"Cannot broadcast, rank mismatch: {list(own)}, {list(shape)}")
    for i, (have, want) in enumerate(zip(own, shape)):
        if have not in (1, want):
            raise ValueError(f"Cannot broadcast, the expanded size of the tensor ({want}) must match the existing size ({have}) "
                             f"at non-singleton dimension {i}: {list(own)}, {list(shape)}")
    return retyped("broadcast", value, tile_type(value.type.scalar, shape))


def common_shape(*shapes) -> tuple:
    """NumPy's broadcasting."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for i, extents in enumerate(zip(*padded)):
        wide = list(dict.fromkeys(extent for extent in extents if extent != 1)) or [1]
        if len(wide) > 1:
            raise ValueError("Cannot make_shape_compatible: incompatible dimensions at index "
                             f"{i}: {' and '.join(map(str, wide))} (shapes {' and '.join(str(list(s)) for s in shapes)})")
        result.append(wide[0])
    return tuple(result)


def broadcast_together(*values: tensor) -> list:
    """All in one shape."""
    shape = common_shape(*(value.type.shape for value in values))
    if not shape:
        return list(values)
    return [broadcast_to(expand_to_rank(value, len(shape)) if value.type.is_block() else value, shape) for value in values]


# -- promotion

def promote_integers(a: dtype, b: dtype) -> dtype:
    """The wider; of mixed signs the unsigned one if it is at least as wide."""
    if a.is_int_signed() == b.is_int_signed():
        return a if a.int_bitwidth > b.int_bitwidth else b
    unsigned, signed = (a, b) if a.is_int_unsigned() else (b, a)
    return unsigned if unsigned.int_bitwidth >= signed.int_bitwidth else signed


def promote(a: dtype, a_weak: bool, b: dtype, b_weak: bool, dividing: bool) -> dtype:
    """The type that two operands are computed in. A weak one, a Python number, gives way unless its kind is the higher."""
    if a_weak != b_weak:
        weak, strong = (a, b) if a_weak else (b, a)
        if weak.kind().value <= strong.kind().value:
            return t.float32 if dividing and (strong.is_fp16() or strong.is_bf16()) else strong
    for wide in (t.float64, t.float32):
        if wide in (a, b):
            return wide
    if t.float16 in (a, b):
        return t.float32 if dividing else t.float16
    if t.bfloat16 in (a, b):
        return t.bfloat16 if a == b and not dividing else t.float32
    if a.is_fp8() and b.is_fp8():
        return a if a == b else t.float16
    if not a.is_int() or not b.is_int():
        raise TypeError(f"unexpected type {a} and {b}: cast the narrow float first")
    if dividing and a.is_int_signed() != b.is_int_signed():
        raise TypeError(f"Cannot use /, //, or % with {a} and {b} because they have different signedness; this is unlikely to "
                        "result in a useful answer. Cast them to the same signedness.")
    return promote_integers(a, b)


class PointerOperand(TypeError):
    """A pointer where a number is wanted."""


def _check_pointer(a: dtype, b: dtype, allowed: bool) -> None:
    if a.is_ptr() and (not allowed or b.is_ptr() and a != b or b.is_floating()):
        raise PointerOperand(f"invalid operands of type {a} and {b}")


def _weak_constant(value, type: dtype) -> tensor:
    if value < 0 and type.is_int_unsigned():
        raise ValueError("Cannot perform a binary operation between an unsigned tensor and a negative scalar. Perform an explicit "
                         f"cast on one of them ({type} and {value}).")
    if type.is_int() and not type.get_int_min_value() <= value <= type.get_int_max_value():
        raise ValueError(f"Scalar {value} is out of range for type {type}")
    return constant(value, type)


def operands(a, b, left_pointer=False, right_pointer=False, arithmetic=True, dividing=False) -> tuple:
    """Two operands in one type and one shape. Plain numbers among them are weak."""
    a, b = unwrap(a), unwrap(b)
    a_weak, b_weak = is_number(a), is_number(b)
    left = a if isinstance(a, tensor) else None
    right = b if isinstance(b, tensor) else None
    a_type = left.type.scalar if left is not None else number_type(a)
    b_type = right.type.scalar if right is not None else number_type(b)
    _check_pointer(a_type, b_type, left_pointer)
    _check_pointer(b_type, a_type, right_pointer)
    if arithmetic and not a_type.is_ptr() and not b_type.is_ptr():
        type = promote(a_type, a_weak, b_type, b_weak, dividing)
        left = _weak_constant(a, type) if a_weak else cast(left, type)
        right = _weak_constant(b, type) if b_weak else cast(right, type)
    else:
        left = to_tensor(a) if left is None else left
        right = to_tensor(b) if right is None else right
    return tuple(broadcast_together(left, right))
