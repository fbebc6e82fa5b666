"""Matrix products of tiles."""
from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.promotion import bitcast, cast, constant
from heddle.tile.language.shaping import builtin, reshaped
from heddle.tile.language.values import tensor, tile_type

_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
_OPERANDS = (t.int8, t.uint8, t.float16, t.bfloat16, t.float32, t.float64)


def _precision(input_precision, allow_tf32):
    if input_precision is not None and allow_tf32 is not None:
        raise ValueError("Only one of input_precision and allow_tf32 can be specified")
    if input_precision is None:
        return "tf32" if allow_tf32 or allow_tf32 is None else "ieee"
    if str(input_precision).lower() not in _PRECISIONS:
        raise ValueError(f"input_precision must be one of {', '.join(_PRECISIONS)}. Got {input_precision}")
    return str(input_precision).lower()


def _sum_type(a, b, out_dtype):
    """What a product of these is summed in."""
    if not (a.is_fp8() and b.is_fp8()):
        for side, type in (("lhs", a), ("rhs", b)):
            if type not in _OPERANDS:
                raise TypeError(f"Unsupported {side} dtype {type}")
        if a != b:
            raise TypeError(f"Both operands must be same dtype. Got {a} and {b}")
    if out_dtype.is_bf16():
        raise ValueError("out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`")
    if a.is_int():
        if a != t.int8:
            raise TypeError("only int8 supported!")
        return t.int32
    if a.is_fp64():
        return t.float64
    return t.float16 if out_dtype.is_fp16() and not (a.is_fp32() or a.is_bf16()) else t.float32


def _check_shapes(a, b):
    if not a.type.is_block() or not b.type.is_block():
        raise TypeError(f"dot operands must be block tensors (not scalars): {a!r} and {b!r}")
    left, right = a.type.shape, b.type.shape
    if len(left) != len(right) or len(left) < 2:
        raise ValueError(f"Both inputs must be either 2D or 3D; (lhs: {list(left)} vs rhs: {list(right)})")
    if left[:-2] != right[:-2]:
        raise ValueError(f"input and other must have equal batch shapes; (lhs: {list(left)} vs rhs: {list(right)})")
    if left[-1] != right[-2]:
        raise ValueError(f"First input shape ({list(left)}) and second input shape {list(right)} are not compatible for matmul "
                         f"(second index of first shape ({left[-1]}) must be equal to first index of second shape ({right[-2]})")


def _accumulator(acc, type, out_dtype):
    if acc is None:
        return constant(0, type)
    if acc.type.shape != type.shape:
        raise ValueError(f"expected accumulator shape {list(type.shape)}, got {list(acc.type.shape)}")
    if acc.type.scalar != type.scalar or out_dtype is not None and acc.type.scalar != out_dtype:
        raise TypeError(f"expected accumulator dtype {out_dtype if out_dtype is not None else type.scalar}, got {acc.type.scalar}; "
                        f"pass out_dtype={acc.type.scalar} to use this accumulator dtype")
    return acc


@builtin
def dot(input, other, acc=None, input_precision=None, allow_tf32=None, max_num_imprecise_acc=None, out_dtype=None):
    """The matrix product of two tiles, plus `acc`; of batches of them where there are more than two dimensions."""
    precision = _precision(input_precision, allow_tf32)
    if out_dtype is None:
        wanted = acc.type.scalar if acc is not None else t.float32
    else:
        wanted = out_dtype
    if not isinstance(input, tensor) or not isinstance(other, tensor):
        raise TypeError(f"dot operands must be block tensors (not scalars): {input!r} and {other!r}")
    _check_shapes(input, other)
    a, b = (cast(side, t.float16) if side.type.scalar.is_fp8e4b15() else side for side in (input, other))
    element = _sum_type(a.type.scalar, b.type.scalar, wanted)
    left, right = a.type.shape, b.type.shape
    shape = (*left[:-1], right[-1])
    acc = _accumulator(acc, tile_type(element, shape), out_dtype if not element.is_int() else None)
    if len(shape) > 3:
        batch = 1
        for extent in shape[:-2]:
            batch *= extent
        a, b, acc = (reshaped(one, (batch, *one.type.shape[-2:])) for one in (a, b, acc))
    imprecise = max_num_imprecise_acc
    if imprecise is not None and a.type.scalar.is_fp8() and imprecise > left[-1]:
        raise ValueError(f"max_num_imprecise_acc ({imprecise}) must be <= K ({left[-1]})")
    attributes = {"precision": precision if a.type.scalar.is_fp32() else None,
                  "imprecise": imprecise if a.type.scalar.is_fp8() else None}
    product = tensor(ir.builder().one("dot", [a.handle, b.handle, acc.handle], acc.type.ir, **attributes), acc.type)
    return reshaped(product, shape)


# format: (types that hold it, name in the IR)
_FORMATS = {
    "e2m1": ((t.uint8,), "e2m1"), "e4m3": ((t.float8e4nv, t.uint8), "e4m3"), "e5m2": ((t.float8e5, t.uint8), "e5m2"),
    "bf16": ((t.bfloat16, t.uint16), "bf16"), "fp16": ((t.float16, t.uint16), "f16"),
}


def _held(value, format):
    if format not in _FORMATS:
        raise ValueError(f"Invalid float format: {format}; there are {', '.join(_FORMATS)}")
    types = _FORMATS[format][0]
    if value.type.scalar not in types:
        raise TypeError(f"Unexpected dtype for {format}. Got {value.type.scalar}, wanted {' or '.join(map(str, types))}")
    return bitcast(value, types[0])


def _unpacked_k(value, format, packed_along_k, axis):
    """A tile of pairs along another axis than K, with its pairs along K."""
    if packed_along_k:
        return value
    if format != "e2m1":
        raise ValueError("only mxfp4 inputs can be packed along a dimension different than K")
    return _repacked(value, axis)


def _repacked(value, axis):
    """Pairs of four bits along `axis` become pairs along the other one of the last two."""
    from heddle.tile.language import arithmetic as a
    from heddle.tile.language.shaping import join, permute, split

    rank, shape = len(value.type.shape), list(value.type.shape)
    other = rank - 1 if axis == rank - 2 else rank - 2
    low, high = a.bit_and(value, 15), a.shr(value, 4)
    nibbles = join(low, high)  # the pairs in a last dimension
    order = list(range(rank))
    order.insert(axis + 1, rank)
    shape[axis] *= 2
    flat = reshaped(permute(nibbles, order), shape)
    shape[other:other + 1] = [shape[other] // 2, 2]
    pairs = reshaped(flat, shape)
    order = [i for i in range(rank + 1) if i != other + 1] + [other + 1]
    first, second = split(permute(pairs, order))
    return a.bit_or(first, a.shl(second, 4))


@builtin
def dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=None, fast_math=False, lhs_k_pack=True, rhs_k_pack=True,
               out_dtype=t.float32):
    """The product of two tiles in microscaling formats: 32 elements of K share a scale, which is a power of two."""
    if out_dtype != t.float32:
        raise ValueError("Only float32 is supported for out_dtype at the moment")
    lhs, rhs = _held(lhs, lhs_format), _held(rhs, rhs_format)
    rank = len(lhs.type.shape)
    if rank not in (2, 3) or len(rhs.type.shape) != rank:
        raise ValueError(f"Both inputs must be either 2D or 3D; (lhs: {lhs!r} vs rhs: {rhs!r})")
    lhs = _unpacked_k(lhs, lhs_format, lhs_k_pack, rank - 2)
    rhs = _unpacked_k(rhs, rhs_format, rhs_k_pack, rank - 1)
    pairs = [2 if format == "e2m1" else 1 for format in (lhs_format, rhs_format)]
    m, n, k = lhs.type.shape[-2], rhs.type.shape[-1], lhs.type.shape[-1] * pairs[0]
    if rhs.type.shape[-2] * pairs[1] != k:
        raise ValueError(f"Reduction dimension should pack the same number of elements; (lhs: {lhs!r} vs rhs: {rhs!r})")
    operands, scales = [lhs], []
    for side, scale, rows in (("a", lhs_scale, m), ("b", rhs_scale, n)):
        if side == "b":
            operands.append(rhs)
        if scale is not None:
            operands.append(_scale(scale, side, rows, k))
            scales.append(side)
    type = tile_type(t.float32, (*lhs.type.shape[:-2], m, n))
    operands.append(_accumulator(acc, type, t.float32))
    attributes = {"a_format": _FORMATS[lhs_format][1], "b_format": _FORMATS[rhs_format][1],
                  "scales": {0: "none", 2: "both"}.get(len(scales), "".join(scales))}
    return tensor(ir.builder().one("dot_scaled", [one.handle for one in operands], type.ir, **attributes), type)


def _scale(scale, side, rows, k):
    name = "lhs_scale" if side == "a" else "rhs_scale"
    wanted = (rows, k // 32)
    if scale.type.shape[-2:] != wanted:
        raise ValueError(f"{name} must be a tensor of shape [..., {rows}, {k // 32}]. Got {list(scale.type.shape)}")
    return bitcast(scale, t.uint8)
