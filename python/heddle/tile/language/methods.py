"""Operators and methods of tensors: functions of the language, called by the value."""
from heddle.tile.language import arithmetic as a
from heddle.tile.language import math, memory, program, reductions, shaping, standard
from heddle.tile.language.promotion import is_number
from heddle.tile.language.types import unwrap
from heddle.tile.language.values import tensor


def _operator(compute, reverse=False):
    def method(self, other):
        other = unwrap(other)
        if not isinstance(other, tensor) and not is_number(other):
            raise TypeError(f"a {self!r} and {other!r} ({type(other).__name__}) have no common operator")
        return compute(other, self) if reverse else compute(self, other)

    return method


_BINARY = {
    "add": a.add, "sub": a.sub, "mul": a.mul, "truediv": a.truediv, "floordiv": a.floordiv, "mod": a.mod, "and": a.bit_and,
    "or": a.bit_or, "xor": a.bit_xor, "lshift": a.shl, "rshift": a.shr,
}
for _name, _compute in _BINARY.items():
    setattr(tensor, f"__{_name}__", _operator(_compute))
    setattr(tensor, f"__r{_name}__", _operator(_compute, reverse=True))


def _comparison(predicate):
    return _operator(lambda x, y: a.compare(predicate, x, y))


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(tensor, f"__{_name}__", _comparison(_name))

tensor.__neg__ = a.neg
tensor.__pos__ = lambda self: self
tensor.__invert__ = a.invert
tensor.__not__ = a.logical_not
tensor.__getitem__ = shaping.subscript
tensor.logical_and = lambda self, other: a.logical_and(self, unwrap(other))
tensor.logical_or = lambda self, other: a.logical_or(self, unwrap(other))
tensor.T = property(lambda self: shaping.trans(self))

_FUNCTIONS = (
    *(getattr(shaping, name) for name in (
        "broadcast_to", "trans", "permute", "split", "view", "item", "reshape", "expand_dims", "gather", "ravel", "flip")),
    *(getattr(memory, name) for name in (
        "store", "advance", "atomic_cas", "atomic_xchg", "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or",
        "atomic_xor")),
    *(getattr(math, name) for name in ("exp", "log", "cos", "sin", "sqrt", "rsqrt", "abs")),
    *(getattr(reductions, name) for name in (
        "reduce", "associative_scan", "histogram", "max", "argmax", "min", "argmin", "sum", "xor_sum", "reduce_or", "cumsum",
        "cumprod", "sort")),
    *(getattr(standard, name) for name in ("cdiv", "sigmoid", "softmax")), program.cast,
)


def _method(function):
    def method(self, *arguments, **keywords):
        return function(self, *arguments, **keywords)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    method.tile_builtin = True
    return method


for _function in _FUNCTIONS:
    setattr(tensor, _function.__name__, _method(_function))
tensor.to = _method(program.cast)
