"""Windows into tensors in memory: block pointers and tensor descriptors. Both are scalars to the IR, and a view where used."""
from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.promotion import broadcast_to, cast, to_tensor
from heddle.tile.language.types import base_type, constexpr, unwrap_all
from heddle.tile.language.values import base_value, shape_of, tensor, tile_type, tuple


def _scalars(values, name, type=None) -> list:
    """Integers that are known when the kernel is compiled or when it runs, as scalars."""
    scalars = []
    for value in unwrap_all(values):
        value = to_tensor(value)
        if value.type.is_block():
            raise ValueError(f"Expected `{name}` entries to be scalar tensors, not a {value!r}")
        if not value.type.is_int():
            raise ValueError(f"Expected `{name}` entries to be integers, not a {value!r}")
        wanted = type or (t.int64 if value.type.int_bitwidth == 64 or value.type == t.uint32 else t.int32)
        scalars.append(cast(value, wanted))
    return scalars


class window_type(base_type):
    """The type of a window: what its tile is, and what it does outside of its tensor."""

    def __init__(self, cls, element, block, padding, widths):
        self.cls, self.element, self.block, self.padding, self.widths = cls, element, block, padding, widths

    def _key(self):
        return self.cls, self.element, self.block, self.padding, self.widths

    def __eq__(self, other):
        return isinstance(other, window_type) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return f"{self.cls.__name__}<{list(self.block)}, {self.element}>"

    __repr__ = __str__


class window(base_value):
    """A base, extents, strides, and the shape of the tiles that come from there."""

    def __init__(self, base, shape, strides, block_shape, padding):
        self.base, self.shape_, self.strides_, self.block, self.padding = base, shape, strides, block_shape, padding

    @property
    def element(self):
        return self.base.type.element_ty

    @property
    def dtype(self):
        return self.element

    @property
    def type(self):
        widths = tuple_of(value.type for value in self.parts()[1:])
        return window_type(type(self), self.base.type, self.block, self.padding, widths)

    @property
    def shape(self):
        return tuple(self.shape_)

    @property
    def strides(self):
        return tuple(self.strides_)

    @property
    def block_shape(self):
        return tuple([constexpr(extent) for extent in self.block])

    @property
    def block_type(self):
        return tile_type(self.element, self.block)

    def parts(self) -> list:
        """The scalars that make it, as loops and branches carry them."""
        return [self.base, *self.shape_, *self.strides_]

    def view(self, padding):
        """The window in the IR, here."""
        element = self.base.type.element_ty.ir
        type = f"view<{'x'.join(map(str, self.block))}x{element}>"
        return ir.builder().one("make_view", [part.handle for part in (self.base, *self.shape_, *self.strides_)], type,
                                padding=padding or None)

    def __repr__(self):
        return str(self.type)


def tuple_of(values):
    return (*values,)


class block_pointer(window):
    """What make_block_ptr gives."""

    def __init__(self, base, shape, strides, offsets, block_shape, order):
        if not isinstance(base, tensor) or base.type.is_block() or not base.type.is_ptr():
            raise ValueError(f"Expected `base` to be a scalar pointer type, not a {base!r}")
        block = shape_of([block_shape])
        super().__init__(base, _scalars(shape, "shape", t.int64), _scalars(strides, "strides", t.int64), block, None)
        self.offsets_, self.order = _scalars(offsets, "offsets", t.int64), tuple(unwrap_all(order))
        for name, found in (("shape", self.shape_), ("strides", self.strides_), ("offsets", self.offsets_), ("order", self.order)):
            if len(found) != len(block):
                raise ValueError("Expected `shape`, `strides`, `offsets`, `block_shape`, and `order` to have the same length; "
                                 f"`{name}` has length {len(found)} but expected {len(block)}")
        if sorted(unwrap_all(order)) != list(range(len(block))):
            raise ValueError(f"Expected `order` to be a permutation of 0..{len(block) - 1}")

    def parts(self):
        return [*super().parts(), *self.offsets_]

    def rebuilt(self, parts):
        rank = len(self.block)
        made = object.__new__(block_pointer)
        window.__init__(made, parts[0], parts[1 : 1 + rank], parts[1 + rank : 1 + 2 * rank], self.block, None)
        made.offsets_, made.order = parts[1 + 2 * rank :], self.order
        return made

    @property
    def dtype(self):
        return self.base.type  # a block pointer is a kind of pointer

    @property
    def offsets(self):
        return tuple(self.offsets_)

    def advance(self, offsets):
        deltas = _scalars(offsets, "offsets", t.int64)
        if len(deltas) != len(self.offsets_):
            raise ValueError(f"Expected `offsets` to have length {len(self.offsets_)} but received {len(deltas)}")
        moved = [tensor(ir.builder().one("add", [old.handle, delta.handle], "i64"), t.int64)
                 for old, delta in zip(self.offsets_, deltas)]
        return self.rebuilt([*super().parts(), *moved])

    def _checked(self, boundary_check):
        rank = len(self.block)
        checked = [] if boundary_check is None else unwrap_all(boundary_check)
        for dim in checked:
            if not isinstance(dim, int) or not 0 <= dim < rank:
                raise ValueError(f"Expected `boundary_check` to contain dimensions in [0, {rank})")
        if len(set(checked)) != len(checked):
            raise ValueError("Duplicate dimension in `boundary_check`")
        return sorted(checked)

    def load(self, boundary_check, padding_option, hints):
        padding = padding_option or ""
        if padding not in ("", "zero", "nan"):
            raise ValueError(f"Padding option {padding} not supported; there are 'zero' and 'nan'")
        if padding == "nan" and self.element.is_int():
            raise ValueError("Padding option `nan` is not supported for integer block pointers")
        operands = [self.view(padding), *(offset.handle for offset in self.offsets_)]
        type = self.block_type
        return tensor(ir.builder().one("load_view", operands, type.ir, check=self._checked(boundary_check), **hints), type)

    def store(self, value, boundary_check, hints):
        value = broadcast_to(cast(value, self.element), self.block)
        operands = [self.view(None), *(offset.handle for offset in self.offsets_), value.handle]
        ir.builder().emit("store_view", operands, (), {"check": self._checked(boundary_check), **hints})


class descriptor(window):
    """What make_tensor_descriptor gives, and a TensorDescriptor that is an argument."""

    @staticmethod
    def make(base, shape, strides, block_shape, padding):
        rank = len(unwrap_all(shape))
        if not isinstance(base, tensor) or base.type.is_block() or not base.type.is_ptr():
            raise TypeError(f"base must be a pointer type, got {base!r}")
        if not 1 <= rank <= 5:
            raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
        block = shape_of([block_shape])
        for name, values in (("strides", unwrap_all(strides)), ("block_shape", block)):
            if len(values) != rank:
                raise ValueError(f"Expected {rank} {name} but got {len(values)}")
        last = unwrap_all(strides)[-1]
        if last != 1 or isinstance(last, tensor):
            raise ValueError(f"Tensor descriptor last dim must be 1 but got {last!r}")
        padding = padding or "zero"
        if padding not in ("zero", "nan"):
            raise ValueError(f"Padding option {padding} not supported; there are 'zero' and 'nan'")
        if padding == "nan" and base.type.element_ty.is_int():
            raise ValueError("Padding option `nan` is not supported for integer blocks")
        return descriptor(base, _scalars(shape, "shape", t.int32), _scalars(strides, "strides", t.int64), block, padding)

    def rebuilt(self, parts):
        rank = len(self.block)
        return descriptor(parts[0], parts[1 : 1 + rank], parts[1 + rank :], self.block, self.padding)

    def _offsets(self, offsets):
        values = unwrap_all(offsets)
        if len(values) != len(self.block):
            raise ValueError(f"expected {len(self.block)} offsets, but got {len(values)}")
        for value in values:
            if isinstance(value, tensor) and value.type.scalar.is_int() and value.type.scalar.primitive_bitwidth == 64:
                raise ValueError("offsets of a descriptor have 32 bits; add a `.to(tl.int32)` or use pointers for 64 bit support")
        return [value.handle for value in _scalars(values, "offsets", t.int32)]

    def _view(self):
        return self.view(self.padding if self.padding == "nan" else "zero")

    def _all(self):
        return list(range(len(self.block)))

    def load(self, offsets, cache_modifier="", eviction_policy=""):
        """The block at offsets; what is outside of the tensor is zero, or NaN where the descriptor says so."""
        type = self.block_type
        return tensor(ir.builder().one("load_view", [self._view(), *self._offsets(offsets)], type.ir, check=self._all()), type)

    def _value(self, value):
        value = to_tensor(value)
        if value.type.shape != self.block:
            raise ValueError(f"expected value shape {list(self.block)}, got {list(value.type.shape)}")
        return cast(value, self.element).handle

    def store(self, offsets, value):
        """Puts a block at offsets; what is outside of the tensor is left out."""
        operands = [self._view(), *self._offsets(offsets), self._value(value)]
        ir.builder().emit("store_view", operands, (), {"check": self._all()})

    def _atomic(self, kind, offsets, value, types):
        value = self._value(value)
        if self.element not in types:
            raise TypeError(f"Unsupported dtype {self.element} for atomic_{kind} of a descriptor")
        ir.builder().emit("atomic_view", [self._view(), *self._offsets(offsets), value], (), {"kind": kind})

    def atomic_add(self, offsets, value):
        self._atomic("add", offsets, value, (t.uint32, t.int32, t.uint64, t.float32, t.float16, t.bfloat16))

    def atomic_min(self, offsets, value):
        self._atomic("min", offsets, value, _INTEGERS + (t.float16, t.bfloat16))

    def atomic_max(self, offsets, value):
        self._atomic("max", offsets, value, _INTEGERS + (t.float16, t.bfloat16))

    def atomic_and(self, offsets, value):
        self._atomic("and", offsets, value, _INTEGERS)

    def atomic_or(self, offsets, value):
        self._atomic("or", offsets, value, _INTEGERS)

    def atomic_xor(self, offsets, value):
        self._atomic("xor", offsets, value, _INTEGERS)

    def _rows(self, rows, what):
        if len(self.block) != 2 or self.block[0] != 1:
            raise ValueError(f"descriptor {what} wants blocks of one row, but got {list(self.block)}")
        if not isinstance(rows, tensor) or len(rows.type.shape) != 1 or rows.type.scalar not in (t.int16, t.int32):
            raise TypeError(f"x offsets must have dtype int16 or int32 and one dimension, but got {rows!r}")
        least = 32 // self.element.primitive_bitwidth * 8
        if rows.type.shape[0] < 8:
            raise ValueError(f"descriptor {what} must have at least 8 rows, but got {rows.type.shape[0]}")
        if self.block[1] < least:
            raise ValueError(f"descriptor {what} of {self.element} must have at least {least} columns, but got {self.block[1]}")
        return cast(rows, t.int32).handle

    def gather(self, x_offsets, y_offset):
        """Parts of rows: those that x_offsets name, from column y_offset on."""
        rows, column = self._rows(x_offsets, "gather"), _scalars([y_offset], "y_offset", t.int32)[0]
        type = tile_type(self.element, (x_offsets.type.shape[0], self.block[1]))
        return tensor(ir.builder().one("gather_view", [self._view(), rows, column.handle], type.ir), type)

    def scatter(self, value, x_offsets, y_offset):
        """Puts parts of rows where x_offsets name them, from column y_offset on."""
        rows, column = self._rows(x_offsets, "scatter"), _scalars([y_offset], "y_offset", t.int32)[0]
        value = cast(value, self.element)
        ir.builder().emit("scatter_view", [self._view(), rows, column.handle, value.handle])


_INTEGERS = (t.uint32, t.int32, t.uint64, t.int64)
