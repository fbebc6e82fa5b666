"""Values of a kernel: tiles and scalars (`tensor`), tuples, slices, and the ranges that loops go over."""
import builtins
from typing import Any

from heddle.tile.language.types import block_type, constexpr, dtype, tuple_type, unwrap, unwrap_all


class base_value:
    """What every value of a kernel is."""


class tensor(base_value):
    """A tile, or a scalar: `handle` is the value in the IR, `type` its type in the language.

    Operators and methods are those of heddle.tile.language; each describes one step of the kernel.
    """

    def __init__(self, handle: Any, type: dtype):
        self.handle, self.type = handle, type

    @property
    def dtype(self):
        return self.type.scalar

    @property
    def shape(self):
        return tuple([constexpr(extent) for extent in self.type.shape])

    @property
    def numel(self):
        return constexpr(self.type.numel)

    def __repr__(self):
        if not self.type.is_block():
            return str(self.type)
        return f"{self.type.scalar}[{', '.join(map(str, self.type.shape))}]"

    def __bool__(self):
        raise TypeError(
            f"a {self!r} has its value when the kernel runs, and this needs one when it is compiled; use tl.where, or an if "
            "statement on a scalar")

    def __iter__(self):
        raise TypeError(f"a {self!r} cannot be iterated over or unpacked")

    def __hash__(self):
        return id(self)


class tuple(base_value):
    """Several values under one name. `fields` are the names of a namedtuple's."""

    def __init__(self, args=(), type=None):
        self.values = [item if isinstance(item, (base_value, constexpr)) else _element(item) for item in args]
        self.fields = getattr(type, "fields", type)

    @property
    def type(self):
        return tuple_type([value.type for value in self.values], self.fields)

    def __getitem__(self, index):
        index = unwrap(index)
        if isinstance(index, slice):
            return tuple(self.values[index.as_python()])
        if isinstance(index, builtins.slice):
            return tuple(self.values[index])
        if not isinstance(index, int):
            raise TypeError(f"a tuple is indexed by what is known when the kernel is compiled, not by a {index!r}")
        return self.values[index]

    def __getattr__(self, name):
        fields = self.__dict__.get("fields")
        if fields is not None and name in fields:
            return self.values[fields.index(name)]
        raise AttributeError(f"the tuple has no field {name!r}; it has {fields or 'none'}")

    def __add__(self, other):
        return tuple(self.values + unwrap_tuple(other))

    def __radd__(self, other):
        return tuple(unwrap_tuple(other) + self.values)

    def __mul__(self, count):
        return tuple(self.values * unwrap(count))

    __rmul__ = __mul__

    def __eq__(self, other):
        other = unwrap(other)
        if not isinstance(other, (tuple, builtins.tuple, list)):
            return constexpr(False)
        mine, theirs = unwrap_all(self), unwrap_all(other)
        return constexpr(len(mine) == len(theirs) and all(bool(unwrap(a == b)) for a, b in zip(mine, theirs)))

    def __ne__(self, other):
        return constexpr(not self.__eq__(other).value)

    def __hash__(self):
        return hash(builtins.tuple(self.values))

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        return f"({', '.join(map(repr, self.values))})"


def _element(item):
    if isinstance(item, (builtins.tuple, list)):
        return tuple(item, getattr(item, "_fields", None))
    return constexpr(item)


def unwrap_tuple(values) -> list:
    values = unwrap(values)
    return list(values.values if isinstance(values, tuple) else values)


class slice(base_value):
    """What stands in brackets with colons."""

    def __init__(self, start=None, stop=None, step=None):
        self.start, self.stop, self.step = unwrap(start), unwrap(stop), unwrap(step)

    def as_python(self):
        return builtins.slice(self.start, self.stop, self.step)

    def is_all(self):
        return self.start is None and self.stop is None and self.step is None


class static_range(base_value):
    """A range whose loop is unrolled: its bounds are known when the kernel is compiled."""

    def __init__(self, arg1, arg2=None, step=None):
        bounds = [0, arg1] if arg2 is None else [arg1, arg2]
        bounds = [unwrap(bound) for bound in (*bounds, 1 if step is None else step)]
        for bound in bounds:
            if not isinstance(bound, int):
                raise TypeError(f"static_range goes over what is known when the kernel is compiled, not to a {bound!r}")
        self.start, self.end, self.step = (constexpr(bound) for bound in bounds)

    def as_python(self):
        return builtins.range(self.start.value, self.end.value, self.step.value)


class range(base_value):
    """A range with wishes for its loop: in how many stages its loads run ahead, how often it is unrolled, and so on."""

    def __init__(self, arg1, arg2=None, step=None, num_stages=None, loop_unroll_factor=None, disallow_acc_multi_buffer=False,
                 flatten=False, warp_specialize=False, disable_licm=False):
        self.start, self.end = (constexpr(0), arg1) if arg2 is None else (arg1, arg2)
        self.step = constexpr(1) if step is None else step
        self.wishes = {
            "num_stages": unwrap(num_stages), "unroll": unwrap(loop_unroll_factor),
            "disallow_acc_multi_buffer": unwrap(disallow_acc_multi_buffer) or None, "flatten": unwrap(flatten) or None,
            "warp_specialize": unwrap(warp_specialize) or None, "disable_licm": unwrap(disable_licm) or None,
        }


class condition(base_value):
    """The condition of a `while` with wishes for its loop."""

    def __init__(self, arg1, disable_licm=False):
        self.condition, self.disable_licm = arg1, unwrap(disable_licm)


def shape_of(shape: Any) -> builtins.tuple:
    """Extents that a call gives as one tuple or one by one: `(32, 32)` or `32, 32`."""
    shape = unwrap_all(shape)
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = unwrap_all(shape[0])
    for i, extent in enumerate(shape):
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise TypeError(f"Shape element {i} must have type `constexpr[int]`, got `{extent!r}`: extents are known when the "
                            "kernel is compiled")
        if extent < 1:
            raise ValueError(f"Shape element {i} is {extent}, and an extent is at least 1")
    return builtins.tuple(shape)


def tile_type(element: dtype, shape) -> dtype:
    """The type of a tile of this shape; of a scalar for no dimensions."""
    return block_type(element, shape) if len(shape) else element
