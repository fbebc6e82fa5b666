"""What a program knows of itself, says, promises and checks."""
import builtins
import string
import sys
import warnings

from heddle.tile import ir
from heddle.tile.language import arithmetic as a
from heddle.tile.language import types as t
from heddle.tile.language.promotion import broadcast_together, to_tensor
from heddle.tile.language.promotion import cast as _cast
from heddle.tile.language.promotion import bitcast as _bitcast
from heddle.tile.language.shaping import builtin
from heddle.tile.language.types import constexpr, unwrap, unwrap_all
from heddle.tile.language.values import base_value, tensor, tile_type, tuple


def _axis(axis, name):
    if axis not in (0, 1, 2) or isinstance(axis, bool):
        raise ValueError(f"{name} axis must be 0, 1, or 2 but got {axis}")
    return axis


@builtin
def program_id(axis):
    """The number of this program along an axis of the grid."""
    return tensor(ir.builder().one("program_id", [], "i32", axis=_axis(axis, "program_id")), t.int32)


@builtin
def num_programs(axis):
    """How many programs there are along an axis of the grid."""
    return tensor(ir.builder().one("num_programs", [], "i32", axis=_axis(axis, "num_programs")), t.int32)


@builtin
def cast(input, dtype, fp_downcast_rounding=None, bitcast=False):
    """A value as another type; with bitcast its bits as another type of the same width."""
    input = to_tensor(input)
    if isinstance(dtype, tensor) or not isinstance(dtype, t.dtype):
        raise TypeError(f"a value is cast to a type of the language, not to {dtype!r}")
    return _bitcast(input, dtype) if bitcast else _cast(input, dtype, fp_downcast_rounding)




# -- promises

def _hint(name, input, values):
    values = unwrap_all(values)
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"values of {name} are known when the kernel is compiled, and integers; not {value!r}")
    if builtins.max(1, len(input.type.shape)) != len(values):
        raise ValueError(f"Shape of input to {name} does not match the length of values: {input!r} and {values}")
    word = {"max_contiguous": "contiguous", "max_constancy": "constancy"}.get(name, name)
    return tensor(ir.builder().one("hint", [input.handle], input.type.ir, **{word: values}), input.type)


@builtin
def multiple_of(input, values):
    """The input, with the promise that the first of each run of elements is a multiple of `values`."""
    return _hint("multiple_of", input, values)


@builtin
def max_contiguous(input, values):
    """The input, with the promise that each `values` elements follow each other."""
    return _hint("max_contiguous", input, values)


@builtin
def max_constancy(input, values):
    """The input, with the promise that each `values` elements are equal."""
    return _hint("max_constancy", input, values)


for _promise in (multiple_of, max_contiguous, max_constancy):
    _promise.is_promise = True


@builtin
def assume(cond):
    """Promises that a condition holds."""
    if isinstance(cond, tensor):
        ir.builder().emit("assume", [_cast(cond, t.int1).handle])


@builtin
def debug_barrier():
    """All threads of a program wait for each other here."""
    ir.builder().emit("barrier")


# -- words

@builtin
def device_print(prefix, *args, hex=False):
    """Prints values when the kernel runs, with words in front of them."""
    if not isinstance(prefix, str):
        raise TypeError(f"{prefix!r} is not string: the first argument of device_print says what the values are")
    if any(character not in string.printable for character in prefix):
        raise ValueError(f"{prefix} is not an ascii string")
    values = [to_tensor(one).handle for one in args]
    ir.builder().emit("print", values, (), {"prefix": ir.Quoted(_set_apart(prefix, bool(values))), "hex": 1 if hex else None})


def _set_apart(words, before_values):
    """Words of a line between its place and the values, as Triton sets them: " x: "."""
    if before_values:
        words = words if words.endswith(" ") else words + " "
        words = words if words.endswith(": ") else words[:-1] + ": "
    return " " + words if len(words) > 2 and not words.startswith(" ") else words


@builtin
def device_assert(cond, msg="", mask=None):
    """Ends the program where a condition does not hold, with a message; in kernels that are compiled with debug=True."""
    if not ir.builder().options.debug:
        return
    cond = _cast(to_tensor(cond), t.int1)
    if mask is not None:
        cond = a.logical_or(cond, a.logical_not(to_tensor(mask)))
    ir.builder().emit("assert", [cond.handle], (), {"message": ir.Quoted(msg)})


def static_assert(cond, msg=""):
    """Refuses to compile the kernel where a condition on what is known then does not hold."""
    raise RuntimeError("static_assert is for the inside of a @jit function")


def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints when the kernel is compiled."""
    print(*(unwrap(value) for value in values), sep=unwrap(sep), end=unwrap(end), file=file or sys.stdout, flush=flush)


# -- Python's own

def _extreme(name, of_tensors, of_numbers):
    @builtin
    def extreme(*arguments, propagate_nan=None):
        values = unwrap_all(arguments[0]) if len(arguments) == 1 else [unwrap(one) for one in arguments]
        if not any(isinstance(value, base_value) for value in values):
            return constexpr(of_numbers(values))
        if propagate_nan is not None:
            warnings.warn(f"passing propagate_nan to builtin {name} is deprecated, use tl.{name}imum instead", stacklevel=2)
        result = values[0]
        for value in values[1:]:
            result = of_tensors(result, value, propagate_nan or t.PropagateNan.NONE)
        return result

    return extreme


builtin_max = _extreme("max", a.maximum, builtins.max)
builtin_min = _extreme("min", a.minimum, builtins.min)


# -- other languages

@builtin
def inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack):
    """PTX for each element of tiles, `pack` of them at a time. It runs on GPUs only."""
    arguments = [to_tensor(one) for one in unwrap_all(args)]
    several = not isinstance(dtype, t.dtype)
    types = unwrap_all(dtype) if several else [dtype]
    if arguments:
        arguments = broadcast_together(*arguments)
    shape = arguments[0].type.shape if arguments else ()
    types = [tile_type(type, shape) for type in types]
    attributes = {"asm": ir.Quoted(asm), "constraints": ir.Quoted(constraints), "pack": pack, "pure": 1 if is_pure else 0}
    handles = ir.builder().emit("inline_asm", [one.handle for one in arguments], [type.ir for type in types], attributes)
    results = [tensor(handle, type) for handle, type in zip(handles, types)]
    return tuple(results) if several else results[0]
