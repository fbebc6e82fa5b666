"""A kernel for given facts of its arguments, as text of the tile IR."""
import contextlib
import re
import sys
import threading
from typing import Any, NamedTuple

from heddle.tile import ir
from heddle.tile.compiler.errors import CompilationError
from heddle.tile.compiler.visitor import Visitor
from heddle.tile.language.promotion import cast, to_tensor
from heddle.tile.language.types import constexpr, dtype, int32, int64, parse_type
from heddle.tile.language.values import tensor, tuple
from heddle.tile.language.windows import descriptor

ALIGNMENT = 16  # bytes, and what numbers are a multiple of

# What options say to the IR, beside what they say to the front-end.
_IN_THE_IR = ("num_warps", "num_stages", "num_ctas", "maxnreg")


_FRAMES = 20000  # of Python that nested expressions, statements and calls of a kernel may take


_lock = threading.Lock()
_deep: list = []  # Python's own limit, once for each kernel that is lowered now


@contextlib.contextmanager
def _deep_recursion():
    """Python's limit of recursion is one for a program's own functions; that of kernels is in the visitor."""
    with _lock:
        _deep.append(_deep[0] if _deep else sys.getrecursionlimit())
        sys.setrecursionlimit(max(_deep[0], _FRAMES))
    try:
        yield
    finally:
        with _lock:
            before = _deep.pop()
            if not _deep:
                sys.setrecursionlimit(before)


class _Parameters:
    """The parameters of the kernel in the IR, as values of the language are made of them."""

    def __init__(self):
        self.all: list[tuple] = []
        self._names: set = set()

    def scalar(self, name: str, type: dtype, divisible: int) -> tensor:
        """A number or a pointer that is a multiple of `divisible` (0: nothing is known)."""
        word = re.sub(r"\W", "_", name)
        while word in self._names:
            word += "_"
        self._names.add(word)
        value = ir.Value(type.ir, word)
        self.all.append((value, {"divisible": divisible} if divisible > 1 else {}))
        return tensor(value, type)

    def value(self, name: str, facts: Any) -> Any:
        """What the name of a parameter stands for."""
        kind = facts[0]
        if kind == "known":
            return _known(facts[1])
        if kind == "tuple":
            return tuple([self.value(f"{name}_{i}", one) for i, one in enumerate(facts[2])], facts[1])
        if kind == "descriptor":
            _, base, block, padding, rank = facts
            pointer = self.scalar(name, parse_type(base), ALIGNMENT)
            sizes = [self.scalar(f"{name}_size{i}", int32, 0) for i in range(rank)]
            aligned = ALIGNMENT // pointer.type.element_ty.itemsize
            strides = [self.scalar(f"{name}_stride{i}", int64, aligned) for i in range(rank - 1)]
            return descriptor(pointer, sizes, [*strides, cast(to_tensor(1), int64)], block, padding)
        return self.scalar(name, parse_type(facts[1]), ALIGNMENT if facts[2] else 0)


def _known(value: Any) -> Any:
    return tuple([_known(one) for one in value]) if isinstance(value, (list, type(()))) else constexpr(value)


def lower(function: Any, facts: dict, options: Any) -> tuple:
    """(text, globals that it depends on) for the facts of each parameter by name."""
    parameters = _Parameters()
    builder = ir.Builder(options)
    with ir.building(builder), _deep_recursion():
        scope = {name: parameters.value(name, known) for name, known in facts.items()}
        visitor = Visitor(function, scope)
        result = visitor.body()
        if isinstance(result, tensor) or isinstance(result, tuple):
            raise CompilationError(function.source, function.source.tree, f"a kernel returns nothing, and {function.__name__} returns "
                                                                          f"{result!r}; store it")
    attributes = {name: getattr(options, name) for name in _IN_THE_IR if getattr(options, name, None) not in (None, 0)}
    return ir.write(builder, name_of(function, facts), parameters.all, attributes), builder.used_globals


class Specialization(NamedTuple):
    """What a function that names kernels gets: the types of the arguments, and the values of those that are constants."""

    signature: dict
    constants: dict


def name_of(function: Any, facts: dict) -> str:
    """The name of a kernel: that of its function, or what the function's `repr` says."""
    name = function.__name__
    if function.repr is not None:
        signature = {key: "constexpr" if known[0] == "known" else known[1] for key, known in facts.items()}
        name = function.repr(Specialization(signature, {key: known[1] for key, known in facts.items() if known[0] == "known"}))
    return re.sub(r"\W", "_", name)
