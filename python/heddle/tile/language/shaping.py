"""Making tiles and changing their shapes."""
import functools

from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.promotion import broadcast_to as _broadcast_to
from heddle.tile.language.promotion import broadcast_together, cast, constant, retyped, splat, to_tensor
from heddle.tile.language.types import unwrap, unwrap_all
from heddle.tile.language.values import shape_of, slice, tensor, tile_type, tuple


def builtin(function):
    """Marks a function of the language. It gets constexpr arguments as the values that they are."""

    @functools.wraps(function)
    def call(*arguments, **keywords):
        return function(*map(unwrap, arguments), **{name: unwrap(value) for name, value in keywords.items()})

    call.tile_builtin = True
    return call


def axis_of(axis: int, rank: int) -> int:
    axis = unwrap(axis)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis % rank if rank else axis


@builtin
def arange(start, end):
    """start, start + 1, ... end - 1 as an int32 tile. Both are known when the kernel is compiled."""
    if not isinstance(start, int) or not isinstance(end, int):
        raise ValueError("arange's arguments must be of type tl.constexpr")
    if not (-2**31 <= start < 2**31 and -2**31 <= end <= 2**31):
        raise ValueError("arange must fit in int32")
    if end <= start:
        raise ValueError("arange's end argument must be greater than the start argument")
    type = tile_type(t.int32, (end - start,))
    return tensor(ir.builder().one("iota", [], type.ir, start=start), type)


@builtin
def full(shape, value, dtype):
    """A tile with one value everywhere."""
    shape = shape_of(shape)
    if dtype is None:
        raise ValueError("dtype must be specified when value is not a tensor")
    if isinstance(value, tensor):
        if value.type.numel != 1:
            raise ValueError(f"only accepts size-1 tensor, not a {value!r}")
        return splat(cast(item(value), dtype), shape)
    return constant(value, tile_type(dtype, shape))


@builtin
def zeros(shape, dtype):
    """A tile of zeros."""
    return full(shape, 0, dtype)


@builtin
def zeros_like(input):
    """A tile of zeros in the shape and type of another."""
    return full(input.type.shape, 0, input.type.scalar)


@builtin
def broadcast(input, other):
    """Both in their common shape."""
    return tuple(broadcast_together(to_tensor(input), to_tensor(other)))


@builtin
def broadcast_to(input, *shape):
    """A tile in a larger shape, whose extents stand in place of its ones."""
    return _broadcast_to(to_tensor(input), shape_of(shape))


@builtin
def reshape(input, *shape, can_reorder=False):
    """The same elements in another shape, in row-major order."""
    shape = shape_of(shape)
    if not shape:
        return item(input)
    return reshaped(input, shape)


def reshaped(input, shape):
    type = tile_type(input.type.scalar, shape)
    if type.numel != input.type.numel:
        raise ValueError(f"reshape() cannot change total number of elements in tensor: {list(input.type.shape)} has "
                         f"{input.type.numel}, {list(shape)} has {type.numel}")
    if not input.type.is_block():
        return splat(input, shape)
    return input if type == input.type else retyped("reshape", input, type)


@builtin
def view(input, *shape):
    """reshape()."""
    return reshaped(input, shape_of(shape))


@builtin
def ravel(x, can_reorder=False):
    """All elements in one dimension."""
    return reshaped(x, (x.type.numel,))


@builtin
def item(input):
    """The one element of a tile of one as a scalar."""
    if not input.type.is_block():
        return input
    if input.type.numel != 1:
        raise ValueError(f"item() is for a tile of one element, not for a {input!r}")
    return retyped("reshape", input, input.type.scalar)


@builtin
def expand_dims(input, axis):
    """A dimension of extent 1 at each axis, counted in the result."""
    if not isinstance(input, tensor):
        input = to_tensor(input)
    axes = unwrap_all(axis)
    rank = len(input.type.shape) + len(axes)
    axes = [axis_of(one, rank) for one in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims received duplicate axes, normalized axes = {axes}")
    for one in sorted(axes):
        shape = list(input.type.shape)
        shape.insert(one, 1)
        if not input.type.is_block():
            input = splat(input, shape)
        else:
            input = retyped("expand_dims", input, tile_type(input.type.scalar, shape), axis=one)
    return input


@builtin
def squeeze(x, dim):
    """Without a dimension of extent 1."""
    axis, shape = axis_of(dim, len(x.type.shape)), list(x.type.shape)
    if shape.pop(axis) != 1:
        raise ValueError(f"squeeze removes extents of 1, and dimension {axis} of {x!r} is none")
    return reshaped(x, shape) if shape else item(x)


@builtin
def unsqueeze(x, dim):
    """With one more dimension of extent 1."""
    return expand_dims(x, dim)


@builtin
def permute(input, *dims):
    """Dimensions in another order."""
    order = shape_like(dims)
    rank = len(input.type.shape)
    if len(order) != rank:
        raise ValueError(f"permute dims must have the same length as input shape, got {rank} and {len(order)}")
    if sorted(order) != list(range(rank)):
        raise ValueError(f"permute dims must be a permutation of 0, 1, ..., n-1, but were {order}")
    if order == list(range(rank)):
        return input
    type = tile_type(input.type.scalar, [input.type.shape[axis] for axis in order])
    return retyped("permute", input, type, order=order)


def shape_like(values) -> list:
    """Numbers given as one tuple or one by one."""
    values = unwrap_all(values)
    return unwrap_all(values[0]) if len(values) == 1 and not isinstance(values[0], int) else values


@builtin
def trans(input, *dims):
    """Dimensions in another order; the last two exchanged where none is given."""
    order, rank = shape_like(dims), len(input.type.shape)
    if not order:
        if rank < 2:
            raise ValueError("tl.trans invoked with a 0- or 1-dimensional tensor")
        order = [*range(rank - 2), rank - 1, rank - 2]
    return permute(input, order)


@builtin
def cat(input, other, can_reorder=False, dim=0):
    """Two tiles, one behind the other along a dimension."""
    rank = len(input.type.shape)
    if rank != len(other.type.shape):
        raise ValueError(f"tensors must have the same rank, got {rank} and {len(other.type.shape)}")
    axis = axis_of(dim, rank)
    shape, second = list(input.type.shape), list(other.type.shape)
    if any(i != axis and a != b for i, (a, b) in enumerate(zip(shape, second))):
        raise ValueError(f"tensor dims must match except in the concat dimension {axis}, got {shape} and {second}")
    if input.type.scalar != other.type.scalar:
        raise ValueError(f"cat joins tiles of one type, not {input!r} and {other!r}")
    order = [axis, *(i for i in range(rank) if i != axis)]
    a, b = permute(input, order), permute(other, order)
    type = tile_type(input.type.scalar, (a.type.shape[0] + b.type.shape[0], *a.type.shape[1:]))
    both = tensor(ir.builder().one("cat", [a.handle, b.handle], type.ir), type)
    return permute(both, [order.index(i) for i in range(rank)])


@builtin
def join(a, b):
    """Two tiles side by side in a new last dimension of 2."""
    a, b = broadcast_together(to_tensor(a), to_tensor(b))
    if a.type.scalar != b.type.scalar:
        raise ValueError(f"join takes tiles of one type, not {a!r} and {b!r}")
    type = tile_type(a.type.scalar, (*a.type.shape, 2))
    return tensor(ir.builder().one("join", [a.handle, b.handle], type.ir), type)


@builtin
def split(a):
    """The two halves of a last dimension of 2."""
    if not a.type.is_block() or a.type.shape[-1] != 2:
        raise ValueError(f"expected last dimension to be 2 for split, got a {a!r}")
    type = tile_type(a.type.scalar, a.type.shape[:-1])
    halves = ir.builder().emit("split", [a.handle], [type.ir, type.ir])
    return tuple([tensor(half, type) for half in halves])


@builtin
def interleave(a, b):
    """The elements of two tiles in turn, along the last dimension."""
    both = join(a, b)
    shape = both.type.shape
    return both if len(shape) == 1 else reshaped(both, (*shape[:-2], 2 * shape[-2]))


@builtin
def flip(x, dim=None):
    """The elements along a dimension (the last one) in reverse."""
    axis = axis_of(-1 if dim is None else dim, len(x.type.shape))
    return retyped("flip", x, x.type, axis=axis)


@builtin
def gather(src, index, axis):
    """Elements of `src` at `index` along a dimension; the other extents of both are equal."""
    if not index.type.scalar.is_int():
        raise TypeError(f"index must be an integer tensor, not a {index!r}")
    rank = len(src.type.shape)
    if len(index.type.shape) != rank:
        raise ValueError("source and index tensors must have the same rank")
    axis = axis_of(axis, rank)
    for i, (have, want) in enumerate(zip(index.type.shape, src.type.shape)):
        if i != axis and have != want:
            raise ValueError(f"index dim {i} must match the corresponding source dim, got {have} and {want}")
    type = tile_type(src.type.scalar, index.type.shape)
    index = cast(index, t.int32) if index.type.scalar not in (t.int32, t.int64) else index
    return tensor(ir.builder().one("gather", [src.handle, index.handle], type.ir, axis=axis), type)


def subscript(x: tensor, index) -> tensor:
    """x[index]: None adds a dimension, a colon keeps one, start:stop takes a part of one, a number one element of it."""
    items = list(index.values) if isinstance(index, tuple) else [index]
    items = [unwrap(one) for one in items]
    missing = len(x.type.shape) - sum(one is not None for one in items)
    if missing < 0:
        raise ValueError(f"unsupported tensor index: a {x!r} has {len(x.type.shape)} dimensions and is indexed in {len(items) - items.count(None)}")
    axis, dropped = 0, []
    for one in items:
        if one is None:
            x = expand_dims(x, axis)
        elif isinstance(one, slice):
            x = x if one.is_all() else _part(x, axis, one)
        elif isinstance(one, int) and not isinstance(one, bool):
            extent = x.type.shape[axis]
            if not -extent <= one < extent:
                raise ValueError(f"index {one} is outside of dimension {axis} of {x!r}")
            x = _part(x, axis, slice(one % extent, one % extent + 1))
            dropped.append(axis)
        else:
            raise ValueError(f"unsupported tensor index: {one!r}; use None, colons and numbers that are known when the kernel is "
                             "compiled, and tl.gather for what is not")
        axis += 1
    if dropped:
        shape = [extent for i, extent in enumerate(x.type.shape) if i not in dropped]
        x = reshaped(x, shape) if shape else item(x)
    return x


def _part(x: tensor, axis: int, part: slice) -> tensor:
    start, stop, step = part.as_python().indices(x.type.shape[axis])
    if step != 1 or stop <= start:
        raise ValueError(f"a part of dimension {axis} of {x!r} has a step of 1 and at least one element, unlike "
                         f"{part.start}:{part.stop}:{part.step}")
    shape = list(x.type.shape)
    if stop - start == shape[axis]:
        return x
    shape[axis] = stop - start
    return retyped("slice", x, tile_type(x.type.scalar, shape), axis=axis, start=start, size=stop - start)


