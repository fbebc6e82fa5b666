"""Reductions, scans, sorting, histograms and functions that are mapped over elements."""
from heddle.tile import ir
from heddle.tile.language import arithmetic as a
from heddle.tile.language import types as t
from heddle.tile.language.promotion import broadcast_to, broadcast_together, cast, to_tensor
from heddle.tile.language.shaping import arange, axis_of, builtin, expand_dims, reshaped, subscript
from heddle.tile.language.values import slice, tensor, tile_type, tuple


def call(function, arguments):
    """A function of the user's, or one of ours, inside a kernel."""
    inline = getattr(function, "inline", None)
    return inline(arguments) if inline else function(*arguments)


def results_of(value) -> list:
    """What a combining function returned, as tensors."""
    values = list(value.values) if isinstance(value, tuple) else list(value) if isinstance(value, (list, type(()))) else [value]
    return [to_tensor(one) for one in values]


def _combining(function, inputs, what):
    """The region of a reduction or scan."""
    scalars = [one.type.scalar for one in inputs] * 2
    with ir.builder().region([ir.Value(scalar.ir) for scalar in scalars]) as region:
        arguments = [tensor(value, scalar) for value, scalar in zip(region.arguments, scalars)]
        results = results_of(call(function, arguments))
        found, wanted = [one.type for one in results], scalars[: len(inputs)]
        if found != wanted:
            raise TypeError(f"the function that a {what} combines with gives {', '.join(map(str, found))} and takes "
                            f"{', '.join(map(str, wanted))}; both are the types of the elements")
        ir.builder().terminate(region, "yield", [one.handle for one in results])
    return region


def _inputs(input):
    inputs = [input] if isinstance(input, tensor) else list(input)
    shapes = {one.type.shape for one in inputs}
    if len(shapes) > 1:
        raise ValueError(f"all inputs must have the same shape, not {' and '.join(map(str, map(list, shapes)))}")
    if not inputs[0].type.is_block():
        raise ValueError(f"a scalar ({inputs[0]!r}) has nothing to reduce or scan")
    return inputs


@builtin
def reduce(input, axis, combine_fn, keep_dims=False):
    """The elements along a dimension (None: of all) combined by a function of two scalars, in any order."""
    inputs = _inputs(input)
    rank = len(inputs[0].type.shape)
    if axis is None:
        inputs = [reshaped(one, (one.type.numel,)) for one in inputs]
    shape = inputs[0].type.shape
    along = 0 if axis is None else axis_of(axis, rank)
    region = _combining(combine_fn, inputs, "reduction")
    kept = [extent for i, extent in enumerate(shape) if i != along]
    types = [tile_type(one.type.scalar, kept) for one in inputs]
    handles = ir.builder().emit("reduce", [one.handle for one in inputs], [type.ir for type in types], {"axis": along}, [region])
    results = [tensor(handle, type) for handle, type in zip(handles, types)]
    if keep_dims:
        results = [expand_dims(one, tuple(range(rank)) if axis is None else along) for one in results]
    return results[0] if isinstance(input, tensor) else tuple(results)


@builtin
def associative_scan(input, axis, combine_fn, reverse=False):
    """At each element along a dimension what a function of two scalars makes of those up to it."""
    inputs = _inputs(input)
    along = axis_of(axis, len(inputs[0].type.shape))
    region = _combining(combine_fn, inputs, "scan")
    types = [one.type for one in inputs]
    handles = ir.builder().emit("scan", [one.handle for one in inputs], [type.ir for type in types],
                                {"axis": along, "reverse": 1 if reverse else 0}, [region])
    results = [tensor(handle, type) for handle, type in zip(handles, types)]
    return results[0] if isinstance(input, tensor) else tuple(results)


def _sum_type(type, wanted):
    """Integers of fewer than 32 bits are summed in 32."""
    if wanted is not None:
        return wanted
    if type.is_int() and type.int_bitwidth < 32:
        return t.int32 if type.is_int_signed() else t.uint32
    return type


@builtin
def sum(input, axis=None, keep_dims=False, dtype=None):
    """The sum along a dimension. Integers below 32 bits are summed in 32, all others in their own type."""
    return reduce(cast(input, _sum_type(input.type.scalar, dtype)), axis, a.add, keep_dims=keep_dims)


def _wide(input):
    return cast(input, t.float32) if input.type.scalar.is_bf16() else input


def _extreme_input(input):
    """bf16 and what has fewer than 32 bits is compared in 32."""
    type = input.type.scalar
    if type.primitive_bitwidth < 32:
        return cast(input, t.float32 if type.is_floating() else t.int32)
    return input


def _indexed(predicate, first):
    def combine(value1, index1, value2, index2):
        better = a.compare(predicate, value1, value2)
        if first:
            tie = a.bit_and(a.compare("eq", value1, value2), a.compare("lt", index1, index2))
            better = a.bit_or(better, tie)
        return [a.where(better, value1, value2), a.where(better, index1, index2)]

    return combine


def _extreme(input, axis, predicate, kind, return_indices, first, keep_dims):
    input = _wide(input)
    if not return_indices:
        return reduce(_extreme_input(input), axis, lambda x, y: a.elementwise(kind, x, y), keep_dims=keep_dims)
    if axis is None:
        raise ValueError("indices are along one axis: give it, or ravel() the tile")
    along = axis_of(axis, len(input.type.shape))
    shape = [extent if i == along else 1 for i, extent in enumerate(input.type.shape)]
    index = broadcast_to(reshaped(arange(0, input.type.shape[along]), shape), input.type.shape)
    return reduce((input, index), along, _indexed(predicate, first), keep_dims=keep_dims)


@builtin
def max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The largest element along a dimension, with its index where asked; the lower index of equal ones."""
    return _extreme(input, axis, "gt", "max", return_indices, return_indices_tie_break_left, keep_dims)


@builtin
def min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The smallest element along a dimension, with its index where asked; the lower index of equal ones."""
    return _extreme(input, axis, "lt", "min", return_indices, return_indices_tie_break_left, keep_dims)


@builtin
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    """The index of the largest element along a dimension."""
    return max(input, axis, return_indices=True, return_indices_tie_break_left=tie_break_left, keep_dims=keep_dims)[1]


@builtin
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    """The index of the smallest element along a dimension."""
    return min(input, axis, return_indices=True, return_indices_tie_break_left=tie_break_left, keep_dims=keep_dims)[1]


def _integers(input, name):
    if not input.type.scalar.is_int():
        raise TypeError(f"{name} only supported for integers, not for a {input!r}")
    return input


@builtin
def xor_sum(input, axis=None, keep_dims=False):
    """The exclusive or along a dimension."""
    return reduce(_integers(input, "xor_sum"), axis, a.bit_xor, keep_dims=keep_dims)


@builtin
def reduce_or(input, axis=None, keep_dims=False):
    """The or along a dimension."""
    return reduce(_integers(input, "reduce_or"), axis, a.bit_or, keep_dims=keep_dims)


@builtin
def cumsum(input, axis=0, reverse=False, dtype=None):
    """Sums of the elements up to each, along a dimension."""
    input = _wide(input)
    return associative_scan(cast(input, _sum_type(input.type.scalar, dtype)), axis, a.add, reverse)


@builtin
def cumprod(input, axis=0, reverse=False):
    """Products of the elements up to each, along a dimension."""
    return associative_scan(_wide(input), axis, a.mul, reverse)


@builtin
def histogram(input, num_bins, mask=None):
    """How often 0, 1, ... num_bins - 1 occur."""
    if len(input.type.shape) != 1:
        raise ValueError(f"histogram only supports 1D input, not a {input!r}")
    _integers(input, "histogram")
    type = tile_type(t.int32, (num_bins,))
    operands = [cast(input, t.int32) if input.type.scalar.primitive_bitwidth < 32 else input]
    if mask is not None:
        operands.append(broadcast_to(to_tensor(mask), input.type.shape))
        if not operands[1].type.scalar.is_bool():
            raise ValueError("Mask must have boolean scalar type")
    return tensor(ir.builder().one("histogram", [one.handle for one in operands], type.ir), type)


@builtin
def sort(x, dim=None, descending=False):
    """The elements along the last dimension in order."""
    axis = axis_of(-1 if dim is None else dim, len(x.type.shape))
    return tensor(ir.builder().one("sort", [x.handle], x.type.ir, axis=axis, descending=1 if descending else 0), x.type)


@builtin
def topk(x, k, dim=None, descending=True):
    """The first k of the elements along a dimension, the largest (descending) or the smallest, in order."""
    axis = axis_of(-1 if dim is None else dim, len(x.type.shape))
    part = [slice() for _ in x.type.shape]
    part[axis] = slice(0, k)
    return subscript(sort(x, axis, descending), tuple(part))


@builtin
def bitonic_merge(x, dim=None, descending=False):
    """sort(), of two sorted halves."""
    return sort(x, dim, descending)


@builtin
def map_elementwise(scalar_fn, *args, pack=1):
    """A function of scalars for each element, with control flow of its own; `pack` elements a call."""
    inputs = broadcast_together(*map(to_tensor, args))
    scalars = [one.type.scalar for one in inputs for _ in range(pack)]
    with ir.builder().region([ir.Value(scalar.ir) for scalar in scalars]) as region:
        value = call(scalar_fn, [tensor(handle, scalar) for handle, scalar in zip(region.arguments, scalars)])
        results = results_of(value)
        ir.builder().terminate(region, "yield", [one.handle for one in results])
    types = [tile_type(one.type, inputs[0].type.shape) for one in results[::pack]]
    handles = ir.builder().emit("map", [one.handle for one in inputs], [type.ir for type in types], {"pack": pack}, [region])
    mapped = [tensor(handle, type) for handle, type in zip(handles, types)]
    return mapped[0] if len(mapped) == 1 else tuple(mapped)


