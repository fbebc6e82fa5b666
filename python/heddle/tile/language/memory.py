"""Loads, stores and atomic operations: by pointers, block pointers and descriptors."""
from heddle.tile import ir
from heddle.tile.language import types as t
from heddle.tile.language.promotion import broadcast_together, cast, to_tensor
from heddle.tile.language.shaping import builtin
from heddle.tile.language.values import tensor
from heddle.tile.language.windows import block_pointer, descriptor

_LOAD_CACHES = {"": None, ".ca": "ca", ".cg": "cg", ".cs": "cs", ".cv": "cv"}
_STORE_CACHES = {"": None, ".wb": "wb", ".cg": "cg", ".cs": "cs", ".wt": "wt"}
_EVICTIONS = {"": None, "evict_first": "first", "evict_last": "last"}
_SEMANTICS = ("acq_rel", "relaxed", "acquire", "release")
_SCOPES = ("gpu", "cta", "sys")


def chosen(name, value, choices):
    """An option by its word; "" and None are the default."""
    value = value or ""
    if value not in choices:
        raise ValueError(f"{name} {value} not supported; there are {', '.join(word for word in choices if word)}")
    return choices[value]


def _pointer(pointer, what):
    if not isinstance(pointer, tensor) or not pointer.type.scalar.is_ptr():
        raise ValueError(f"Unsupported ptr type {pointer!r} in `tl.{what}`")
    return pointer.type.scalar.element_ty


def _mask(mask, pointer):
    """A mask in the shape of the pointers."""
    mask = to_tensor(mask)
    if not pointer.type.is_block() and mask.type.is_block():
        raise ValueError("Mask argument cannot be block type if pointer argument is not a block")
    if not mask.type.scalar.is_bool():
        raise ValueError(f"Mask must have boolean scalar type, not {mask!r}")
    return _shaped(mask, pointer)


def _shaped(value, pointer):
    """A value broadcast to the pointers', never the pointers to the value."""
    common = broadcast_together(pointer, value)
    if common[0].type.shape != pointer.type.shape:
        raise ValueError(f"Expected pointer argument to have shape {list(common[0].type.shape)} but got {list(pointer.type.shape)}")
    return common[1]


@builtin
def load(pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier="", eviction_policy="",
         volatile=False):
    """The elements that pointers point to; where the mask is false, `other` or zero, without touching memory."""
    hints = {"cache": chosen("cache_modifier", cache_modifier, _LOAD_CACHES),
             "eviction": chosen("eviction_policy", eviction_policy, _EVICTIONS)}
    if volatile:
        hints["cache"] = "cv"  # the same to programs that others write to
    if isinstance(pointer, block_pointer):
        if mask is not None or other is not None:
            raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers")
        return pointer.load(boundary_check, padding_option, hints)
    element = _pointer(pointer, "load")
    if padding_option or boundary_check:
        raise ValueError("`padding_option` or `boundary_check` argument is for block pointers: a tensor of pointers has no bounds; "
                         "give a mask")
    if mask is None and other is not None:
        raise ValueError("`other` cannot be provided without `mask`")
    operands = [pointer]
    if mask is not None:
        operands.append(_mask(mask, pointer))
    if other is not None:
        other = to_tensor(other)
        if not pointer.type.is_block() and other.type.is_block():
            raise ValueError("Other argument cannot be block type if pointer argument is not a block")
        operands.append(cast(_shaped(other, pointer), element))
    type = pointer.type.with_element_ty(element)
    handles = [operand.handle for operand in operands]
    return tensor(ir.builder().one("load", handles, type.ir, **hints), type)


@builtin
def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy=""):
    """Puts elements where pointers point to, as their type, but where the mask is false."""
    hints = {"cache": chosen("cache_modifier", cache_modifier, _STORE_CACHES),
             "eviction": chosen("eviction_policy", eviction_policy, _EVICTIONS)}
    value = to_tensor(value)
    if isinstance(pointer, block_pointer):
        if mask is not None:
            raise ValueError("`mask` argument cannot be specified for storing block pointers")
        return pointer.store(value, boundary_check, hints)
    element = _pointer(pointer, "store")
    if pointer.type.scalar.is_const():
        raise ValueError("Cannot store to a constant pointer")
    if boundary_check:
        raise ValueError("`boundary_check` argument is for block pointers: a tensor of pointers has no bounds; give a mask")
    if not pointer.type.is_block() and value.type.is_block():
        raise ValueError("Value argument cannot be block type if pointer argument is not a block")
    operands = [pointer, cast(_shaped(value, pointer), element)]
    if mask is not None:
        operands.append(_mask(mask, pointer))
    ir.builder().emit("store", [operand.handle for operand in operands], (), hints)
    return None


# -- atomic operations

def _atomic(kind, pointer, value, mask, sem, scope):
    element = _pointer(pointer, f"atomic_{kind}")
    if pointer.type.scalar.is_const():
        raise ValueError("Cannot store to a constant pointer")
    narrow = element.is_fp16() or element.is_bf16()
    if narrow and kind != "add" or element.primitive_bitwidth < 16 or element in (t.int16, t.uint16):
        raise ValueError(f"atomic_{kind} does not support {element}")
    if kind in ("max", "min") and element.is_floating() and element not in (t.float32, t.float64):
        raise TypeError(f"atomic_{kind} not supported for dtype {element}")
    if kind in ("and", "or", "xor") and element.is_floating():
        raise TypeError(f"atomic_{kind} not supported for dtype {element}")
    operands = [pointer, cast(_shaped(to_tensor(value), pointer), element)]
    if mask is not None:
        operands.append(_mask(mask, pointer))
    return _ordered("atomic_rmw", operands, element, sem, scope, kind=kind)


def _ordered(name, operands, element, sem, scope, **attributes):
    sem = chosen("Memory semantic", sem, {"": "acq_rel", **{word: word for word in _SEMANTICS}})
    scope = chosen("Memory scope", scope, {"": "gpu", **{word: word for word in _SCOPES}})
    type = operands[0].type.with_element_ty(element)
    handles = [operand.handle for operand in operands]
    return tensor(ir.builder().emit(name, handles, [type.ir], {**attributes, "sem": sem, "scope": scope})[0], type)


def _make_atomic(kind, does):
    @builtin
    def atomic(pointer, val, mask=None, sem=None, scope=None):
        return _atomic(kind, pointer, val, mask, sem, scope)

    atomic.__name__ = atomic.__qualname__ = f"atomic_{kind}"
    atomic.__doc__ = f"{does} in one step that no other program sees in part; gives what was there before."
    return atomic


atomic_add = _make_atomic("add", "Adds to what pointers point to")
atomic_max = _make_atomic("max", "Takes the larger of a value and what pointers point to")
atomic_min = _make_atomic("min", "Takes the smaller of a value and what pointers point to")
atomic_and = _make_atomic("and", "Ands a value to what pointers point to")
atomic_or = _make_atomic("or", "Ors a value to what pointers point to")
atomic_xor = _make_atomic("xor", "Exclusive-ors a value to what pointers point to")
atomic_xchg = _make_atomic("xchg", "Puts a value where pointers point to")


@builtin
def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """Puts `val` where pointers point to if `cmp` is there, in one step; gives what was there before."""
    element = _pointer(pointer, "atomic_cas")
    if element.primitive_bitwidth not in (16, 32, 64):
        raise ValueError("atomic_cas only supports elements with width {16, 32, 64}")
    operands = [pointer, *(cast(_shaped(to_tensor(value), pointer), element) for value in (cmp, val))]
    return _ordered("atomic_cas", operands, element, sem, scope)


# -- windows

@builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    """A window of a block into a matrix: base, extents and strides of the matrix, offsets of the window."""
    return block_pointer(base, shape, strides, offsets, block_shape, order)


@builtin
def advance(base, offsets):
    """A block pointer, moved by offsets."""
    return base.advance(offsets)


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option="zero"):
    """A tensor in memory with the shape of the blocks that are loaded from it and stored to it."""
    return descriptor.make(base, shape, strides, block_shape, padding_option)


@builtin
def load_tensor_descriptor(desc, offsets, cache_modifier="", eviction_policy=""):
    """The block of a descriptor at offsets."""
    return desc.load(offsets, cache_modifier, eviction_policy)


@builtin
def store_tensor_descriptor(desc, offsets, value):
    """Puts a block into the tensor of a descriptor, at offsets."""
    return desc.store(offsets, value)


