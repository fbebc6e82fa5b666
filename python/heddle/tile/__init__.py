"""Kernels in Python, of tiles.

    import heddle.tile as triton
    import heddle.tile.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

The language is Triton's. Arrays are those of NumPy on the CPU, and what has `data_ptr()` or `__dlpack__` on either device.
"""
from heddle.tile import backends, compiler, errors, knobs, language, runtime, testing, tools
from heddle.tile.compiler import compile
from heddle.tile.compiler.errors import (
    CompilationError, CompileTimeAssertionFailure, OutOfResources, TileError, UnsupportedLanguageConstruct)
from heddle.tile.errors import TritonError
from heddle.tile.runtime.arrays import reinterpret
from heddle.tile.runtime.autotuner import Autotuner, Config, autotune, heuristics
from heddle.tile.language.aggregates import aggregate
from heddle.tile.runtime.jit import JITFunction, constexpr_function, jit, must_use_result
from heddle.tile.runtime.operators import Operator, empty, empty_like, operator

# The version of Triton whose language this is; programs ask for it.
__version__ = "3.7.0"


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, int(n) - 1).bit_length() if n > 0 else 0


def set_allocator(allocator) -> None:
    """Triton asks for memory of descriptors here; Heddle needs none."""


__all__ = [
    "Autotuner", "CompilationError", "CompileTimeAssertionFailure", "Config", "JITFunction", "Operator", "OutOfResources", "TileError",
    "TritonError", "UnsupportedLanguageConstruct", "aggregate", "autotune", "backends", "cdiv", "compile", "compiler", "constexpr_function", "empty",
    "empty_like", "errors", "heuristics", "jit", "knobs", "language",
    "must_use_result", "next_power_of_2", "operator", "reinterpret", "runtime", "set_allocator", "testing", "tools",
]
